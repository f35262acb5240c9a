// An upgrade job as a state machine (spec 3.1, contract 6).
//
// A job is `in_progress` from the moment it is accepted until its run ends in `success`, `failed` or `cancelled`; a failed one
// may be resumed, which begins a new run. `next` is the first step of its plan that is not done: it moves on as steps are done, and
// back when a failed or cancelled patch puts its workloads back, newest first (`reverting`). Read-only mode is nothing of its own: the
// system is read-only while a job is in progress, so it cannot stay on. Each run announces it once (2165) and its end once (2166), whatever
// happens to the process in between; the end of a run, its closing messages and its state are one update.
import { ServiceError } from '../errors.ts';
import type { Reader, Transaction } from '../store/transaction.ts';
import {
  type Job,
  type JobState,
  jobs,
  listJobs,
  messages,
  newestJob,
  newestJobId,
  plans,
} from './job-table.ts';
import { type Code, type Facts, writeMessage } from './messages.ts';
import type { Plan, Step } from './plan.ts';
import { type Deployment, deployment } from './deployment.ts';
import { formatImages } from './workloads.ts';

export type NewJob = Pick<
  Job,
  'id' | 'operation' | 'kind' | 'targetId' | 'installs' | 'from' | 'to' | 'startedBy' | 'runner' | 'uploads'
> & {
  readonly plan: Plan;
  readonly after: Deployment;
};

export function startJob(transaction: Transaction, asked: NewJob, at: number): Job {
  const { plan, after, id, operation, kind, targetId, installs, from, to, startedBy, runner, uploads } =
    asked;
  const given = { id, operation, kind, targetId, installs, from, to, startedBy, runner, uploads };
  const reason = reasonNotToStart(transaction, given);
  if (reason !== undefined) throw new ServiceError('conflict', reason);
  const number = (newestJob(transaction)?.number ?? 0) + 1;
  const job: Job = {
    ...given,
    number,
    state: 'in_progress',
    startedAt: at,
    endedAt: null,
    runStartedAt: at,
    announced: false,
    fence: 1,
    next: 0,
    workloadsDone: 0,
    doneBeforeRun: 0,
    workloads: plan.workloads,
    cancelledBy: null,
    reason: null,
    reverting: null,
    lastMessageAt: at,
  };
  transaction.put(plans, { ...plan, jobId: job.id, after });
  transaction.write(newestJobId, job.id);
  return record(transaction, job, [[given.operation === 'upgrade' ? 2010 : 2072]], at);
}

/** Why no such job may start now: one at a time, and after a failed release or rollback only what mends it. */
export function reasonNotToStart(
  reader: Reader,
  wanted: { operation: string; targetId: string },
): string | undefined {
  const newest = newestJob(reader);
  if (newest?.state === 'in_progress') return `The job ${newest.id} is in progress.`;
  // A cancelled job has changed nothing: what stood before it still stands.
  const standing = listJobs(reader).find(({ state }) => state !== 'cancelled');
  if (standing?.state !== 'failed' || standing.kind === 'patch') return undefined;
  const mends =
    standing.kind === 'release' && wanted.operation === 'upgrade' && wanted.targetId === standing.targetId;
  if (mends) return undefined;
  const ways = [
    ...(standing.id === newest?.id ? ['resume it'] : []),
    ...(standing.kind === 'release' ? [`upgrade to ${standing.targetId} again`] : []),
  ];
  return `The job ${standing.id} to ${standing.to} has failed: ${ways.join(', or ')}.`;
}

/** The step at `next` is done. */
export function advanceJob(transaction: Transaction, job: Job, step: Step, at: number): Job {
  const { counts, workload } = step;
  const isAnnouncement = (code: Code) => code === 2165;
  const moved = {
    ...job,
    next: job.next + 1,
    workloadsDone: counts?.done ?? job.workloadsDone,
    announced: job.announced || step.codes.some(isAnnouncement),
  };
  const codes = step.codes.filter((code) => !(job.announced && isAnnouncement(code)));
  const facts = {
    name: step.subject,
    image: formatImages(workload, step.action === 'rollback' ? 'formerImage' : 'image'),
    ...counts,
  };
  return record(
    transaction,
    moved,
    codes.map((code) => [code, facts]),
    at,
  );
}

export function completeJob(transaction: Transaction, job: Job, at: number): Job {
  const plan = transaction.get(plans, job.id);
  if (plan) transaction.write(deployment, plan.after);
  const closing: Code = job.operation === 'upgrade' ? 2012 : 2905;
  return record(transaction, end(job, 'success', at), [[2166], [2011], [closing]], at);
}

/** A failed patch puts back what it moved, the failed workload included; a failed release or rollback stays where it is. */
export function failJob(transaction: Transaction, job: Job, step: Step, cause: string, at: number): Job {
  // Whoever asked for it to be cancelled is told both.
  const cancelled: Line[] = job.cancelledBy === null ? [] : [[2903, { cause: job.cancelledBy }]];
  const state = job.cancelledBy === null ? 'failed' : 'cancelled';
  const lines: Line[] = [...announcement(job), [2901, { name: step.name, cause }], ...cancelled];
  const before = step.action === 'apply' ? job.next + 1 : job.next;
  const failed = { ...job, reason: `${step.name}: ${cause}` };
  if (job.kind === 'patch') {
    return record(transaction, { ...failed, announced: true, reverting: { before, then: state } }, lines, at);
  }
  return record(transaction, end(failed, state, at), [...lines, [2166]], at);
}

