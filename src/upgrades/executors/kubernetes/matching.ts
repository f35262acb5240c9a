// Which containers of which workloads are meant by the containers of a version: by the label of a workload, or by a container's name.
import type { Container } from '../../manifest.ts';
import { type Part, type Workload, componentOf } from '../../survey.ts';
import { type Found, type FoundContainer, pathOf } from './found.ts';
import { contradicts, locateImage, nameOfImage, pinImage } from './image.ts';

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
  cluster: readonly Found[],
  images: Images,
  registry: string | undefined,
): Matched {
  const workloads = new Map<string, { component: string; parts: Map<string, Part> }>();
  const meant = new Map<string, string>();
  const unmatched: Container[] = [];
  const problems: string[] = [];

  function move(found: Found, { name, image: asFound }: FoundContainer, container: Container): void {
    const path = pathOf(found);
    const place = `${path} ${name}`;
    const formerImage = images.get(place) ?? asFound;
    const image = pinImage(locateImage(container.image, formerImage, registry), container.checksum);
    const workload = workloads.get(path) ?? {
      component: componentOf(container.name),
      parts: new Map<string, Part>(),
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

  for (const container of wanted) {
    if (contradicts(container.image, container.checksum))
      problems.push(
        `${container.name}: its image ${container.image} and its checksum ${container.checksum} differ.`,
      );
    const matches = cluster.map((found) => ({ found, ...matchWorkload(found, container) }));
    for (const { found, containers, problem } of matches) {
      if (problem !== undefined) problems.push(problem);
      for (const one of containers) move(found, one, container);
    }
    if (matches.every(({ containers, problem }) => containers.length === 0 && problem === undefined))
      unmatched.push(container);
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

/** The containers of a workload that are meant; a problem where it is, but nothing tells which of them. */
function matchWorkload(
  found: Found,
  wanted: Container,
): { containers: readonly FoundContainer[]; problem?: string } {
  const named = found.containers.filter(({ name }) => fold(name) === fold(wanted.name));
  if (named.length > 0) return { containers: named };
  if (fold(found.labels[containerLabel] ?? '') !== fold(wanted.name)) return { containers: [] };
  const own = found.containers.filter(({ isInit }) => !isInit);
  if (own.length === 1) return { containers: own };
  const sameImage = found.containers.filter(({ image }) => nameOfImage(image) === nameOfImage(wanted.image));
  if (sameImage.length > 0) return { containers: sameImage };
  const problem = `${pathOf(found)}: has the label ${containerLabel}=${wanted.name}, but several containers, none of that name.`;
  return { containers: [], problem };
}
