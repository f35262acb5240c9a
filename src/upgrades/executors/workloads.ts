// Workloads, and the inventory that maps the containers of versions to them.
import type { Problem } from '../../lib/errors.ts';
import type { Deployment } from '../versions/deployment.ts';
import type { Version } from '../versions/manifest.ts';
import type { Move } from '../versions/moves.ts';
import type { Performers } from './steps.ts';

/** `formerImage` is null if the container is new. */
export type WorkloadContainer = {
  readonly container: string;
  readonly image: string;
  readonly formerImage: string | null;
};

/** Which images a step gives to a workload. */
export type Direction = 'image' | 'formerImage';

/** The unit that a step moves, for example one Deployment of a cluster. */
export type Workload = {
  readonly name: string;
  readonly component: string;
  readonly parts: readonly WorkloadContainer[];
  /** Whether its former images are only those of a version: what was there before it is not recorded. */
  readonly isOfVersion?: boolean;
  /** The version whose record a rollback uses. */
  readonly record?: string;
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
export function formatImages(workload: Workload | null, which: Direction): string {
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

/** What a deployment runs as far as its executor can see: the version and what it was derived from, or why not. */
export type Recognition =
  | { readonly present: Deployment; readonly from: string; readonly reason?: undefined }
  | { readonly present?: undefined; readonly reason: string };

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
  readonly planReverts: (moves: readonly Move[], to: string, present: Deployment) => MovePlan;
  readonly recognize: (manifest: readonly Version[]) => Recognition;
};

export function componentOf(name: string): string {
  return name.split('_', 1)[0] ?? name;
}
