// Recognises workloads that a job changed which this store does not know: the annotations are left, and the store of that job is lost.
import { annotations, doneStates, startStates } from './patch.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

const changingStates = [startStates.image, doneStates.image, startStates.formerImage];

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

export function formatForeignJob(found: ClusterWorkload, isMoved: boolean): string {
  const present = new Map(found.containers.map(({ name, image }) => [name, image]));
  const former = [...recordedImages(found)]
    .filter(([name, image]) => present.get(name) !== image)
    .map(([name, image]) => `${name}: ${image}`)
    .join(', ');
  const effect = isMoved
    ? ` If this upgrade is reverted, it gets the images from before that job (${former}).`
    : ` This upgrade does not change it; the images from before that job are ${former}.`;
  return (
    `${pathOf(found)} was changed by the job ${jobOf(found) ?? ''}, which this Steward does not know ` +
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
