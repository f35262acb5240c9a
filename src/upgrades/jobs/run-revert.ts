// Reverts the workloads of a failed or cancelled patch, one after another, until its deadline.
import { isUnavailable } from '../../lib/errors.ts';
import { RefusedError } from '../executors/executor.ts';
import {
  type AppliedStep,
  type RevertedStep,
  finishReverting,
  nextToRevert,
  revertStep,
  stopReverting,
  waitsForRefused,
} from './job-reverting.ts';
import type { Job, StoredPlan } from './job-table.ts';
import { type RunContext, callExecutor, errorText, updateJob } from './run-step.ts';

export async function revertNext(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  signal: AbortSignal,
): Promise<void> {
  const applied = nextToRevert(job, plan);
  const why = reasonToStop(run, job);
  if (!applied)
    await updateJob(run, job, (transaction, current, at) => finishReverting(transaction, current, plan, at));
  else if (why !== undefined)
    await updateJob(run, job, (transaction, current, at) =>
      stopReverting(transaction, current, plan, why, at),
    );
  else await revertWorkload(run, job, plan, applied, signal);
}

/**
 * Tries each workload once: the executor retries what may succeed later, and the other workloads must not wait for
 * this one.
 */
async function revertWorkload(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  applied: AppliedStep,
  signal: AbortSignal,
): Promise<void> {
  const reverted = waitsForRefused(job, plan, applied)
    ? ({ ...applied, outcome: 'refused' } as const)
    : await tryRevert(run, job, applied, signal);
  if (!reverted) return;
  await updateJob(run, job, (transaction, current, at) =>
    revertStep(transaction, current, plan, reverted, at),
  );
}

/** Undefined if the process stops, or the deadline has passed: then this workload is one of those that are left. */
async function tryRevert(
  run: RunContext,
  job: Job,
  applied: AppliedStep,
  signal: AbortSignal,
): Promise<RevertedStep | undefined> {
  const { workload, seqNum } = applied.step;
  if (!workload) return { ...applied, outcome: 'already back' };
  try {
    const { isPatched } = await callExecutor(
      run,
      job,
      { action: 'rollback', seqNum },
      (context) => run.executor.rollback(workload, context),
      { stopping: signal, remainingMs: deadlineOf(run, job) - run.runtime.now() },
    );
    return { ...applied, outcome: isPatched ? 'put back' : 'already back' };
  } catch (error) {
    if (signal.aborted || run.runtime.now() >= deadlineOf(run, job)) return undefined;
    if (isUnavailable(error)) throw error;
    const outcome = error instanceof RefusedError ? 'refused' : 'failed';
    return { ...applied, outcome, cause: errorText(error) };
  }
}

function deadlineOf({ revertTimeoutMs }: RunContext, { reverting }: Job): number {
  return (reverting?.since ?? Infinity) + revertTimeoutMs;
}

function reasonToStop(run: RunContext, job: Job): string | undefined {
  const stoppedBy = job.reverting?.stoppedBy;
  if (stoppedBy !== undefined) return `${stoppedBy} stopped it.`;
  return run.runtime.now() >= deadlineOf(run, job)
    ? `it took longer than ${run.revertTimeoutMs / 1000} seconds.`
    : undefined;
}
