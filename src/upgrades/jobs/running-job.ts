// What a run of a job needs, how it calls the executor, and how it updates the job. If another process has taken
// the job over, an update changes nothing, and the executor gets an error when it asserts the ownership.
import { withTimeout } from '../../lib/async.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { toXmlText, truncate } from '../../lib/text.ts';
import type { Store } from '../../store/store.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Executor, StepContext } from '../executors/executor.ts';
import type { Step } from '../planning/plan.ts';
import { type Job, newestJob } from './job-table.ts';
import type { OnJobChange } from './job.ts';

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

/**
 * Does nothing if the job has changed since `seen` was read: another process has taken it over, or an earlier call
 * stored the same update and only the answer of the database was lost.
 */
export function updateJob(
  { store, runtime, notify }: RunContext,
  seen: Job,
  rule: (transaction: Transaction, job: Job, at: number) => Job,
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
