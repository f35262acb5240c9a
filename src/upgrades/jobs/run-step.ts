// Runs the steps of a job: asks the executor for one step, and records the step with its messages in one update. If
// another process has taken the job over, an update changes nothing, and the executor gets an error when it asserts
// the ownership.
import { withTimeout } from '../../lib/async.ts';
import { isUnavailable } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { toXmlText, truncate } from '../../lib/text.ts';
import type { Store } from '../../store/store.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Executor, RepairedWorkload, StepContext, TemplateRun } from '../executors/executor.ts';
import { type Plan, type Step, movedWorkloads } from '../planning/plan.ts';
import { nameOfStepJob } from '../planning/step-ids.ts';
import { beginCancel } from './job-reverting.ts';
import { type StepOutcome, advanceJob, attemptOf, recordRepairs } from './job-steps.ts';
import { type Job, type StoredPlan, newestJob } from './job-table.ts';
import { type OnJobChange, failJob } from './job.ts';

export async function runStep(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step,
  signal: AbortSignal,
): Promise<void> {
  let outcome: StepOutcome = {};
  let failure: string | undefined;
  const repaired: RepairedWorkload[] = [];
  const hasJob = mayHaveJob(step);
  const interruption = interruptOnCancel(run, job, hasJob, signal);
  try {
    if (!step.isSkipped)
      outcome = await callExecutor(
        run,
        job,
        step,
        (context) => perform(run, job, plan, step, context, repaired),
        { stopping: interruption.signal },
      );
  } catch (error) {
    // An interrupted step has not failed: the process that takes the job over repeats it.
    if (signal.aborted) return;
    // The next decision cancels the job.
    if (interruption.signal.aborted) return;
    if (isUnavailable(error)) throw error;
    failure = errorText(error);
  } finally {
    interruption.end();
  }
  await updateJob(run, job, (transaction, current, at) => {
    const recorded = recordRepairs(transaction, current, repaired, at);
    if (failure !== undefined) return failJob(transaction, recorded, plan, { step, cause: failure }, at);
    return advanceJob(transaction, recorded, plan, step, outcome, at);
  });
}

async function perform(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step,
  context: StepContext,
  repaired: RepairedWorkload[],
): Promise<StepOutcome> {
  const { id, action, workload } = step;
  if (action === 'run-template') {
    const { result } = await run.executor.runTemplate(templateRun(job, plan, step), context);
    return result === undefined ? {} : { databases: toXmlText(result) };
  }
  if (action === 'apply' && workload) return run.executor.apply(workload, context);
  if (action === 'rollback' && workload) return run.executor.rollback(workload, context);
  if (action === 'check') {
    const which = job.operation === 'rollback' ? 'formerImage' : 'image';
    // A patch has reverted its workloads, so the steps of a resumed one have moved them again.
    const mayRepair = job.kind !== 'patch' && attemptOf(job, step) > 1;
    await run.executor.check(movedWorkloads(plan), which, context, mayRepair ? repaired : undefined);
  } else if (action === 'verify' && workload) await run.executor.verify(workload, context);
  else await run.executor.perform(id, context);
  return {};
}

/** A Job may take long, so a cancelled job does not wait for its end, unlike for that of other steps. */
function interruptOnCancel(run: RunContext, { id, fence }: Job, hasJob: boolean, stopping: AbortSignal) {
  const interrupted = new AbortController();
  const abort = () => interrupted.abort();
  const abortIfCancelled = () => {
    const newest = run.store.read(newestJob);
    if (newest?.id === id && newest.fence === fence && newest.cancelledBy !== null) abort();
  };
  stopping.addEventListener('abort', abort);
  const stopListening = hasJob ? run.store.onUpdate(abortIfCancelled) : () => undefined;
  if (stopping.aborted) abort();
  return {
    signal: interrupted.signal,
    end: () => {
      stopping.removeEventListener('abort', abort);
      stopListening();
    },
  };
}

