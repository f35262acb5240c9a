// Reverts the workloads of a failed or cancelled patch, one after another, until its deadline.
import { isUnavailable } from '../../lib/errors.ts';
import { RefusedError } from '../executors/executor.ts';
import type { Step } from '../planning/plan.ts';
import {
  type RevertResult,
  finishReverting,
  nextToRevert,
  revertStep,
  stopReverting,
  waitsForRefused,
} from './job-reverting.ts';
import { type JobRule, type RunningJob, callExecutor, errorText, updateJob } from './run-step.ts';

export async function revertNext(running: RunningJob): Promise<void> {
  const { job, plan } = running;
  const step = nextToRevert(job, plan);
  const why = reasonToStop(running);
  if (!step)
    await update(running, (transaction, current, at) => finishReverting(transaction, current, plan, at));
  else if (why !== undefined)
    await update(running, (transaction, current, at) => stopReverting(transaction, current, plan, why, at));
  else {
    const result = await tryRevert(running, step);
    if (result)
      await update(running, (transaction, current, at) =>
        revertStep(transaction, current, plan, { ...result, step }, at),
      );
  }
}

function update(running: RunningJob, rule: JobRule) {
  return updateJob(running, running.job, rule);
}

/**
 * Tries each workload once: the executor retries what may succeed later, and the other workloads must not wait for
 * this one. Undefined if the process stops, or the deadline has passed: then this workload is one of those that are
 * left.
 */
async function tryRevert(running: RunningJob, step: Step): Promise<RevertResult | undefined> {
  const { executor, runtime, job, plan, signal } = running;
  const { workload, seqNum, subject } = step;
  if (waitsForRefused(job, plan, step)) return { outcome: 'refused' };
  if (!workload) return { outcome: 'already back' };
  try {
    const { isPatched } = await callExecutor(
      running,
      { action: 'rollback', seqNum, name: `Put back ${subject}` },
      (context) => executor.rollback(workload, context),
      { remainingMs: deadlineOf(running) - runtime.now() },
    );
    return { outcome: isPatched ? 'put back' : 'already back' };
  } catch (error) {
    if (signal.aborted || runtime.now() >= deadlineOf(running)) return undefined;
    if (isUnavailable(error)) throw error;
    running.onStepFailed?.(job, `Put back ${subject}`, error);
    const outcome = error instanceof RefusedError ? 'refused' : 'failed';
    return { outcome, cause: errorText(error) };
  }
}

function deadlineOf({ revertTimeoutMs, job: { reverting } }: RunningJob): number {
  return (reverting?.since ?? Infinity) + revertTimeoutMs;
}

function reasonToStop(running: RunningJob): string | undefined {
  const stoppedBy = running.job.reverting?.stoppedBy;
  if (stoppedBy !== undefined) return `${stoppedBy} stopped it.`;
  return running.runtime.now() >= deadlineOf(running)
    ? `it took longer than ${running.revertTimeoutMs / 1000} seconds.`
    : undefined;
}
