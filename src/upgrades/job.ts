// The rules of an upgrade job, a state machine. Every function takes the job inside a transaction and stores its next state.
//
// A job is `in_progress` from the moment it is accepted until its run ends in `success`, `failed` or `cancelled`. A failed job can be
// resumed, which begins a new run. `next` is the first step of the plan that is not done. It goes up as steps are done, and down
// while a failed or cancelled patch reverts its workloads, newest first (`reverting`).
//
// Reverting stops early at its deadline, when an administrator cancels it, or after an unexpected error. The job is `failed` then and keeps `reverting`. Only a
// resume of this job is accepted next, and it continues to revert.
//
// A step with a start message is recorded twice: its start messages before the work (`isBegun`), the others after it. A step that a Job
// performs has attempts: `attempts` counts those that have ended, so that a process that takes over finds the Job of the current one. If
// such a step exceeds its time, the job first records that (`stopping`), then deletes the Job, then fails. Without the record, a
// process that takes over would start the attempt again.
//
// The final check of a resumed job repairs the workloads that differ, one after another. Each is recorded when it is repaired, and
// `repaired` says how many of the moved workloads are behind it. One that differs again after that fails the job.
//
// Read-only mode has no state of its own: the system is read-only while a job is in progress, so the mode cannot stay on by
// mistake. Each run announces the mode once (2165) and its end once (2166), even if the process is replaced in between. The end of a run,
// its closing messages and its state are one update.
//
// Only the newest job changes. The start of a job archives the one before it; after a failed one, only some may start (job-to-repair.ts). The plan of a job is deleted when the job can no longer be
// resumed: when it ends in `success` or `cancelled`, or when the next job starts.
import { ServiceError } from '../errors.ts';
import { formatList } from '../lib/format.ts';
import type { Reader } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';
import { jobToRepairAfter, reasonNotToStart } from './job-to-repair.ts';
import {
  type EndState,
  type Job,
  type Reverting,
  type StoredPlan,
  jobBefore,
  newestJob,
  runTotals,
} from './job-table.ts';
import { type Code, type Facts, announcesStart, writeMessage } from './messages.ts';
import { nameOfStepJob } from './performers.ts';
import type { Plan, PlannedHop, Step } from './plan.ts';
import {
  type Progress,
  advanceProgress,
  beginReverting,
  completeProgress,
  restartStep,
  revertProgress,
  startProgress,
} from './progress.ts';
import { type Deployment, deployment } from './deployment.ts';
import { addStepTime, startTimeline } from './timeline.ts';
import { type Workload, formatImages } from './workloads.ts';

/** Runs in the update that starts or ends a run, so that the store has the event if and only if it has the new state. */
export type OnJobChange = (transaction: Transaction, job: Job, at: number) => void;

export type NewJob = Pick<
  Job,
  'id' | 'operation' | 'kind' | 'targetId' | 'installs' | 'from' | 'to' | 'startedBy' | 'runner' | 'uploads'
> & {
  readonly plan: Plan;
  readonly after: Deployment;
};

export function startJob(transaction: Transaction, newJob: NewJob, at: number): Job {
  const { plan, after, id, operation, kind, targetId, installs, from, to, startedBy, runner, uploads } =
    newJob;
  const reason = reasonNotToStart(transaction, newJob);
  if (reason !== undefined) throw new ServiceError('conflict', reason);
  const last = transaction.read(newestJob);
  const job: Job = {
    id,
    number: (last?.number ?? 0) + 1,
    operation,
    kind,
    targetId,
    installs,
    from,
    to,
    startedBy,
    runner,
    uploads,
    state: 'in_progress',
    startedAt: at,
    endedAt: null,
    runStartedAt: at,
    announced: false,
    fence: 1,
    next: 0,
    isBegun: false,
    attempts: {},
    stopping: null,
    workloadsDone: 0,
    workloads: plan.workloads,
    progress: startProgress(plan, last?.progress, at),
    timeline: startTimeline(plan),
    ...(plan.hops && {
      hops: plan.hops.map(({ isRelease, installs }) => ({
        version: (isRelease ? installs[0] : installs.at(-1)) ?? targetId,
        isRelease,
      })),
      hopsDone: 0,
      installed: [],
    }),
    cancelledBy: null,
    reason: null,
    reverting: null,
    lastMessageAt: at,
    messageCount: 0,
  };
  if (last) archiveJob(transaction, last);
  transaction.jobs.savePlan({ ...plan, jobId: id, after });
  return record(transaction, job, [[operation === 'upgrade' ? 2010 : 2072]], at);
}

