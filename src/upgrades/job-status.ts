// Builds the status object of a job and its entry in the history.
import { type Job, stateCodes } from './job-table.ts';
import type { Message } from './messages.ts';

export const noUpgradeStatus = {
  status: { state: 'no_upgrade', code: stateCodes.no_upgrade, messages: [] },
} as const;

/** Messages of a job, and how many it has in all. */
export type JobMessages = { readonly messages: readonly Message[]; readonly count: number };

export function jobStatus(job: Job, { messages, count }: JobMessages, at: number) {
  return {
    status: { state: job.state, code: stateCodes[job.state], messages },
    jobId: job.id,
    messageCount: count,
    progress: jobProgress(job, at),
  };
}

/** `doneInRun` leaves out the workloads of earlier runs, because `elapsedMs` does not include their time. */
export function jobProgress(job: Job, at: number) {
  const { state, workloadsDone: done, workloads: total, doneBeforeRun, runStartedAt, endedAt } = job;
  const elapsedMs = Math.max(0, (endedAt ?? at) - runStartedAt);
  const percent = total === 0 ? (state === 'success' ? 100 : 0) : Math.floor((100 * done) / total);
  const doneInRun = done - doneBeforeRun;
  const estimate = doneInRun <= 0 ? null : Math.round((elapsedMs / doneInRun) * (total - done));
  return { done, total, percent, elapsedMs, remainingMs: state === 'in_progress' ? estimate : 0 };
}

export function jobToHistoryEntry(job: Job) {
  const { id, operation, from, to, state, startedAt, endedAt, startedBy } = job;
  return { id, operation, from, to, state, code: stateCodes[state], startedAt, endedAt, startedBy };
}
