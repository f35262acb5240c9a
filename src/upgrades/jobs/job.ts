// The rules of an upgrade job, a state machine. Every function takes the job inside a transaction and stores its next
// state and its messages.
//
//   State        What happens                        Next                       Rule             Messages
//   (none)       a request is accepted               in_progress                startJob         2010, 2072
//                a request with a start time is      scheduled                  scheduleJob      2908
//   scheduled    another start time is set           the same, `startAt`        moveStart        2909
//                its time has come                   in_progress                startScheduled   2010, 2072
//                the preflight fails, or the start   failed                     failScheduled    2901
//                is missed
//                an administrator cancels            cancelled                  requestCancel    2903
//   in_progress  a step with a start message begins  the same                   beginStep        its first
//                a step is done                      the same, `next` + 1       advanceJob       its others
//                the last step of a hop is done      the same, `hops.done` + 1  finishHop        its others
//                no step is left                     success                    completeJob      2166, 2011 …
//                a step fails: release, rollback     failed                     failJob          2901, 2166
//                a step fails: patch                 reverting                  failJob          2901
//                an administrator cancels            the same, `cancelledBy`    requestCancel
//                the current step has ended then     reverting                  beginCancel      2903
//                an unexpected error                 failed                     abortJob         2901, 2166
//                its process has ended               the same, `fence` + 1      takeOverJob      2902
//   reverting    a workload is put back, or refused  the same                   revertStep       2904, 2901
//                no workload is left                 failed, or cancelled       finishReverting  2166
//                deadline, stop, refused workloads   failed, still `reverting`  stopReverting    2901, 2166
//   failed       an administrator resumes            in_progress, `run` + 1     resumeJob        2902, 2165
//
// A job that reverts is `in_progress` and has `reverting`. `success` and `cancelled` are final. `next` is the first
// step of the plan that is not done. It goes up as steps are done, and down while a patch reverts its workloads,
// newest first. The rules of steps and hops are in job-steps.ts, of reverting in job-reverting.ts, of
// scheduled jobs in job-schedule.ts.
//
// Read-only mode has no state of its own: the system is read-only while a job is in progress, so the mode cannot
// stay on by mistake. Each run announces the mode once (2165) and its end once (2166), even if the process is
// replaced in between. The end of a run, its closing messages and its state are one update.
//
// Only the newest job changes. The start of a job archives the one before it; after a failed one, only some may
// start (job-to-repair.ts). The plan of a job is deleted when the job can no longer be resumed: when it ends in
// `success` or `cancelled`, or when the next job starts.
import { ServiceError } from '../../lib/errors.ts';
import type { Reader } from '../../store/state.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Plan, Step } from '../planning/plan.ts';
import { endStep, finishHop, startHops, startOfHop } from './job-steps.ts';
import { type Line, announcement, endJob, record } from './job-record.ts';
import { restartReverting, startReverting } from './job-reverting.ts';
import {
  type Job,
  type RequestedJob,
  type ScheduledRequest,
  isOpen,
  jobBefore,
  newestJob,
} from './job-table.ts';
import { jobToRepairAfter, reasonNotToStart } from './job-to-repair.ts';
import type { Code } from '../planning/messages.ts';
import { restartStep, startProgress } from './progress.ts';
import { addStepTime, startTimeline } from './timeline.ts';

/**
 * Runs in the update that starts or ends a run, so that the store has the event if and only if it has the new
 * state.
 */
export type OnJobChange = (transaction: Transaction, job: Job, at: number) => void;

export type NewJob = RequestedJob & { readonly plan: Plan };

export function startJob(transaction: Transaction, newJob: NewJob, at: number): Job {
  const job = createJob(transaction, newJob, at);
  return record(transaction, job, [startLine(job)], at);
}

export function startLine({ operation }: Job): Line {
  return [operation === 'upgrade' ? 2010 : 2072];
}

/** The job takes the place of the newest one. The caller records its first message. */
export function createJob(
  transaction: Transaction,
  newJob: NewJob,
  at: number,
  request?: ScheduledRequest,
): Job {
  const { plan, id, operation, kind, targetId, from, to, startedBy, runner, uploads } = newJob;
  const reason = reasonNotToStart(transaction, newJob);
  if (reason !== undefined) throw new ServiceError('conflict', reason);
  const last = transaction.read(newestJob);
  const job: Job = {
    id,
    number: (last?.number ?? 0) + 1,
    operation,
    kind,
    targetId,
    from,
    to,
    startedBy,
    runner,
    uploads,
    state: 'in_progress',
    startAt: null,
    startedAt: at,
    ignoresWindows: newJob.ignoresWindows,
    hasMissedStart: false,
    endedAt: null,
    run: 1,
    runStartedAt: at,
    announced: false,
    fence: 1,
    revision: 1,
    next: 0,
    isBegun: false,
    attempts: {},
    workloadsDone: 0,
    workloads: plan.workloads,
    progress: startProgress(plan, last?.progress, at),
    timeline: startTimeline(plan),
    hops: startHops(plan.hops, targetId),
    cancelledBy: null,
    reason: null,
    failedAt: null,
    reverting: null,
    lastMessageAt: at,
    messageCount: 0,
  };
  if (last) archiveJob(transaction, last);
  transaction.jobs.savePlan({ ...plan, jobId: id, ...(request && { request }) });
  return job;
}

