// How the containers of versions are found in the deployment: what there is to be moved, and what stands against it.
import type { Problem } from '../errors.ts';
import type { Container, Version } from './manifest.ts';
import { type Deployment, installedContainers, installedVersions } from './deployment.ts';

/** A container of a workload, and the images it is moved between; `formerImage` is null where there was none. */
export type WorkloadContainer = {
  readonly container: string;
  readonly image: string;
  readonly formerImage: string | null;
};

/** What is moved as one: a deployment of the cluster with those of its containers that get another image. */
export type Workload = {
  readonly name: string;
  readonly component: string;
  readonly parts: readonly WorkloadContainer[];
};

/** As a message names them: one after another where a workload has several. */
export function formatImages(workload: Workload | null, which: 'image' | 'formerImage'): string {
  return [...new Set(workload?.parts.flatMap((part) => part[which] ?? []))].join(', ');
}

export type MovePlan = {
  /** The workloads of each version, in the order of its containers. */
  readonly workloads: readonly (readonly Workload[])[];
  /** What stands against moving them. */
  readonly problems: readonly Problem[];
  /** What does not, but should be known. */
  readonly notices: readonly string[];
};

/** The deployment as it shows itself at one moment. */
export type Inventory = {
  /** How many workloads may be on their way at once. */
  readonly parallelism: number;
  /** Where versions are to be installed one after another: each finds the images that those before it put in place. */
  readonly planMoves: (versions: readonly Version[], present: Deployment) => MovePlan;
  /** Where containers are to be put back: `image` is the one they have, `formerImage` the one they get. */
  readonly planReverts: (moves: readonly Move[]) => MovePlan;
};

/** A container that is to be put back; to nothing, where the version gone back to does not know it. */
export type Move = {
  readonly now: Container;
  readonly then: Container | undefined;
  /** Whether what is taken back brought it along. */
  readonly isNew: boolean;
};

/** The part of a container's name before the first underscore. */
export function componentOf(name: string): string {
  return name.split('_', 1)[0] ?? name;
}

/** Every container that differs between two states of the deployment, the newest first. */
export function movesBetween(present: Deployment, after: Deployment): Move[] {
  const then = installedContainers(after);
  const added = new Set(
    installedVersions(present).flatMap((one) => one.newContainers.map(({ name }) => name)),
  );
  return [...installedContainers(present).values()]
    .map((now) => ({ now, then: then.get(now.name), isNew: added.has(now.name) }))
    .filter((move) => move.now.image !== move.then?.image || move.now.checksum !== move.then.checksum)
    .reverse();
}

/** Every container is a workload of its own, and nothing stands against moving it. */
export const simulatedInventory: Inventory = {
  parallelism: 1,
  planMoves(versions, present) {
    const images = new Map([...installedContainers(present)].map(([name, { image }]) => [name, image]));
    const workloads = versions.map(({ containers, newContainers }) => {
      const found = [...containers, ...newContainers].map(({ name, image }) =>
        workloadOf(name, image, images.get(name) ?? null),
      );
      for (const { name, image } of [...containers, ...newContainers]) images.set(name, image);
      return found;
    });
    return { workloads, problems: [], notices: [] };
  },
  planReverts: (moves) => ({
    workloads: [moves.map(({ now, then }) => workloadOf(now.name, now.image, then?.image ?? null))],
    problems: [],
    notices: [],
  }),
};

function workloadOf(name: string, image: string, formerImage: string | null): Workload {
  return { name, component: componentOf(name), parts: [{ container: name, image, formerImage }] };
}
