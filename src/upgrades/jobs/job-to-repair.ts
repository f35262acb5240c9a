// Which failed job must be repaired before other jobs may start, and which upgrades repair it.
import type { Reader } from '../../store/state.ts';
import { deployment, installedVersions } from '../versions/deployment.ts';
import { type Job, hasInstalled, jobBefore, newestJob } from './job-table.ts';

/**
 * A failed release or rollback leaves a mixture of versions, so only a job that repairs it may start then. A failed
 * patch leaves one only if it has stopped reverting its workloads.
 */
export function reasonNotToStart(reader: Reader, wanted: WantedJob): string | undefined {
  const newest = reader.read(newestJob);
  if (newest?.state === 'in_progress') return `The job ${newest.id} is in progress.`;
  if (newest?.state === 'scheduled' && newest.startAt !== null)
    return `The job ${newest.id} is scheduled for ${new Date(newest.startAt).toISOString()}.`;
  const last = findJobToRepair(reader);
  if (!last || repairs(reader, last, wanted)) return undefined;
  const remedies = [
    ...(last.id === newest?.id ? ['resume it'] : []),
    ...(last.kind === 'rollback' ? [`roll back to ${last.targetId} again`] : []),
    ...repairTargets(reader, last).map((id) => `upgrade to ${id} again`),
  ];
  const state = last.reverting ? 'has not reverted all of its workloads' : 'has failed';
  return `The job ${last.id} to ${last.to} ${state}: ${remedies.join(', or ')}.`;
}

export function findJobToRepair(reader: Reader): Job | undefined {
  const newest = reader.read(newestJob);
  if (!newest) return undefined;
  return needsRepair(newest) ? newest : jobToRepairAfter(reader, newest);
}

function needsRepair({ state, kind, reverting, startedAt }: Job): boolean {
  return state === 'failed' && startedAt !== null && (kind !== 'patch' || Boolean(reverting));
}

/**
 * The job that the next ones must repair, once `newest` is archived. A failed job stays it until its hop is
 * installed, even if later ones finish or fail in other hops: only that hop replaces all images that it has left.
 */
export function jobToRepairAfter(reader: Reader, newest: Job): Job | undefined {
  const before = reader.read(jobBefore);
  const isLeft =
    before !== null &&
    needsRepair(before) &&
    !hasRepairedRollback(newest, before) &&
    ![before.targetId, failedVersion(before)].some((id) => hasInstalled(newest, id)) &&
    !(needsRepair(newest) && failedVersion(newest) === failedVersion(before));
  if (isLeft) return before;
  return needsRepair(newest) ? newest : undefined;
}

/** By the same rollback, or by a repair of the version that the rollback started from. */
function hasRepairedRollback({ state, kind, targetId, from, to }: Job, failed: Job): boolean {
  if (failed.kind !== 'rollback' || state !== 'success') return false;
  return kind === 'rollback' ? targetId === failed.targetId : from === failed.from && to === from;
}

/** Undefined if all hops are finished. */
function currentHop({ hops }: Job) {
  return hops.all[hops.done];
}

/** The release of the hop that has failed, or the last of its patches. */
function failedVersion(job: Job): string {
  return currentHop(job)?.version ?? job.targetId;
}

type WantedJob = Pick<Job, 'operation' | 'targetId'>;

/** Whether this job repairs the failed one. */
export function repairs(reader: Reader, failed: Job, { operation, targetId }: WantedJob): boolean {
  if (operation === 'rollback') return failed.kind === 'rollback' && targetId === failed.targetId;
  return repairTargets(reader, failed).includes(targetId);
}

/**
 * The target, and the release of the hop that has failed. After a rollback: the version that is still installed, whose
 * images the workloads get again.
 */
function repairTargets(reader: Reader, failed: Job): string[] {
  const { kind, targetId } = failed;
  if (kind === 'rollback')
    return installedVersions(reader.read(deployment))
      .slice(-1)
      .map(({ id }) => id);
  if (kind === 'patch') return [];
  const isPatchHop = currentHop(failed)?.isRelease === false;
  return isPatchHop ? [targetId] : [...new Set([targetId, failedVersion(failed)])];
}

/** Whether a failed job has left deployments with images of the version that it was installing. */
export function hasMixture({ workloadsDone, timeline }: Job): boolean {
  return workloadsDone > timeline.components.reduce((sum, { kept = 0 }) => sum + kept, 0);
}
