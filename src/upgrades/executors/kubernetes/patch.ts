// Builds the patches of a workload. One patch changes the images and records the change in annotations.
import { isJsonObject, parseJson } from '../../../lib/json.ts';
import type { Direction, Workload } from '../workloads.ts';
import type { StepContext } from '../executor.ts';
import type { JobMark } from '../inventory/found.ts';
import type { ClusterWorkload } from './workload.ts';

/** For administrators, and for a process that takes over the job. */
export const annotations = {
  job: 'steward/job',
  state: 'steward/state',
  /**
   * The run and the step of the job that have set the images last. A process that takes over claims the change of the one
   * before it; a resumed run claims only its own.
   */
  change: 'steward/change',
  /** The images from before the job. */
  formerImages: 'steward/former-images',
} as const;

export const states: Readonly<Record<Direction, string>> = { image: 'updated', formerImage: 'put back' };

/**
 * All annotations are part of this patch. A patch of annotations alone would raise the generation of a Deployment:
 * its controller would have to observe it again after the rollout. `resourceVersion` makes the API server refuse
 * the patch if the workload has changed since it was read.
 */
export function buildImagePatch(
  found: ClusterWorkload,
  { parts }: Workload,
  direction: Direction,
  { jobId, change }: Pick<StepContext, 'jobId' | 'change'>,
): object {
  // A strategic merge takes over the order of the patch. In another order than that of the workload, it would
  // change more than images.
  const images = (isInit: boolean) =>
    found.containers
      .filter((one) => one.isInit === isInit)
      .flatMap(({ name }) => {
        const part = parts.find(({ container }) => container === name);
        return part ? { name, image: part[direction] } : [];
      });
  const [containers, initContainers] = [images(false), images(true)];
  const isRecorded = direction === 'image' && isChangedBy(found, direction, jobId);
  const recorded = isRecorded ? parseImages(found.annotations[annotations.formerImages]) : [];
  return {
    metadata: {
      resourceVersion: found.resourceVersion,
      annotations: {
        [annotations.job]: jobId,
        [annotations.state]: states[direction],
        [annotations.change]: change,
        [annotations.formerImages]: JSON.stringify(
          Object.fromEntries([...parts.map((part) => [part.container, part.formerImage]), ...recorded]),
        ),
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

/** Undefined if no job has set the images of the workload. */
export function readMark({ annotations: found }: ClusterWorkload): JobMark | undefined {
  const { [annotations.job]: jobId, [annotations.state]: state = '' } = found;
  const { [annotations.formerImages]: formerImages = '' } = found;
  if (jobId === undefined) return undefined;
  return {
    jobId,
    direction: (['image', 'formerImage'] as const).find((one) => states[one] === state),
    formerImages: parseImages(formerImages),
    text: `${annotations.state}: ${state}; ${annotations.formerImages}: ${formerImages}`,
  };
}

/** Other clients can write annotations, so the value may be anything. */
function parseImages(text: string | undefined): ReadonlyMap<string, string> {
  const value = parseJson(text ?? '{}');
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  return new Map(entries.flatMap(([name, image]) => (typeof image === 'string' ? [[name, image]] : [])));
}

/** Whether this step has set the images before: by an earlier try, or in a process that this one has replaced. */
export function isPatchedBy(
  found: ClusterWorkload,
  direction: Direction,
  { jobId, change }: Pick<StepContext, 'jobId' | 'change'>,
): boolean {
  return isChangedBy(found, direction, jobId) && found.annotations[annotations.change] === change;
}

function isChangedBy({ annotations: found }: ClusterWorkload, direction: Direction, jobId: string): boolean {
  return found[annotations.job] === jobId && found[annotations.state] === states[direction];
}
