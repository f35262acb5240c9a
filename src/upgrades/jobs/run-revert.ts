// Puts back workloads, those of a rollback, or of a failed or cancelled patch until its deadline. Begins up to
// `parallelism` of them before it waits for the first.
import { isUnavailable } from '../../lib/errors.ts';
import { RefusedError } from '../executors/executor.ts';
import type { Step } from '../planning/plan.ts';
import {
  type RevertResult,
  finishReverting,
  refusedSubjects,
  revertStep,
  stepsToRevert,
  stopReverting,
} from './job-reverting.ts';
import { hasBegun, stepToBegin } from './job-steps.ts';
import { type JobRule, type RunningJob, callExecutor, errorText, runStep, updateJob } from './run-step.ts';

export async function rollBackNext(running: RunningJob, step: Step): Promise<void> {
  const { job, plan } = running;
  const waiting = plan.steps.slice(step.seqNum).filter(({ action }) => action === 'rollback');
  const ahead = stepToBegin(job, plan, waiting);
  await runStep(running, ahead ?? step, ahead !== undefined);
}

export async function revertNext(running: RunningJob): Promise<void> {
  const { job, plan } = running;
  const isStopping = job.reverting?.stoppedBy !== undefined;
  const left = stepsToRevert(job, plan);
  const step = (isStopping && left.find((one) => hasBegun(job, one))) || left[0];
  const why = step && reasonToStop(running, step);
  if (!step)
    await update(running, (transaction, current, at) => finishReverting(transaction, current, plan, at));
  else if (why !== undefined)
    await update(running, (transaction, current, at) => stopReverting(transaction, current, plan, why, at));
  else {
    const refused = refusedSubjects(job, plan);
    const free = left.filter(({ subject }) => !refused.has(subject));
    const ahead = isStopping ? undefined : stepToBegin(job, plan, free);
    const tried = ahead ?? step;
    const result = refused.has(tried.subject)
      ? ({ outcome: 'refused' } as const)
      : await tryRevert(running, tried, ahead !== undefined);
    if (result)
      await update(running, (transaction, current, at) =>
        revertStep(transaction, current, plan, { ...result, step: tried }, at),
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
async function tryRevert(
  running: RunningJob,
  step: Step,
  isAhead: boolean,
): Promise<RevertResult | undefined> {
  const { executor, runtime, job, signal } = running;
  const { workload, seqNum, subject } = step;
  if (!workload) return { outcome: 'already back' };
  try {
    return await callExecutor(
      running,
      { action: 'rollback', seqNum, name: `Put back ${subject}` },
      async (context): Promise<RevertResult> => {
        if (!isAhead) {
          const { isPatched } = await executor.rollback(workload, context);
          return { outcome: isPatched ? 'put back' : 'already back' };
        }
        await executor.beginRollback(workload, context);
        return { outcome: 'begun' };
      },
      { remainingMs: deadlineOf(running) - runtime.now() },
    );
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

function reasonToStop(running: RunningJob, step: Step): string | undefined {
  const stoppedBy = running.job.reverting?.stoppedBy;
  if (stoppedBy !== undefined && !hasBegun(running.job, step)) return `${stoppedBy} stopped it.`;
  return running.runtime.now() >= deadlineOf(running)
    ? `it took longer than ${running.revertTimeoutMs / 1000} seconds.`
    : undefined;
}