function archiveJob(transaction: Transaction, job: Job): void {
  transaction.write(jobBefore, jobToRepairAfter(transaction, job) ?? null);
  transaction.jobs.archive(job);
  transaction.jobs.deletePlan(job.id);
}

/** What a step has done, as far as its messages depend on it. */
export type StepOutcome = {
  /** False: the workload had the images already. */
  readonly isPatched?: boolean;
  /** The JSON object of 2153. */
  readonly databases?: string;
  /** The final check of a resumed job has repaired this workload, and is not done. */
  readonly repair?: Repair;
};

export type Repair = {
  readonly workload: Workload;
  /** False: the workload had the images already, but was not healthy. */
  readonly isPatched: boolean;
  /** The value of `repaired` in the job. */
  readonly repaired: number;
};

/** Attempts of a step count from 1. */
export function attemptOf({ attempts = {} }: Job, { seqNum }: Step): number {
  return (attempts[seqNum] ?? 0) + 1;
}

export function needsBegin(job: Job, { codes, isSkipped }: Step): boolean {
  return job.isBegun !== true && !isSkipped && codes.some(announcesStart);
}

export function beginStep(transaction: Transaction, job: Job, step: Step, at: number): Job {
  const facts = factsOf(job, step);
  const lines = step.codes.filter(announcesStart).map((code): Line => [code, facts]);
  return record(transaction, { ...job, isBegun: true }, lines, at);
}

export function advanceJob(
  transaction: Transaction,
  job: Job,
  plan: Plan,
  step: Step,
  outcome: Omit<StepOutcome, 'repair'>,
  at: number,
): Job {
  const isAnnouncement = (code: Code) => code === 2165;
  const moved = {
    ...endStep(job, step),
    next: job.next + 1,
    // A workload that could not be put back is still done when a resumed job repeats its steps.
    workloadsDone: Math.max(job.workloadsDone, step.counts?.done ?? 0),
    progress: advanceProgress(progressOf(job, plan, at), plan, job.next, at),
    ...timelineAfterStep(job, at),
    announced: job.announced || step.codes.some(isAnnouncement),
  };
  const finished = endOfHop(plan, job.next) ? plan.hops?.[job.hopsDone ?? 0] : undefined;
  if (finished) transaction.write(deployment, finished.after);
  const isRecorded = (code: Code) =>
    (job.announced && isAnnouncement(code)) || (job.isBegun === true && announcesStart(code));
  const facts = { ...factsOf(job, step), ...outcome };
  const lines = step.codes.filter((code) => !isRecorded(code)).map((code): Line => [code, facts]);
  return record(transaction, finished ? finishHop(moved, finished, at) : moved, lines, at);
}

/** The final check is not done: it continues with the next workload. */
export function recordRepair(
  transaction: Transaction,
  job: Job,
  { workload, isPatched, repaired }: Repair,
  at: number,
): Job {
  const { name } = workload;
  const line: Line =
    job.operation === 'rollback'
      ? [2904, { name, image: formatImages(workload, 'formerImage'), isPatched }]
      : [2038, { name, image: formatImages(workload, 'image'), isPatched }];
  return record(transaction, { ...job, repaired }, [line], at);
}

/** Whether the step at `index` is the last one of a hop, and another hop follows. The last hop is recorded when the job succeeds. */
function endOfHop({ steps }: Plan, index: number): boolean {
  const [hop, next] = [steps[index]?.hop, steps[index + 1]?.hop];
  return hop !== undefined && next !== undefined && next !== hop;
}

function finishHop(job: Job, { installs }: PlannedHop, at: number): Job {
  const { hopsDone = 0, installed = [], installedAt = {} } = job;
  return {
    ...job,
    hopsDone: hopsDone + 1,
    installed: [...installed, ...installs],
    installedAt: { ...installedAt, ...Object.fromEntries(installs.map((id) => [id, at])) },
  };
}

/** The steps before it belong to finished hops. */
function startOfHop({ hopsDone = 0 }: Job, { steps }: Plan): number {
  return hopsDone === 0 ? 0 : steps.findIndex(({ hop }) => hop === hopsDone);
}

function progressOf(job: Job, plan: Plan, at: number): Progress {
  return job.progress ?? completeProgress(plan, job.next, at);
}

/** With the time that the current step has taken. */
function timelineAfterStep({ timeline, progress, next }: Job, at: number): Pick<Job, 'timeline'> {
  if (!timeline || !progress) return {};
  return { timeline: addStepTime(timeline, next, at - progress.stepStartedAt) };
}

