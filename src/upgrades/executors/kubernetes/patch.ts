// Builds the patches of a workload. One patch changes the images and records the change in annotations.
import { isJsonObject, parseJson } from '../../../lib/json.ts';
import type { Direction, Workload } from '../workloads.ts';
import type { StepContext } from '../executor.ts';
import type { ImageRecord, JobMark } from '../inventory/found.ts';
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
  /** The images from before earlier jobs too, by the version that was installed then. A rollback sets them. */
  records: 'steward/records',
} as const;

export const states: Readonly<Record<Direction, string>> = { image: 'updated', formerImage: 'put back' };

/**
 * All annotations are part of this patch. A patch of annotations alone would raise the generation of a Deployment:
 * its controller would have to observe it again after the rollout. `resourceVersion` makes the API server refuse
 * the patch if the workload has changed since it was read.
 */
export function buildImagePatch(
  found: ClusterWorkload,
  workload: Workload,
  direction: Direction,
  context: Pick<StepContext, 'jobId' | 'change' | 'from' | 'to'>,
): object {
  const { parts } = workload;
  const { jobId, change } = context;
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
        [annotations.records]: formatRecords(nextRecords(found, workload, direction, context)),
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

/** More could not be rolled back one after another in practice, and annotations must stay small. */
const maxRecords = 20;

/** A rollback drops the records after the one that it uses; a patch that is reverted drops its own. */
function nextRecords(
  found: ClusterWorkload,
  { parts, record }: Workload,
  direction: Direction,
  { jobId, from, to }: Pick<StepContext, 'jobId' | 'from' | 'to'>,
): readonly ImageRecord[] {
  const records = parseRecords(found.annotations[annotations.records]);
  if (direction === 'formerImage') {
    const used = records.findIndex(({ version }) => version === record);
    return record === undefined ? records.filter((one) => one.jobId !== jobId) : records.slice(0, used + 1);
  }
  const own = records.find((one) => one.version === from && one.jobId === jobId);
  // A repair replaces images that nobody has planned.
  if (from === to) return records;
  const images = new Map(
    parts.flatMap((part) => (part.formerImage === null ? [] : [[part.container, part.formerImage]])),
  );
  const next = { version: from, jobId, images: new Map([...images, ...(own?.images ?? [])]) };
  return [...records.filter(({ version }) => version !== from), next].slice(-maxRecords);
}

function formatRecords(records: readonly ImageRecord[]): string {
  const entries = records.map(({ version, jobId, images }) => [
    version,
    { job: jobId, images: Object.fromEntries(images) },
  ]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** Other clients can write annotations, so the value may be anything. */
function parseRecords(text = '{}'): ImageRecord[] {
  const value = parseJson(text);
  return Object.entries(isJsonObject(value) ? value : {}).flatMap(([version, record]) => {
    if (!isJsonObject(record) || typeof record.job !== 'string') return [];
    return { version, jobId: record.job, images: parseImages(JSON.stringify(record.images ?? {})) };
  });
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
    records: parseRecords(found[annotations.records]),
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
