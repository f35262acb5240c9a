// Which containers of which workloads are meant by the containers of a version: by the label of a workload, or by a container's name.
import type { Container } from '../../manifest.ts';
import { type WorkloadContainer, type Workload, componentOf } from '../../workloads.ts';
import { type ClusterWorkload, type ClusterContainer, pathOf } from './workload.ts';
import { findFault, locateImage, nameOfImage, pinImage } from './image.ts';

export const containerLabel = 'steward/container';

/** Where containers of workloads stand once the moves so far are made, by workload and container. */
export type Images = Map<string, string>;

export type Matched = {
  /** In the order of the containers; one that several match is there once. */
  readonly workloads: readonly Workload[];
  readonly unmatched: readonly Container[];
  readonly problems: readonly string[];
};

/** `images` is moved along. */
export function matchContainers(
  wanted: readonly Container[],
  cluster: readonly ClusterWorkload[],
  images: Images,
  registry: string | undefined,
): Matched {
  const workloads = new Map<string, { component: string; parts: Map<string, WorkloadContainer> }>();
  const meant = new Map<string, string>();
  const unmatched: Container[] = [];
  const problems: string[] = [];

  function move(
    found: ClusterWorkload,
    { name, image: asFound }: ClusterContainer,
    container: Container,
  ): void {
    const path = pathOf(found);
    const place = `${path} ${name}`;
    const formerImage = images.get(place) ?? asFound;
    const image = pinImage(locateImage(container.image, formerImage, registry), container.checksum);
    const workload = workloads.get(path) ?? {
      component: componentOf(container.name),
      parts: new Map<string, WorkloadContainer>(),
    };
    workloads.set(path, workload);
    const rival = workload.parts.get(name);
    if (rival && rival.image !== image) {
      problems.push(
        `${path}: ${meant.get(place) ?? ''} and ${container.name} both match the container ${name}.`,
      );
      return;
    }
    meant.set(place, container.name);
    workload.parts.set(name, { container: name, image, formerImage });
  }

  const byName = indexByName(cluster);
  for (const container of wanted) {
    const fault = findFault(container.image, container.checksum);
    if (fault !== undefined) problems.push(`${container.name}: ${fault}`);
    const meantHere = [...(byName.get(fold(container.name)) ?? [])];
    for (const found of meantHere) {
      const matched = matchWorkload(found, container);
      for (const one of matched) move(found, one, container);
      if (matched.length === 0)
        problems.push(
          `${pathOf(found)}: has the label ${containerLabel}=${container.name}, but several containers, none of that name.`,
        );
    }
    if (meantHere.length === 0) unmatched.push(container);
  }
  for (const [path, { parts }] of workloads)
    for (const { container, image } of parts.values()) images.set(`${path} ${container}`, image);
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

/** Case does not count, and `_` is `-`. */
export function fold(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** The workloads that have a name, as a label or as that of a container. */
function indexByName(cluster: readonly ClusterWorkload[]): ReadonlyMap<string, ReadonlySet<ClusterWorkload>> {
  const index = new Map<string, Set<ClusterWorkload>>();
  for (const found of cluster) {
    const label = found.labels[containerLabel];
    const names = [...found.containers.map(({ name }) => name), ...(label === undefined ? [] : [label])];
    for (const name of names.map(fold)) index.set(name, (index.get(name) ?? new Set()).add(found));
  }
  return index;
}

/** The containers that are meant of a workload that has the name; none where nothing tells which. */
function matchWorkload({ containers }: ClusterWorkload, wanted: Container): readonly ClusterContainer[] {
  const named = containers.filter(({ name }) => fold(name) === fold(wanted.name));
  if (named.length > 0) return named;
  const own = containers.filter(({ isInit }) => !isInit);
  const hasImage = ({ image }: ClusterContainer) => nameOfImage(image) === nameOfImage(wanted.image);
  return containers.filter((one) => hasImage(one) || (own.length === 1 && !one.isInit));
}
