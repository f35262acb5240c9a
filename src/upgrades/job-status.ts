// Builds the status object of a job and its entry in the history.
import type { Reader } from '../store/transaction.ts';
import { type Job, messages, stateCodes } from './job-table.ts';

export function jobStatus(reader: Reader, job: Job | undefined, at: number, after = 0) {
  if (!job) return { status: { state: 'no_upgrade', code: stateCodes.no_upgrade, messages: [] } };
  const all = reader.entries(messages, job.id);
  return {
    status: { state: job.state, code: stateCodes[job.state], messages: after === 0 ? all : all.slice(after) },
    jobId: job.id,
    messageCount: all.length,
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