function factsOf(job: Job, step: Step): Partial<Facts> {
  return {
    name: step.subject,
    image: formatImages(step.workload, step.action === 'rollback' ? 'formerImage' : 'image'),
    isSkipped: step.isSkipped,
    stepJob: nameOfStepJob(job.id, step.seqNum, attemptOf(job, step)),
    ...step.counts,
  };
}

/** The job without the state of its current step. Only steps that are not repeatable count their attempts. */
function endStep(job: Job, step: Step): Job {
  const hasAttempts = (step.action === 'run-template' && !step.isSkipped) || step.action === 'check';
  const attempts = hasAttempts ? { ...job.attempts, [step.seqNum]: attemptOf(job, step) } : job.attempts;
  return { ...job, ...(attempts && { attempts }), isBegun: false, stopping: null };
}

/** Records that the step must end, and why. */
export function stopStep(transaction: Transaction, job: Job, cause: string): Job {
  const stopped = { ...job, stopping: cause };
  transaction.write(newestJob, stopped);
  return stopped;
}

export function completeJob(transaction: Transaction, job: Job, { after }: StoredPlan, at: number): Job {
  transaction.write(deployment, after);
  const closing: Code = job.operation === 'upgrade' ? 2012 : 2905;
  return endJob(transaction, job, 'success', [[2166], [2011], [closing]], at);
}

export function failJob(transaction: Transaction, job: Job, step: Step, cause: string, at: number): Job {
  const cancelled: Line[] = job.cancelledBy === null ? [] : [[2903, { cause: job.cancelledBy }]];
  const state = job.cancelledBy === null ? 'failed' : 'cancelled';
  const lines: Line[] = [...announcement(job), [2901, { name: step.name, cause }], ...cancelled];
  // A failed `apply` may have changed the workload, so the job reverts that workload too.
  const before = step.action === 'apply' ? job.next + 1 : job.next;
  const reason = `${step.name}: ${cause}`;
  const failed = { ...endStep(job, step), ...timelineAfterStep(job, at), reason, failedAt: job.next };
  if (job.kind === 'patch') {
    const reverting = { before, then: state, since: at, reason } as const;
    const progress = failed.progress && beginReverting(failed.progress, step.action === 'apply', at);
    const started = { ...failed, announced: true, reverting, ...(progress && { progress }) };
    return record(transaction, started, lines, at);
  }
  return endJob(transaction, failed, state, [...lines, [2166]], at);
}

/** Without this, a defect of the server would leave the system read-only. */
export function abortJob(transaction: Transaction, job: Job, name: string, at: number): Job {
  const cause = 'an unexpected error occurred; see the log.';
  const aborted = { ...job, reason: `${name}: ${cause}`, failedAt: job.next };
  const lines: Line[] = [...announcement(job), [2901, { name, cause }], [2166]];
  return endJob(transaction, aborted, 'failed', lines, at, job.reverting);
}

/** A job that already reverts its workloads stops that after the current workload. */
export function requestCancel(transaction: Transaction, job: Job, plan: Plan | undefined, by: string): Job {
  const why = reasonNotToCancel(transaction, job, plan);
  if (why !== undefined) throw new ServiceError('conflict', `The job ${job.id} cannot be cancelled: ${why}.`);
  const cancelled = job.reverting
    ? { ...job, reverting: { ...job.reverting, stoppedBy: by } }
    : { ...job, cancelledBy: by };
  transaction.write(newestJob, cancelled);
  return cancelled;
}

/** Only a release needs its plan here. Without one, the job has ended meanwhile. */
export function reasonNotToCancel(reader: Reader, job: Job, plan: Plan | undefined): string | undefined {
  if (job.state !== 'in_progress') return `it is ${job.state}`;
  if (reader.read(newestJob)?.id !== job.id) return 'it has ended';
  if (job.kind === 'rollback') return 'it is a rollback';
  if (job.kind === 'patch') return undefined;
  if (!plan) return 'it has ended';
  const start = startOfHop(job, plan);
  const executing = plan.steps.findIndex(({ codes }, index) => index >= start && codes.includes(2271));
  return job.next > executing ? 'the plan of a release is being executed' : undefined;
}

/** The page hides its Cancel button when a message with one of these codes arrives, and shows it again in the next hop. */
export function endsOfCancelling({ kind, reverting }: Job): readonly Code[] {
  if (reverting) return [2166];
  return kind === 'release' ? [2271, 2901, 2903] : [2901, 2903];
}

export function beginCancel(transaction: Transaction, job: Job, at: number): Job {
  const lines: Line[] = [...announcement(job), [2903, { cause: job.cancelledBy ?? '' }]];
  const reason = `Cancelled by ${job.cancelledBy ?? ''}.`;
  const reverting = { before: job.next, then: 'cancelled', since: at, reason } as const;
  const progress = job.progress && beginReverting(job.progress, false, at);
  const cancelled = { ...job, reason, announced: true, isBegun: false, reverting };
  return record(transaction, { ...cancelled, ...(progress && { progress }) }, lines, at);
}

