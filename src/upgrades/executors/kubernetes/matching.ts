// Matches the containers of a version with containers of workloads: by the name of a container, or by the label of
// a workload.
import { groupBy } from '../../../lib/collections.ts';
import { maxProblems } from '../../../lib/errors.ts';
import { type WorkloadContainer, type Workload, componentOf } from '../../planning/workloads.ts';
import type { Container } from '../../versions/manifest.ts';
import { findImageProblem, locateImage, nameOfImage, pinImage } from './image.ts';
import { type ClusterWorkload, type ClusterContainer, pathOf } from './workload.ts';

export const containerLabel = 'steward/container';

export type PlannedImages = Map<string, string>;

export type MatchResult = {
  readonly workloads: readonly Workload[];
  readonly unmatched: readonly Container[];
  readonly problems: readonly string[];
};

/** Adds the images of the version to `planned`, so that the next version starts from them. */
export function matchContainers(
  wanted: readonly Container[],
  cluster: readonly ClusterWorkload[],
  planned: PlannedImages,
  registry: string | undefined,
): MatchResult {
  const workloads = new Map<string, { component: string; parts: Map<string, WorkloadContainer> }>();
  const matchedBy = new Map<string, string>();
  const unmatched: Container[] = [];
  const problems: string[] = [];

  function addPart(found: ClusterWorkload, target: ClusterContainer, container: Container): void {
    const path = pathOf(found);
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

  const byName = indexByName(cluster);
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
          `${pathOf(found)}: has the label ${containerLabel}=${container.name}, but several containers, none of that name.`,
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

/** A manifest may repeat a container any number of times, and each may match every workload. */
function withoutRepeats(wanted: readonly Container[]): Container[] {
  const groups = groupBy(wanted, ({ name, image, checksum }) =>
    JSON.stringify([normalizeName(name), image, checksum]),
  );
  return [...groups.values()].flatMap(([first]) => first ?? []);
}

const keyOf = (path: string, container: string) => `${path} ${container}`;

/** Kubernetes allows neither capitals nor underscores in the name of a container, but manifests have both. */
export function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

function indexByName(cluster: readonly ClusterWorkload[]): ReadonlyMap<string, ReadonlySet<ClusterWorkload>> {
  const index = new Map<string, Set<ClusterWorkload>>();
  for (const found of cluster) {
    const label = found.labels[containerLabel];
    const names = [...found.containers.map(({ name }) => name), ...(label === undefined ? [] : [label])];
    for (const name of names.map(normalizeName)) index.set(name, (index.get(name) ?? new Set()).add(found));
  }
  return index;
}

/**
 * A label selects a workload, not a container. If no container has that name, those with the same image match, and
 * so does the only container that is not an init container. The result is empty if the choice is ambiguous.
 */
function selectContainers({ containers }: ClusterWorkload, wanted: Container): readonly ClusterContainer[] {
  const named = containers.filter(({ name }) => normalizeName(name) === normalizeName(wanted.name));
  if (named.length > 0) return named;
  const isOnly = containers.filter(({ isInit }) => !isInit).length === 1;
  const hasImage = ({ image }: ClusterContainer) => nameOfImage(image) === nameOfImage(wanted.image);
  return containers.filter((one) => hasImage(one) || (isOnly && !one.isInit));
}
