// Runs the steps of a job: asks the executor for one step, and records the step with its messages in one update. If
// another process has taken the job over, an update changes nothing, and the executor gets an error when it asserts
// the ownership.
import { TimeoutError, withTimeout } from '../../lib/async.ts';
import { isUnavailable } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { toXmlText, truncate } from '../../lib/text.ts';
import type { Store } from '../../store/store.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Executor, RepairedWorkload, StepContext, TemplateRun, Wait } from '../executors/executor.ts';
import { type Step, movedWorkloads } from '../planning/plan.ts';
import { nameOfStepJob } from '../executors/steps.ts';
import { beginCancel } from './job-reverting.ts';
import {
  type StepOutcome,
  advanceJob,
  attemptOf,
  beginStep,
  hasJob,
  needsBegin,
  noteBegun,
  recordRepairs,
} from './job-steps.ts';
import { type Job, type StoredPlan, newestJob } from './job-table.ts';
import { type OnJobChange, failJob } from './job.ts';
import type { WaitRecorder } from './wait-recorder.ts';

/** The job keeps the text, and every later step stores the job again. */
export const maxFailure = 4000;

export type RunContext = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly stepTimeoutMs: number;
  readonly revertTimeoutMs: number;
  readonly notify: OnJobChange;
  readonly waits: WaitRecorder;
  /** For the log. */
  readonly onStepFailed?: (job: Job, step: string, error: unknown) => void;
};

/** A job for which the runner decides what happens next. `signal` is aborted when the process stops. */
export type RunningJob = RunContext & {
  readonly job: Job;
  readonly plan: StoredPlan;
  readonly signal: AbortSignal;
};

/** `isAhead`: begins to roll back the workload of a step that is not yet due. */
export async function runStep(running: RunningJob, step: Step, isAhead = false): Promise<void> {
  let outcome: StepOutcome = {};
  let failure: string | undefined;
  const repaired: RepairedWorkload[] = [];
  const interruption = interruptOnCancel(running, step);
  const isBeginning = needsBegin(running.job, step);
  const call = async (context: StepContext): Promise<StepOutcome> => {
    if (hasJob(step) && !running.job.isBegun)
      await running.executor.startTemplate(templateRun(running, step), context);
    if (isAhead && step.workload) await running.executor.beginRollback(step.workload, context);
    return isBeginning || isAhead ? {} : perform(running, step, context, repaired);
  };
  try {
    if (!step.isSkipped) outcome = await callExecutor(running, step, call, { stopping: interruption.signal });
  } catch (error) {
    // An interrupted step has not failed: the process that takes the job over repeats it, or the next decision cancels
    // the job.
    if (interruption.signal.aborted) return;
    if (isUnavailable(error)) throw error;
    failure = errorText(error);
    running.onStepFailed?.(running.job, step.name, error);
  } finally {
    interruption.end();
  }
  await updateJob(running, running.job, (transaction, current, at) => {
    const recorded = recordRepairs(transaction, current, repaired, at);
    if (failure !== undefined)
      return failJob(transaction, recorded, running.plan, { step, cause: failure }, at);
    if (isBeginning) return beginStep(transaction, recorded, step, at);
    if (isAhead) return noteBegun(transaction, recorded, step, at);
    return advanceJob(transaction, recorded, running.plan, step, outcome, at);
  });
}

async function perform(
  running: RunningJob,
  step: Step,
  context: StepContext,
  repaired: RepairedWorkload[],
): Promise<StepOutcome> {
  const { executor, job, plan } = running;
  const { id, action, workload } = step;
  if (action === 'run-template') {
    const { result } = await executor.runTemplate(templateRun(running, step), context);
    return result === undefined ? {} : { databases: toXmlText(result) };
  }
  if (action === 'apply' && workload) return executor.apply(workload, context);
  if (action === 'rollback' && workload) return executor.rollback(workload, context);
  if (action === 'check') {
    const which = job.operation === 'rollback' ? 'formerImage' : 'image';
    // A patch has reverted its workloads, so the steps of a resumed one have moved them again.
    const mayRepair = job.kind !== 'patch' && attemptOf(job, step) > 1;
    await executor.check(movedWorkloads(plan), which, context, mayRepair ? repaired : undefined);
  } else if (action === 'verify' && workload) await executor.verify(workload, context);
  else await executor.perform(id, context);
  return {};
}

