// Matches the containers of a version with the containers of workloads: by the name of a container, or by the label of a
// workload.
import { groupBy } from '../../../lib/collections.ts';
import { maxProblems } from '../../../lib/errors.ts';
import type { Container } from '../../versions/manifest.ts';
import { findImageProblem, locateImage, nameOfImage, pinImage } from '../images/image.ts';
import { type Workload, type WorkloadContainer, componentOf } from '../workloads.ts';
import { type FoundContainer, type FoundWorkload, containerLabel } from './found.ts';

export type MatchResult = {
  readonly workloads: readonly Workload[];
  readonly unmatched: readonly Container[];
  readonly problems: readonly string[];
};

/** Adds the images of the version to `planned`, so that the next version starts from them. */
export function matchContainers(
  wanted: readonly Container[],
  present: readonly FoundWorkload[],
  planned: Map<string, string>,
  registry: string | undefined,
): MatchResult {
  const workloads = new Map<string, { component: string; parts: Map<string, WorkloadContainer> }>();
  const matchedBy = new Map<string, string>();
  const unmatched: Container[] = [];
  const problems: string[] = [];

  function addPart(found: FoundWorkload, target: FoundContainer, container: Container): void {
    const { path } = found;
    const key = keyOf(path, target.name);
    const formerImage = planned.get(key) ?? target.image;
    const image = pinImage(locateImage(container.image, formerImage, registry), container.checksum);
    const workload = workloads.get(path) ?? {
      component: componentOf(container.name),
      parts: new Map<string, WorkloadContainer>(),
    };
    workloads.set(path, workload);
    const earlier = workload.parts.get(target.name);
    if (earlier && earlier.image !== image) {
      problems.push(
        `${path}: ${matchedBy.get(key) ?? ''} and ${container.name} both match the container ${target.name}.`,
      );
      return;
    }
    matchedBy.set(key, container.name);
    workload.parts.set(target.name, { container: target.name, image, formerImage });
  }

  const byName = indexByName(present);
  for (const container of withoutRepeats(wanted)) {
    if (problems.length >= maxProblems) break;
    const imageProblem = findImageProblem(container.image, container.checksum);
    if (imageProblem !== undefined) problems.push(`${container.name}: ${imageProblem}`);
    const candidates = [...(byName.get(normalizeName(container.name)) ?? [])];
    for (const found of candidates) {
      const targets = selectContainers(found, container);
      for (const target of targets) addPart(found, target, container);
      if (targets.length === 0)
        problems.push(
          `${found.path}: has the label ${containerLabel}=${container.name}, but several containers, none of that name.`,
        );
    }
    if (candidates.length === 0) unmatched.push(container);
  }
  for (const [path, { parts }] of workloads)
    for (const { container, image } of parts.values()) planned.set(keyOf(path, container), image);
  return {
    workloads: [...workloads].map(([name, { component, parts }]) => ({
      name,
      component,
      parts: [...parts.values()],
    })),
    unmatched,
    problems,
  };
}

/** An image that is also pinned by its digest is the same. So is one that a rollback has put back. */
export function hasImages({ parts }: Workload, putBack?: ReadonlyMap<string, string>): boolean {
  return parts.every(
    ({ container, image, formerImage: present }) =>
      present === image || present?.startsWith(`${image}@`) || present === putBack?.get(container),
  );
}

/** A manifest may repeat a container any number of times, and each may match every workload. */
function withoutRepeats(wanted: readonly Container[]): Container[] {
  const groups = groupBy(wanted, ({ name, image, checksum }) =>
    JSON.stringify([normalizeName(name), image, checksum]),
  );
  return [...groups.values()].flatMap(([first]) => first ?? []);
}

export const keyOf = (path: string, container: string) => `${path} ${container}`;

/** Kubernetes allows neither capitals nor underscores in the name of a container, but manifests have both. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

function indexByName(present: readonly FoundWorkload[]): ReadonlyMap<string, ReadonlySet<FoundWorkload>> {
  const index = new Map<string, Set<FoundWorkload>>();
  for (const found of present) {
    const { label, containers } = found;
    const names = [...containers.map(({ name }) => name), ...(label === undefined ? [] : [label])];
    for (const name of names.map(normalizeName)) index.set(name, (index.get(name) ?? new Set()).add(found));
  }
  return index;
}

/**
 * A label selects a workload, not a container. If no container has that name, those with the same image match, and
 * so does the only container that is not an init container. The result is empty if the choice is ambiguous.
 */
function selectContainers({ containers }: FoundWorkload, wanted: Container): readonly FoundContainer[] {
  const named = containers.filter(({ name }) => normalizeName(name) === normalizeName(wanted.name));
  if (named.length > 0) return named;
  const isOnly = containers.filter(({ isInit }) => !isInit).length === 1;
  const hasImage = ({ image }: FoundContainer) => nameOfImage(image) === nameOfImage(wanted.image);
  return containers.filter((one) => hasImage(one) || (isOnly && !one.isInit));
}
