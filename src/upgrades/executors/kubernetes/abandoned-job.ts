// Recognises workloads that a job has changed and left behind, by their annotations: the store of the job is lost, or its reverting failed.
import type { AbandonedReason } from '../../workloads.ts';
import { annotations, doneStates, parseImages, startStates } from './patch.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

const changingStates = [startStates.image, doneStates.image, startStates.formerImage];

export type AbandonedJobs = ReadonlyMap<string, AbandonedReason>;

const reasonTexts: Readonly<Record<AbandonedReason, string>> = {
  unknown: 'which this Steward does not know',
  'not reverted': 'which did not put it back',
};

/** The job that has changed the workload and not put it back. A job that has changed it twice must put it back twice. */
export function jobOf(found: ClusterWorkload): string | undefined {
  const { [annotations.job]: job, [annotations.state]: state = '' } = found.annotations;
  const isChanged = changingStates.includes(state);
  const isHalfReverted = state === doneStates.formerImage && imagesToRestore(found).length > 0;
  return isChanged || isHalfReverted ? job : undefined;
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

export function formatAbandonedJob(
  found: ClusterWorkload,
  abandonedJobs: AbandonedJobs,
  isMoved: boolean,
): string {
  const job = jobOf(found) ?? '';
  const former = imagesToRestore(found)
    .map(([name, image]) => `${name}: ${image}`)
    .join(', ');
  const effect = isMoved
    ? ` If this upgrade is reverted, it gets the images from before that job (${former}).`
    : ` This upgrade does not change it; the images from before that job are ${former}.`;
  return (
    `${pathOf(found)} was changed by the job ${job}, ${reasonTexts[abandonedJobs.get(job) ?? 'unknown']} ` +
    `(${annotations.state}: ${found.annotations[annotations.state] ?? ''}).${former === '' ? '' : effect}`
  );
}
