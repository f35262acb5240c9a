// Builds the status object of a job and its entry in the history.
import { type Job, stateCodes } from './job-table.ts';
import type { Message } from './messages.ts';
import { remainingMs } from './progress.ts';

export const noUpgradeStatus = {
  status: { state: 'no_upgrade', code: stateCodes.no_upgrade, messages: [] },
} as const;

/** Messages of a job, and how many it has in all. */
export type JobMessages = { readonly messages: readonly Message[]; readonly count: number };

export function jobStatus(job: Job, { messages, count }: JobMessages, at: number) {
  return {
    status: { state: job.state, code: stateCodes[job.state], messages },
    jobId: job.id,
    ...(job.startAt !== null && { startAt: job.startAt }),
    messageCount: count,
    progress: jobProgress(job, at),
  };
}

export function jobProgress(job: Job, at: number) {
  const { state, workloadsDone: done, workloads: total, progress, startedAt, runStartedAt, endedAt } = job;
  const elapsedMs = startedAt === null ? 0 : Math.max(0, (endedAt ?? at) - runStartedAt);
  const estimate = remainingMs(progress, job.reverting?.left.length, at);
  return {
    done,
    total,
    steps: { done: progress.done, total: progress.total },
    percent: state === 'success' ? 100 : progress.percent,
    elapsedMs,
    remainingMs: state === 'scheduled' ? null : state === 'in_progress' ? (estimate ?? null) : 0,
  };
}

export function jobToHistoryEntry(job: Job) {
  const { id, operation, from, to, state, startAt, startedAt, endedAt, startedBy } = job;
  const times = { ...(startAt !== null && { startAt }), startedAt, endedAt };
  return { id, operation, from, to, state, code: stateCodes[state], ...times, startedBy };
}
