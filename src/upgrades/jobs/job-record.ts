// Stores a job: its next state and the messages of the change, in one update.
import type { Transaction } from '../../store/transaction.ts';
import { type EndState, type Job, type Reverting, newestJob, runTotals } from './job-table.ts';
import { type Code, type Facts, writeMessage } from '../planning/messages.ts';

/** A message: its code, and the facts that the job itself does not give. */
export type Line = readonly [Code, Partial<Facts>?];

/** The times of messages never go back, even if the clock does. */
export function record(transaction: Transaction, job: Job, lines: readonly Line[], at: number): Job {
  const when = Math.max(at, job.lastMessageAt);
  const defaults: Facts = {
    operation: job.operation,
    from: job.from,
    to: job.to,
    name: '',
    image: '',
    done: job.workloadsDone,
    total: job.workloads,
    elapsedMs: when - job.runStartedAt,
    cause: '',
    isSkipped: false,
    isPatched: true,
    databases: '{}',
    stepJob: '',
    startAt: job.startAt === null ? '' : new Date(job.startAt).toISOString(),
  };
  const messages = lines.map(([code, facts]) => writeMessage(code, { ...defaults, ...facts }, when));
  const stored = {
    ...job,
    waitingFor: null,
    lastMessageAt: when,
    messageCount: job.messageCount + messages.length,
  };
  transaction.write(newestJob, stored);
  transaction.jobs.appendMessages(job.id, job.messageCount, messages);
  return stored;
}

export function endJob(
  transaction: Transaction,
  job: Job,
  state: EndState,
  lines: readonly Line[],
  at: number,
  reverting: Reverting | null = null,
): Job {
  if (state !== 'failed') transaction.jobs.deletePlan(job.id);
  const endedAt = Math.max(at, job.lastMessageAt);
  countRun(transaction, job, state, endedAt);
  return record(transaction, { ...job, state, endedAt, reverting, announced: false }, lines, at);
}

function countRun(transaction: Transaction, { operation }: Job, state: EndState, endedAt: number): void {
  const { ended, lastSuccessAt } = transaction.read(runTotals);
  const counts = ended[operation];
  transaction.write(runTotals, {
    ended: { ...ended, [operation]: { ...counts, [state]: counts[state] + 1 } },
    lastSuccessAt: state === 'success' ? endedAt : lastSuccessAt,
  });
}

/** The start of read-only mode, unless this run has announced it. */
export function announcement(job: Job): Line[] {
  return job.announced ? [] : [[2165]];
}