function archiveJob(transaction: Transaction, job: Job): void {
  transaction.write(jobBefore, jobToRepairAfter(transaction, job) ?? null);
  transaction.jobs.archive(job);
  transaction.jobs.deletePlan(job.id);
}

export function completeJob(transaction: Transaction, job: Job, plan: Plan, at: number): Job {
  const closing: Code = job.operation === 'upgrade' ? 2012 : 2905;
  return endJob(
    transaction,
    finishHop(transaction, job, plan, at),
    'success',
    [[2166], [2011], [closing]],
    at,
  );
}

export function failJob(
  transaction: Transaction,
  job: Job,
  plan: Plan,
  { step, cause }: { readonly step: Step; readonly cause: string },
  at: number,
): Job {
  const cancelled: Line[] = job.cancelledBy === null ? [] : [[2903, { cause: job.cancelledBy }]];
  const state = job.cancelledBy === null ? 'failed' : 'cancelled';
  const lines: Line[] = [...announcement(job), [2901, { name: step.name, cause }], ...cancelled];
  // A failed `apply` may have changed the workload, so the job reverts that workload too.
  const before = step.action === 'apply' ? job.next + 1 : job.next;
  const reason = `${step.name}: ${cause}`;
  const failed = {
    ...endStep(job, step),
    timeline: addStepTime(job.timeline, job.next, at - job.progress.stepStartedAt),
    reason,
    failedAt: step.seqNum,
  };
  if (job.kind === 'patch') {
    const reverting = startReverting(job, plan, before, { then: state, since: at, reason });
    const progress = restartStep(failed.progress, at);
    return record(transaction, { ...failed, announced: true, reverting, progress }, lines, at);
  }
  return endJob(transaction, failed, state, [...lines, [2166]], at);
}

/** Without this, a defect of the server would leave the system read-only. */
export function abortJob(
  transaction: Transaction,
  job: Job,
  plan: Plan | undefined,
  name: string,
  at: number,
): Job {
  const cause = 'an unexpected error occurred; see the log.';
  const aborted = { ...job, reason: `${name}: ${cause}`, failedAt: job.next };
  const lines: Line[] = [...announcement(job), [2901, { name, cause }], [2166]];
  // The workloads of a patch stay as they are, and a resume puts them back.
  const start = { then: 'failed', since: at, reason: aborted.reason } as const;
  const hasMoved = plan !== undefined && job.kind === 'patch' && job.reverting === null;
  const begun = hasMoved ? startReverting(job, plan, job.next + 1, start) : null;
  const reverting = begun && begun.left.length > 0 ? begun : job.reverting;
  return endJob(transaction, aborted, 'failed', lines, at, reverting);
}

/** A repeated cancel changes nothing. `stops`: a job that reverts its workloads stops after those that it has begun. */
export function requestCancel(
  transaction: Transaction,
  job: Job,
  plan: Plan | undefined,
  { by, stops }: { readonly by: string; readonly stops: boolean },
  at: number,
): Job {
  const why = reasonNotToCancel(transaction, job, plan);
  if (why !== undefined) throw new ServiceError('conflict', `The job ${job.id} cannot be cancelled: ${why}.`);
  if (job.state === 'scheduled') {
    const ended = { ...job, cancelledBy: by, reason: `Cancelled by ${by}.` };
    return endJob(transaction, ended, 'cancelled', [[2903, { cause: by }]], at);
  }
  if (!stops && job.reverting) return job;
  const cancelled = job.reverting
    ? { ...job, reverting: { ...job.reverting, stoppedBy: by } }
    : { ...job, cancelledBy: by };
  transaction.write(newestJob, cancelled);
  return cancelled;
}

/** Only a release needs its plan here. Without one, the job has ended meanwhile. */
export function reasonNotToCancel(reader: Reader, job: Job, plan: Plan | undefined): string | undefined {
  if (!isOpen(job)) return `it is ${job.state}`;
  if (reader.read(newestJob)?.id !== job.id) return 'it has ended';
  if (job.state === 'scheduled') return undefined;
  if (job.kind === 'rollback') return 'it is a rollback';
  if (job.kind === 'patch') return undefined;
  if (!plan) return 'it has ended';
  const start = startOfHop(job, plan);
  const executing = plan.steps.findIndex(({ codes }, index) => index >= start && codes.includes(2271));
  return job.next > executing ? 'the plan of a release is being executed' : undefined;
}

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
    state: 'in_progress',
    endedAt: null,
    run: job.run + 1,
    runStartedAt: at,
    announced: true,
    cancelledBy: null,
    reason: null,
    reverting: job.reverting && restartReverting(job.reverting, at),
    progress: restartStep(job.progress, at),
  };
  const aim = job.reverting ? ' to put its workloads back' : '';
  return record(transaction, resumed, [[2902, { cause: `by ${by}${aim}` }], [2165]], at);
}

export function reasonNotToResume(reader: Reader, job: Job): string | undefined {
  if (job.state !== 'failed') return `it is ${job.state}`;
  if (job.startedAt === null) return 'it failed before its first step';
  return reader.read(newestJob)?.id === job.id ? undefined : 'it is not the newest';
}

export function takeOverJob(transaction: Transaction, job: Job, runner: string, at: number): Job {
  const taken = { ...job, runner, fence: job.fence + 1, progress: restartStep(job.progress, at) };
  return record(transaction, taken, [[2902, { cause: 'after a restart' }]], at);
}
