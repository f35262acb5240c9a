// Recognises workloads that a job has changed and left behind, by their annotations: the store of the job is lost, or its reverting failed.
import type { AbandonedReason } from '../../workloads.ts';
import { annotations, doneStates, startStates } from './patch.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

const changingStates = [startStates.image, doneStates.image, startStates.formerImage];

export type AbandonedJobs = ReadonlyMap<string, AbandonedReason>;

const reasonTexts: Readonly<Record<AbandonedReason, string>> = {
  unknown: 'which this Steward does not know',
  'not reverted': 'which did not put it back',
};

/** The job that has changed the workload and not put it back. */
export function jobOf({ annotations: found }: ClusterWorkload): string | undefined {
  const { [annotations.job]: job, [annotations.state]: state = '' } = found;
  return changingStates.includes(state) ? job : undefined;
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

export function formatAbandonedJob(
  found: ClusterWorkload,
  abandonedJobs: AbandonedJobs,
  isMoved: boolean,
): string {
  const job = jobOf(found) ?? '';
  const present = new Map(found.containers.map(({ name, image }) => [name, image]));
  const former = [...recordedImages(found)]
    .filter(([name, image]) => present.get(name) !== image)
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

/** Other clients can write annotations, so the value may be anything. */
function parseImages(text: string | undefined): ReadonlyMap<string, string> {
  try {
    const value: unknown = JSON.parse(text ?? '{}');
    const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
    return new Map(entries.flatMap(([name, image]) => (typeof image === 'string' ? [[name, image]] : [])));
  } catch {
    return new Map();
  }
}
