// Builds the patches of a workload. One patch changes the images and records the change in annotations.
import type { Workload } from '../../workloads.ts';
import type { ClusterWorkload, Direction } from './workload.ts';

/** For administrators, and for a process that takes over the job. */
export const annotations = {
  job: 'steward/job',
  state: 'steward/state',
  formerImages: 'steward/former-images',
  /** The images that the last patch has set. */
  images: 'steward/images',
  /** The time of a ProgressDeadlineExceeded condition from before the patch. rollout.ts ignores that condition. */
  exceededBefore: 'steward/exceeded-before',
} as const;

export const startStates: Readonly<Record<Direction, string>> = {
  image: 'updating',
  formerImage: 'putting back',
};
export const doneStates: Readonly<Record<Direction, string>> = { image: 'updated', formerImage: 'put back' };

/** `resourceVersion` makes the API server refuse the patch if the workload has changed since it was read. */
export function buildImagePatch(
  found: ClusterWorkload,
  { parts }: Workload,
  direction: Direction,
  jobId: string,
): object {
  // A strategic merge takes over the order of the patch. In another order than that of the workload, it would change more than images.
  const images = (isInit: boolean) =>
    found.containers
      .filter((one) => one.isInit === isInit)
      .flatMap(({ name }) => {
        const part = parts.find(({ container }) => container === name);
        return part ? { name, image: part[direction] } : [];
      });
  const [containers, initContainers] = [images(false), images(true)];
  return {
    metadata: {
      resourceVersion: found.resourceVersion,
      annotations: {
        [annotations.job]: jobId,
        [annotations.state]: startStates[direction],
        [annotations.formerImages]: formatParts(parts, 'formerImage'),
        [annotations.images]: formatParts(parts, direction),
        [annotations.exceededBefore]: found.exceeded?.at ?? null,
      },
    },
    spec: {
      template: {
        spec: {
          ...(containers.length > 0 && { containers }),
          ...(initContainers.length > 0 && { initContainers }),
        },
      },
    },
  };
}

function formatParts(parts: Workload['parts'], which: Direction): string {
  return JSON.stringify(Object.fromEntries(parts.map((part) => [part.container, part[which]])));
}

/** Whether the patch of this step was sent before: by an earlier try, or by a process that this one has replaced. */
export function isPatchedBy(found: ClusterWorkload, { parts }: Workload, jobId: string): boolean {
  const { [annotations.job]: job, [annotations.formerImages]: formerImages } = found.annotations;
  const changesImages = parts.some((part) => part.image !== (part.presentImage ?? part.formerImage));
  return changesImages && job === jobId && formerImages === formatParts(parts, 'formerImage');
}

export function buildDonePatch(
  found: ClusterWorkload,
  direction: Direction,
  jobId: string,
): object | undefined {
  const { [annotations.job]: job, [annotations.state]: state } = found.annotations;
  if (job !== jobId || state === doneStates[direction]) return undefined;
  return { metadata: { annotations: { [annotations.state]: doneStates[direction] } } };
}