export async function cancelStep(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step | undefined,
  signal: AbortSignal,
): Promise<void> {
  const failure = step && (await endJobOf(run, job, plan, step, signal));
  if (signal.aborted) return;
  await updateJob(run, job, (transaction, current, at) =>
    step && failure !== undefined
      ? failJob(transaction, current, plan, { step, cause: failure }, at)
      : beginCancel(transaction, current, plan, at),
  );
}

/** Returns why the Job could not be ended. */
async function endJobOf(
  run: RunContext,
  job: Job,
  plan: StoredPlan,
  step: Step,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!mayHaveJob(step)) return undefined;
  const template = templateRun(job, plan, step);
  try {
    await callExecutor(run, job, step, (context) => run.executor.stopTemplate(template, context), {
      stopping: signal,
    });
    return undefined;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    return `The Job ${template.jobName} could not be deleted: ${errorText(error)}`;
  }
}

function mayHaveJob({ action, isSkipped }: Step): boolean {
  return action === 'run-template' && !isSkipped;
}

function templateRun(job: Job, plan: Plan, step: Step): TemplateRun {
  const { id, template, seqNum } = step;
  const jobName = nameOfStepJob(job.id, seqNum, attemptOf(job, step));
  const { from, to } = plan.hops[step.hop ?? 0] ?? job;
  return { step: id, template, jobName, from, to };
}

/** The job keeps the text, and every later step stores the job again. */
export const maxFailure = 4000;

export type RunContext = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly stepTimeoutMs: number;
  readonly revertTimeoutMs: number;
  readonly notify: OnJobChange;
};

/** A Job has the time of a step, and ends by itself after it. The step waits longer, to see the Job and its pods end. */
const jobMarginMs = 60_000;

/** Calls the executor for a step, within the time of a step. */
export function callExecutor<T>(
  { store, runtime, stepTimeoutMs }: RunContext,
  { id: jobId, fence, run, runStartedAt }: Job,
  { action, seqNum }: Pick<Step, 'action' | 'seqNum'>,
  call: (context: StepContext) => Promise<T>,
  { stopping, remainingMs = Infinity }: { stopping: AbortSignal; remainingMs?: number },
): Promise<T> {
  const change = `${run}-${seqNum}-${action}`;
  const marginMs = action === 'run-template' ? jobMarginMs : 0;
  const ms = Math.min(stepTimeoutMs + marginMs, remainingMs);
  const assertOwnership = async () => {
    await store.refresh();
    const newest = store.read(newestJob);
    if (newest?.id !== jobId || newest.fence !== fence)
      throw new Error('another process has taken over the job.');
  };
  const message = `it took longer than ${ms / 1000} seconds.`;
  return withTimeout(
    runtime,
    (signal) => call({ jobId, fence, runStartedAt, change, assertOwnership, signal }),
    { ms, message, stopping },
  );
}

export type JobRule = (transaction: Transaction, job: Job, at: number) => Job;

/**
 * Does nothing if the job has changed since `seen` was read: another process has taken it over, or an earlier call
 * stored the same update and only the answer of the database was lost.
 */
export function updateJob(
  { store, runtime, notify }: RunContext,
  seen: Job,
  rule: JobRule,
): Promise<Job | undefined> {
  const at = runtime.now();
  return store.update((transaction) => {
    const job = transaction.read(newestJob);
    if (job?.id !== seen.id || job.state !== 'in_progress' || job.fence !== seen.fence) return undefined;
    if (job.revision !== seen.revision) return undefined;
    const changed = rule(transaction, { ...job, revision: job.revision + 1 }, at);
    if (changed.state !== 'in_progress') notify(transaction, changed, at);
    return changed;
  });
}

/** The text comes from the executor and may hold characters that neither XML nor the database accepts. */
export function errorText(error: unknown): string {
  return toXmlText(truncate((error as Error).message, maxFailure));
}
