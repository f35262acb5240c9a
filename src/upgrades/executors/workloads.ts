// Workloads, and the inventory that maps the containers of versions to them.
import type { Problem } from '../../lib/errors.ts';
import { type Deployment, installedContainers, installedVersions } from '../versions/deployment.ts';
import type { Container, Version } from '../versions/manifest.ts';
import { type Performers, simulatedPerformers } from './steps.ts';

/** `formerImage` is null if the container is new. */
export type WorkloadContainer = {
  readonly container: string;
  readonly image: string;
  readonly formerImage: string | null;
};

/** The unit that a step moves, for example one Deployment of a cluster. */
export type Workload = {
  readonly name: string;
  readonly component: string;
  readonly parts: readonly WorkloadContainer[];
  /** Whether its former images are only those of a version: what was there before it is not recorded. */
  readonly isOfVersion?: boolean;
};

/**
 * How the job that has changed a workload last has ended. A failed release is `unfinished`: it is not reverted, the
 * next job continues it. A failed patch is `reverted`, as far as that was possible. The store may not know the job.
 */
export type JobEnd = {
  readonly state: 'succeeded' | 'unfinished' | 'reverted' | 'unknown';
  /** The version before the job. */
  readonly from: string;
};

/** Every workload adds steps to the plan and messages to the job, which are stored and returned as a whole. */
export const maxWorkloads = 10_000;

/** Of former images it says where they come from. */
export function formatImages(workload: Workload | null, which: 'image' | 'formerImage'): string {
  const images = [...new Set(workload?.parts.flatMap((part) => part[which] ?? []))].join(', ');
  if (which === 'image' || images === '') return images;
  return workload?.isOfVersion ? `the image ${images} of the version` : `its former image ${images}`;
}

export function templatePath(name: string): string {
  return `cronjob/${name}`;
}

/** Notices, unlike problems, do not block the job. */
export type Findings = { readonly problems: readonly Problem[]; readonly notices: readonly string[] };

/** With one list of workloads for each version. */
export type MovePlan = Findings & { readonly workloads: readonly (readonly Workload[])[] };

/** `drift` says which workloads differ. `isKnown` is false if the workloads cannot be read. */
export type RepairPlan = MovePlan & { readonly drift: string | undefined; readonly isKnown: boolean };

/** A snapshot: the deployment may change before the job starts. */
export type Inventory = {
  readonly parallelism: number;
  readonly performers: Performers;
  /** The step templates with their images. */
  readonly templates: readonly Workload[];
  /** Each version starts from the images of the version before it. */
  readonly planMoves: (versions: readonly Version[], present: Deployment) => MovePlan;
  /** Gives the images of the installed version to the workloads that have others. */
  readonly planRepair: (present: Deployment) => RepairPlan;
  /** In these workloads `image` is the present image and `formerImage` the target of the rollback `to` a version. */
  readonly planReverts: (moves: readonly Move[], to: string) => MovePlan;
};

/** `then` is undefined if the target version does not have the container. */
export type Move = {
  readonly now: Container;
  readonly then: Container | undefined;
  readonly isNew: boolean;
};

export function componentOf(name: string): string {
  return name.split('_', 1)[0] ?? name;
}

/** Last installed first: a rollback undoes the installation in reverse order. */
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

/**
 * How many containers a rollback to each target moves, by the id of the target. Compares all versions in one pass:
 * `movesBetween` for each of 500 targets would take seconds.
 */
export function countMovesOfRollbacks(present: Deployment): ReadonlyMap<string, number> {
  const now = installedContainers(present);
  const equal = new Set<string>();
  const counts = new Map<string, number>();
  for (const { id, containers, newContainers } of installedVersions(present)) {
    for (const then of [...containers, ...newContainers]) {
      const container = now.get(then.name);
      if (container?.image === then.image && container.checksum === then.checksum) equal.add(then.name);
      else equal.delete(then.name);
    }
    counts.set(id, now.size - equal.size);
  }
  return counts;
}

export const simulatedInventory: Inventory = {
  parallelism: 1,
  performers: simulatedPerformers(),
  templates: [],
  planMoves(versions, present) {
    const images = new Map([...installedContainers(present)].map(([name, { image }]) => [name, image]));
    const workloads = versions.map(({ containers, newContainers }) => {
      const all = [...containers, ...newContainers];
      const found = all.map(({ name, image }) => createWorkload(name, image, images.get(name) ?? null));
      for (const { name, image } of all) images.set(name, image);
      return found;
    });
    return { workloads, problems: [], notices: [] };
  },
  planRepair: () => ({ workloads: [], problems: [], notices: [], drift: undefined, isKnown: true }),
  planReverts: (moves) => ({
    workloads: [moves.map(({ now, then }) => createWorkload(now.name, now.image, then?.image ?? null))],
    problems: [],
    notices: [],
  }),
};

function createWorkload(name: string, image: string, formerImage: string | null): Workload {
  return { name, component: componentOf(name), parts: [{ container: name, image, formerImage }] };
}
