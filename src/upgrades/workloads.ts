// Workloads, and the inventory that maps the containers of versions to them.
import type { Problem } from '../errors.ts';
import type { Container, Version } from './manifest.ts';
import { type Deployment, installedContainers, installedVersions } from './deployment.ts';

/** A container with its new and its former image. `formerImage` is null if the container is new. */
export type WorkloadContainer = {
  readonly container: string;
  readonly image: string;
  readonly formerImage: string | null;
};

/** The unit that a step moves, such as a Deployment of a cluster. `parts` holds only the containers whose image changes. */
export type Workload = {
  readonly name: string;
  readonly component: string;
  readonly parts: readonly WorkloadContainer[];
};

/** The images of a workload as messages show them. */
export function formatImages(workload: Workload | null, which: 'image' | 'formerImage'): string {
  return [...new Set(workload?.parts.flatMap((part) => part[which] ?? []))].join(', ');
}

export type MovePlan = {
  /** The workloads of each version, in the order of its containers. */
  readonly workloads: readonly (readonly Workload[])[];
  /** What blocks the move. */
  readonly problems: readonly Problem[];
  /** Remarks for the administrator that do not block the move. */
  readonly notices: readonly string[];
};

/** The workloads of the deployment, as the executor found them at one moment. */
export type Inventory = {
  /** How many workloads may be moved at the same time. */
  readonly parallelism: number;
  /** Plans the installation of `versions`, one after another. The former image of a workload is the one of the version before. */
  readonly planMoves: (versions: readonly Version[], present: Deployment) => MovePlan;
  /** Plans a rollback. In its workloads `image` is the present image and `formerImage` the one to go back to. */
  readonly planReverts: (moves: readonly Move[]) => MovePlan;
};

/** A container that a rollback changes. `then` is undefined if the target version does not have it. */
export type Move = {
  readonly now: Container;
  readonly then: Container | undefined;
  /** Whether an installed version lists it in `newContainers`. */
  readonly isNew: boolean;
};

/** The part of a container's name before the first underscore. */
export function componentOf(name: string): string {
  return name.split('_', 1)[0] ?? name;
}

/** Every container that differs between two states of the deployment, the last installed first. */
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

/** The inventory of the simulated executor: each container is a workload of its own, and nothing blocks a move. */
export const simulatedInventory: Inventory = {
  parallelism: 1,
  planMoves(versions, present) {
    const images = new Map([...installedContainers(present)].map(([name, { image }]) => [name, image]));
    const workloads = versions.map(({ containers, newContainers }) => {
      const found = [...containers, ...newContainers].map(({ name, image }) =>
        createWorkload(name, image, images.get(name) ?? null),
      );
      for (const { name, image } of [...containers, ...newContainers]) images.set(name, image);
      return found;
    });
    return { workloads, problems: [], notices: [] };
  },
  planReverts: (moves) => ({
    workloads: [moves.map(({ now, then }) => createWorkload(now.name, now.image, then?.image ?? null))],
    problems: [],
    notices: [],
  }),
};

function createWorkload(name: string, image: string, formerImage: string | null): Workload {
  return { name, component: componentOf(name), parts: [{ container: name, image, formerImage }] };
}
