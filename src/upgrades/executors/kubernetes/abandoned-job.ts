// Recognises workloads that a job has changed and left behind, by their annotations: the store of the job is lost,
// or its reverting failed.
import type { JobEnd } from '../../planning/workloads.ts';
import { annotations, parseImages } from './patch.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

/** How each job that an annotation names has ended, by its id. */
export type JobEnds = ReadonlyMap<string, JobEnd>;

const endsOfAbandoned: Readonly<Partial<Record<JobEnd, string>>> = {
  unknown: 'which this Steward does not know',
  reverted: 'which did not put it back',
};

export function jobOf({ annotations: found }: ClusterWorkload): string | undefined {
  return found[annotations.job];
}

/** Whether a job has changed the workload, and the images from before it are not restored. */
export function isAbandoned(found: ClusterWorkload, ends: JobEnds): boolean {
  return endOfAbandoned(found, ends) !== undefined && imagesToRestore(found).length > 0;
}

function endOfAbandoned(found: ClusterWorkload, ends: JobEnds): string | undefined {
  return endsOfAbandoned[ends.get(jobOf(found) ?? '') ?? 'succeeded'];
}

/** An interrupted rollout may leave a workload unhealthy. This does not block the upgrade that repairs it. */
export function mayBeUnhealthy(found: ClusterWorkload, ends: JobEnds): boolean {
  return ends.get(jobOf(found) ?? '') === 'unfinished' || isAbandoned(found, ends);
}

/** The images from before the job, by container. Leaves out containers that another client has changed since. */
export function recordedImages(found: ClusterWorkload): ReadonlyMap<string, string> {
  const former = parseImages(found.annotations[annotations.formerImages]);
  const changed = parseImages(found.annotations[annotations.images]);
  return new Map(
    found.containers.flatMap(({ name, image }) => {
      const recorded = former.get(name);
      const isSince = changed.has(name) && changed.get(name) !== image;
      return recorded === undefined || recorded === '' || isSince ? [] : [[name, recorded] as const];
    }),
  );
}

function imagesToRestore(found: ClusterWorkload): (readonly [container: string, image: string])[] {
  const present = new Map(found.containers.map(({ name, image }) => [name, image]));
  return [...recordedImages(found)].filter(([name, image]) => present.get(name) !== image);
}

export function formatAbandonedJob(found: ClusterWorkload, ends: JobEnds, isMoved: boolean): string {
  const former = imagesToRestore(found)
    .map(([name, image]) => `${name}: ${image}`)
    .join(', ');
  const effect = isMoved
    ? ` If this upgrade is reverted, it gets the images from before that job (${former}).`
    : ` This upgrade does not change it; the images from before that job are ${former}.`;
  return (
    `${pathOf(found)} was changed by the job ${jobOf(found) ?? ''}, ${endOfAbandoned(found, ends) ?? ''} ` +
    `(${annotations.state}: ${found.annotations[annotations.state] ?? ''}).${former === '' ? '' : effect}`
  );
}