/** A Job may take long, so a cancelled job does not wait for its end, unlike for that of other steps. */
function interruptOnCancel({ store, job: { id, fence }, signal }: RunningJob, step: Step) {
  const interrupted = new AbortController();
  const abort = () => interrupted.abort();
  const abortIfCancelled = () => {
    const newest = store.read(newestJob);
    if (newest?.id === id && newest.fence === fence && newest.cancelledBy !== null) abort();
  };
  signal.addEventListener('abort', abort);
  const stopListening = hasJob(step) ? store.onUpdate(abortIfCancelled) : () => undefined;
  if (signal.aborted) abort();
  return {
    signal: interrupted.signal,
    end: () => {
      signal.removeEventListener('abort', abort);
      stopListening();
    },
  };
}

export async function cancelStep(running: RunningJob, step: Step | undefined): Promise<void> {
  const cause = step && hasJob(step) ? await endJobOf(running, step) : undefined;
  if (running.signal.aborted) return;
  await updateJob(running, running.job, (transaction, current, at) =>
    step && cause !== undefined
      ? failJob(transaction, current, running.plan, { step, cause }, at)
      : beginCancel(transaction, current, running.plan, at),
  );
}

/** Returns why the Job could not be ended. */
async function endJobOf(running: RunningJob, step: Step): Promise<string | undefined> {
  const template = templateRun(running, step);
  try {
    await callExecutor(running, step, (context) => running.executor.stopTemplate(template, context));
    return undefined;
  } catch (error) {
    if (isUnavailable(error)) throw error;
    return `The Job ${template.jobName} could not be deleted: ${errorText(error)}`;
  }
}

function templateRun({ job, plan }: RunningJob, step: Step): TemplateRun {
  const { id, template, seqNum } = step;
  const jobName = nameOfStepJob(job.id, seqNum, attemptOf(job, step));
  const { from, to } = plan.hops[step.hop ?? 0] ?? job;
  return { step: id, template, jobName, from, to };
}

/** A Job has the time of a step, and ends by itself after it. The step waits longer, to see the Job and its pods end. */
const jobMarginMs = 60_000;

/** Calls the executor for a step, within the time of a step. */
export async function callExecutor<T>(
  running: RunningJob,
  { action, seqNum, name }: Pick<Step, 'action' | 'seqNum' | 'name'>,
  call: (context: StepContext) => Promise<T>,
  {
    stopping = running.signal,
    remainingMs = Infinity,
  }: { stopping?: AbortSignal; remainingMs?: number } = {},
): Promise<T> {
  const { store, runtime, stepTimeoutMs, job, waits } = running;
  const { id: jobId, fence, runStartedAt, from, to } = job;
  const change = `${job.begun?.[seqNum] ?? job.run}-${seqNum}-${action}`;
  const marginMs = action === 'run-template' ? jobMarginMs : 0;
  const ms = Math.min(stepTimeoutMs + marginMs, remainingMs);
  const assertOwnership = async () => {
    await store.refresh();
    const newest = store.read(newestJob);
    if (newest?.id !== jobId || newest.fence !== fence)
      throw new Error('another process has taken over the job.');
  };
  const message = `it took longer than ${ms / 1000} seconds`;
  let last: Wait | undefined;
  const report = (wait: Wait) => {
    last = wait;
    waits.report(job, name, wait);
  };
  try {
    return await withTimeout(
      runtime,
      (signal) => call({ jobId, fence, from, to, runStartedAt, change, assertOwnership, signal, report }),
      { ms, message, stopping },
    );
  } catch (error) {
    if (!(error instanceof TimeoutError) || error.message !== message) throw error;
    throw new TimeoutError(last === undefined ? `${message}.` : `${message}: ${last.reason}.`);
  }
}

/** Undefined if the job does not change. */
export type JobRule = (transaction: Transaction, job: Job, at: number) => Job | undefined;

/**
 * Does nothing if the job has changed since `seen` was read: another process has taken it over, started, moved or
 * ended it, or an earlier call stored the same update and only the answer of the database was lost.
 */
export function updateJob(
  { store, runtime, notify }: Pick<RunContext, 'store' | 'runtime' | 'notify'>,
  seen: Job,
  rule: JobRule,
): Promise<Job | undefined> {
  const at = runtime.now();
  return store.update((transaction) => {
    const job = transaction.read(newestJob);
    if (job?.id !== seen.id || job.state !== seen.state || job.fence !== seen.fence) return undefined;
    if (job.revision !== seen.revision) return undefined;
    const changed = rule(transaction, { ...job, revision: job.revision + 1 }, at);
    if (changed && changed.state !== seen.state) notify(transaction, changed, at);
    return changed;
  });
}

/** The text comes from the executor and may hold characters that neither XML nor the database accepts. */
export function errorText(error: unknown): string {
  return toXmlText(truncate((error as Error).message, maxFailure));
}