/** It cannot go on, through no fault of the deployment's: it ends where it is, so that the system is not read-only for ever. */
export function abortJob(transaction: Transaction, job: Job, name: string, at: number): Job {
  const cause = 'something unexpected happened, which the log tells.';
  const broken = { ...job, reason: `${name}: ${cause}` };
  return record(
    transaction,
    end(broken, 'failed', at),
    [...announcement(job), [2901, { name, cause }], [2166]],
    at,
  );
}

/** What an administrator asks for; it happens at the next border between steps. */
export function requestCancel(transaction: Transaction, job: Job, planned: Plan, by: string): void {
  const why = reasonNotToCancel(job, planned);
  if (why !== undefined) throw new ServiceError('conflict', `The job ${job.id} cannot be cancelled: ${why}.`);
  transaction.put(jobs, { ...job, cancelledBy: by });
}

export function reasonNotToCancel(job: Job, planned: Plan): string | undefined {
  if (job.state !== 'in_progress') return `it is ${job.state}`;
  if (job.kind === 'rollback') return 'it is a rollback';
  if (job.reverting) return 'its workloads are being put back';
  const executes = planned.steps.findIndex(({ codes }) => codes.includes(2271));
  return job.kind === 'release' && job.next > executes
    ? 'the plan of a release is being executed'
    : undefined;
}

/** The messages with which a job can no longer be cancelled: a plan is executed, a step failed, it is cancelled. */
export function endsOfCancelling({ kind }: Job): readonly Code[] {
  return kind === 'release' ? [2271, 2901, 2903] : [2901, 2903];
}

export function beginCancel(transaction: Transaction, job: Job, at: number): Job {
  const lines: Line[] = [...announcement(job), [2903, { cause: job.cancelledBy ?? '' }]];
  const reverting = { before: job.next, then: 'cancelled' } as const;
  const reason = `Cancelled by ${job.cancelledBy ?? ''}.`;
  return record(transaction, { ...job, reason, announced: true, reverting }, lines, at);
}

/** The newest applied step that is still to be put back. */
export function nextToRevert(job: Job, { steps }: Plan): { index: number; step: Step } | undefined {
  for (let index = (job.reverting?.before ?? 0) - 1; index >= 0; index -= 1) {
    const step = steps[index];
    if (step?.action === 'apply') return { index, step };
  }
  return undefined;
}

/** The workload of an apply step is back at its former image, or could not be put back: the steps of it are not done. */
export function revertStep(
  transaction: Transaction,
  job: Job,
  { index, step, failure }: { index: number; step: Step; failure: string | undefined },
  at: number,
): Job {
  const then = job.reverting?.then ?? 'failed';
  const later = transaction.get(plans, job.id)?.steps.slice(index + 1);
  const verified =
    later?.find(({ action, subject }) => action === 'verify' && subject === step.subject)?.counts?.done ?? 1;
  const workloadsDone = Math.min(job.workloadsDone, verified - 1);
  const image = formatImages(step.workload, 'formerImage');
  const line: Line =
    failure === undefined
      ? [2904, { name: step.subject, image }]
      : [2901, { name: `Put back ${step.subject}`, cause: failure }];
  const reverted = { ...job, next: index - 1, workloadsDone, reverting: { before: index, then } };
  return record(transaction, reverted, [line], at);
}

export function endReverting(transaction: Transaction, job: Job, at: number): Job {
  return record(transaction, end(job, job.reverting?.then ?? 'failed', at), [[2166]], at);
}

/** Only the newest job, and only when it has failed. */
export function resumeJob(
  transaction: Transaction,
  job: Job,
  { by, runner }: { by: string; runner: string },
  at: number,
): Job {
  const why = reasonNotToResume(transaction, job);
  if (why !== undefined) throw new ServiceError('conflict', `The job ${job.id} cannot be resumed: ${why}.`);
  const resumed: Job = {
    ...job,
    runner,
    fence: job.fence + 1,
    doneBeforeRun: job.workloadsDone,
    state: 'in_progress',
    endedAt: null,
    runStartedAt: at,
    announced: true,
    cancelledBy: null,
    reason: null,
  };
  return record(transaction, resumed, [[2902, { cause: `by ${by}` }], [2165]], at);
}

export function reasonNotToResume(reader: Reader, job: Job): string | undefined {
  if (job.state !== 'failed') return `it is ${job.state}`;
  return newestJob(reader)?.id === job.id ? undefined : 'it is not the newest';
}

/** The process that ran it is gone; the run goes on. */
export function takeOverJob(transaction: Transaction, job: Job, runner: string, at: number): Job {
  const taken = { ...job, runner, fence: job.fence + 1 };
  return record(transaction, taken, [[2902, { cause: 'after a restart' }]], at);
}

type Line = readonly [Code, Partial<Facts>?];

function announcement(job: Job): Line[] {
  return job.announced ? [] : [[2165]];
}

function end(job: Job, state: JobState, at: number): Job {
  return { ...job, state, endedAt: Math.max(at, job.lastMessageAt), reverting: null, announced: false };
}

/** Stores the job and appends its messages, whose times never go back. */
function record(transaction: Transaction, job: Job, lines: readonly Line[], at: number): Job {
  const when = Math.max(at, job.lastMessageAt);
  const known = { from: job.from, to: job.to, elapsedMs: when - job.runStartedAt };
  const unknown = { name: '', image: '', done: job.workloadsDone, total: job.workloads, cause: '' };
  const stored = { ...job, lastMessageAt: when };
  transaction.put(jobs, stored);
  transaction.append(
    messages,
    job.id,
    lines.map(([code, facts]) => writeMessage(code, { ...unknown, ...known, ...facts }, when)),
  );
  return stored;
}
