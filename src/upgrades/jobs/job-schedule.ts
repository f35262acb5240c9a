// The rules of a job that starts later: it is accepted with its plan, and starts only if its second preflight gives the
// same plan. Until then it changes nothing, and the system is not read-only.
import { ServiceError } from '../../lib/errors.ts';
import type { Transaction } from '../../store/transaction.ts';
import { endJob, record } from './job-record.ts';
import type { Job, ScheduledRequest } from './job-table.ts';
import { type NewJob, createJob, startLine } from './job.ts';
import { restartStep } from './progress.ts';

export function scheduleJob(
  transaction: Transaction,
  newJob: NewJob,
  { startAt, request }: { readonly startAt: number; readonly request: ScheduledRequest },
  at: number,
): Job {
  const job = createJob(transaction, newJob, at, request);
  const scheduled: Job = { ...job, state: 'scheduled', startAt, startedAt: null };
  return record(transaction, scheduled, [[2908]], at);
}

export function moveStart(
  transaction: Transaction,
  job: Job,
  { startAt, ignoresWindows }: Pick<Job, 'ignoresWindows'> & { readonly startAt: number },
  at: number,
): Job {
  if (job.state !== 'scheduled')
    throw new ServiceError('conflict', `The job ${job.id} cannot be rescheduled: it is ${job.state}.`);
  const moved = { ...job, startAt, ignoresWindows, revision: job.revision + 1 };
  return record(transaction, moved, [[2909]], at);
}

export function startScheduled(transaction: Transaction, job: Job, runner: string, at: number): Job {
  const started: Job = {
    ...job,
    state: 'in_progress',
    runner,
    fence: job.fence + 1,
    startedAt: at,
    runStartedAt: at,
    progress: restartStep(job.progress, at),
  };
  return record(transaction, started, [startLine(started)], at);
}

export function failScheduled(
  transaction: Transaction,
  job: Job,
  { cause, hasMissedStart }: { readonly cause: string; readonly hasMissedStart: boolean },
  at: number,
): Job {
  transaction.jobs.deletePlan(job.id);
  const failed = { ...job, hasMissedStart, reason: `Start: ${cause}` };
  return endJob(transaction, failed, 'failed', [[2901, { name: 'Start', cause }]], at);
}