export function nextToRevert(job: Job, plan: Plan): AppliedStep | undefined {
  return stepsToRevert(job, plan)[0];
}

export type AppliedStep = { readonly index: number; readonly step: Step };

/** The newest first. Those of finished hops stay. */
function stepsToRevert(job: Job, plan: Plan): AppliedStep[] {
  const [start, end] = [startOfHop(job, plan), job.reverting?.before ?? 0];
  return plan.steps
    .map((step, index) => ({ index, step }))
    .slice(start, end)
    .filter(({ step }) => step.action === 'apply')
    .reverse();
}

export function revertStep(
  transaction: Transaction,
  job: Job,
  plan: Plan,
  { index, step, failure }: AppliedStep & { readonly failure: string | undefined },
  at: number,
): Job {
  const isPutBack = failure === undefined;
  const verified =
    plan.steps.slice(index + 1).find(({ action, subject }) => action === 'verify' && subject === step.subject)
      ?.counts?.done ?? 1;
  const workloadsDone = isPutBack ? Math.min(job.workloadsDone, verified - 1) : job.workloadsDone;
  const image = formatImages(step.workload, 'formerImage');
  const line: Line =
    failure === undefined
      ? [2904, { name: step.subject, image }]
      : [2901, { name: `Put back ${step.subject}`, cause: failure }];
  // The step right before an `apply` step begins the same workload, so a resumed job continues there.
  const reverting = { then: 'failed' as const, ...job.reverting, before: index };
  const next = index - 1;
  const progress = revertProgress(progressOf(job, plan, at), plan, { index: next, isPutBack }, at);
  return record(transaction, { ...job, next, workloadsDone, progress, reverting }, [line], at);
}

export function finishReverting(transaction: Transaction, job: Job, at: number): Job {
  const { then = 'failed', reason = job.reason } = job.reverting ?? {};
  return endJob(transaction, { ...job, reason }, then, [[2166]], at);
}

/** More names would make the record of the job large. */
const maxNamed = 100;

/** A resumed job continues with the workloads that are left. */
export function stopReverting(transaction: Transaction, job: Job, plan: Plan, why: string, at: number): Job {
  const name = 'Put back the workloads';
  const left = new Set(stepsToRevert(job, plan).map(({ step }) => step.subject));
  const cause = `${why} Not put back: ${formatList([...left], maxNamed)}.`;
  const lines: Line[] = [[2901, { name, cause }], [2166]];
  const stopped = { ...job, reason: `${name}: ${cause}` };
  return endJob(transaction, stopped, 'failed', lines, at, job.reverting);
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
    runStartedAt: at,
    announced: true,
    repaired: 0,
    cancelledBy: null,
    reason: null,
    reverting: job.reverting && restartReverting(job.reverting, at),
    ...(job.progress && { progress: restartStep(job.progress, at) }),
  };
  return record(transaction, resumed, [[2902, { cause: `by ${by}` }], [2165]], at);
}

function restartReverting({ stoppedBy: _stoppedBy, ...reverting }: Reverting, at: number): Reverting {
  return { ...reverting, since: at };
}

export function reasonNotToResume(reader: Reader, job: Job): string | undefined {
  if (job.state !== 'failed') return `it is ${job.state}`;
  return reader.read(newestJob)?.id === job.id ? undefined : 'it is not the newest';
}

export function takeOverJob(transaction: Transaction, job: Job, runner: string, at: number): Job {
  const taken = {
    ...job,
    runner,
    fence: job.fence + 1,
    ...(job.progress && { progress: restartStep(job.progress, at) }),
  };
  return record(transaction, taken, [[2902, { cause: 'after a restart' }]], at);
}

type Line = readonly [Code, Partial<Facts>?];

function announcement(job: Job): Line[] {
  return job.announced ? [] : [[2165]];
}

function endJob(
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

/** The times of messages never go back, even if the clock does. */
function record(transaction: Transaction, job: Job, lines: readonly Line[], at: number): Job {
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
    databases: null,
    stepJob: '',
  };
  const messages = lines.map(([code, facts]) => writeMessage(code, { ...defaults, ...facts }, when));
  const stored = { ...job, lastMessageAt: when, messageCount: job.messageCount + messages.length };
  transaction.write(newestJob, stored);
  transaction.jobs.appendMessages(job.id, job.messageCount, messages);
  return stored;
}
