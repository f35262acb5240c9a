// The rules of the steps of a job, and of its hops: what is installed when a hop ends, and where the next one starts
// (see job.ts).
//
// A step with a start message is recorded twice: its start messages when its Job was created (`isBegun`), the others
// after its work. A step that a Job performs has attempts: `attempts` counts those that have ended, so that a process that
// takes over finds the Job of the current one.
//
// The final check of a resumed job repairs the workloads that differ. Those are recorded when the step ends, also if it
// fails.
import type { Transaction } from '../../store/transaction.ts';
import type { RepairedWorkload } from '../executors/executor.ts';
import type { Plan, Step } from '../planning/plan.ts';
import { nameOfStepJob } from '../executors/steps.ts';
import { formatImages } from '../executors/workloads.ts';
import { deployment } from '../versions/deployment.ts';
import type { Hop } from '../versions/hops.ts';
import { type Line, record } from './job-record.ts';
import type { Job } from './job-table.ts';
import { type Code, type Facts, announcesStart } from '../planning/messages.ts';
import { advanceProgress } from './progress.ts';
import { addStepTime, keepMoves } from './timeline.ts';

/** What a step has done, as far as its messages depend on it. */
export type StepOutcome = {
  /** False: the workload had the images already. */
  readonly isPatched?: boolean;
  /** The JSON object of 2153. */
  readonly databases?: string;
};

/** Attempts of a step count from 1. */
export function attemptOf({ attempts }: Job, { seqNum }: Step): number {
  return (attempts[seqNum] ?? 0) + 1;
}

/** Whether a Job performs the step. In a simulation, nothing but a pause does. */
export function hasJob({ action, isSkipped }: Step): boolean {
  return action === 'run-template' && !isSkipped;
}

export function needsBegin(job: Job, { codes, isSkipped }: Step): boolean {
  return !job.isBegun && !isSkipped && codes.some(announcesStart);
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
  outcome: StepOutcome,
  at: number,
): Job {
  const isAnnouncement = (code: Code) => code === 2165;
  const moved = {
    ...endStep(job, step),
    next: job.next + 1,
    // A workload that could not be put back is still done when a resumed job repeats its steps.
    workloadsDone: Math.max(job.workloadsDone, step.counts?.done ?? 0),
    progress: advanceProgress(job.progress, plan, job.next, at),
    timeline: addStepTime(job.timeline, job.next, at - job.progress.stepStartedAt),
    announced: job.announced || step.codes.some(isAnnouncement),
  };
  const isRecorded = (code: Code) =>
    (job.announced && isAnnouncement(code)) || (job.isBegun && announcesStart(code));
  const facts = { ...factsOf(job, step), databases: describeDatabases(plan, step), ...outcome };
  const lines = step.codes.filter((code) => !isRecorded(code)).map((code): Line => [code, facts]);
  return record(
    transaction,
    endsHop(plan, job.next) ? finishHop(transaction, moved, plan, at) : moved,
    lines,
    at,
  );
}

export function recordRepairs(
  transaction: Transaction,
  job: Job,
  repaired: readonly RepairedWorkload[],
  at: number,
): Job {
  if (repaired.length === 0) return job;
  const [code, which] =
    job.operation === 'rollback' ? ([2904, 'formerImage'] as const) : ([2038, 'image'] as const);
  const lines = repaired.map(({ workload, isPatched }): Line => [
    code,
    { name: workload.name, image: formatImages(workload, which), isPatched },
  ]);
  return record(transaction, job, lines, at);
}

/**
 * A rollback, and a patch that reverts, begin several workloads before they wait for the first of them, so that the
 * rollouts overlap. `waiting` are the steps whose workloads are to be put back next, in this order.
 */
export function stepToBegin(job: Job, { parallelism }: Plan, waiting: readonly Step[]): Step | undefined {
  const ahead = waiting.slice(0, parallelism);
  // A workload that two patches have moved is put back twice.
  const isNext = (step: Step) => ahead.find(({ subject }) => subject === step.subject) === step;
  return ahead.length < 2 ? undefined : ahead.find((step) => isNext(step) && !hasBegun(job, step));
}

export function hasBegun({ begun }: Job, { seqNum }: Step): boolean {
  return begun?.[seqNum] !== undefined;
}

export function noteBegun(transaction: Transaction, job: Job, { seqNum }: Step, at: number): Job {
  return record(transaction, { ...job, begun: { ...job.begun, [seqNum]: job.run } }, [], at);
}

/** The job without the state of this step. Only steps that are not repeatable count their attempts. */
export function endStep(job: Job, step: Step): Job {
  const hasAttempts = hasJob(step) || step.action === 'check';
  const attempts = hasAttempts ? { ...job.attempts, [step.seqNum]: attemptOf(job, step) } : job.attempts;
  const { [step.seqNum]: _ended, ...begun } = job.begun ?? {};
  return { ...job, attempts, begun, isBegun: false };
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

/**
 * What 2153 says if the Job of the step has no result of its own. Only a simulation knows its databases. In a
 * cluster, `*` stands for all of them.
 */
function describeDatabases({ databases }: Plan, { isSkipped }: Step): string {
  const status = isSkipped ? 'skipped' : 'success';
  return JSON.stringify(Object.fromEntries((databases ?? ['*']).map((name) => [name, { status }])));
}

export function startHops(hops: readonly Hop[], targetId: string): Job['hops'] {
  const all = hops.map(({ isRelease, installs }) => ({
    version: (isRelease ? installs[0] : installs.at(-1)) ?? targetId,
    isRelease,
  }));
  return { all, done: 0, installedAt: {} };
}

/** Whether the step at `index` is the last one of a hop, and another hop follows. The last hop ends with the job. */
function endsHop({ steps }: Plan, index: number): boolean {
  const [hop, next] = [steps[index]?.hop, steps[index + 1]?.hop];
  return hop !== undefined && next !== undefined && next !== hop;
}

/** The job after the last step of its current hop. */
export function finishHop(transaction: Transaction, job: Job, plan: Plan, at: number): Job {
  const { hops } = job;
  const finished = plan.hops[hops.done];
  if (!finished) return job;
  transaction.write(deployment, finished.after);
  const installedAt = { ...hops.installedAt };
  for (const id of finished.installs) installedAt[id] = at;
  return {
    ...job,
    timeline: keepMoves(job.timeline, plan, job.next),
    hops: { ...hops, done: hops.done + 1, installedAt },
  };
}

/** The steps before it belong to finished hops. */
export function startOfHop({ hops }: Job, { steps }: Plan): number {
  return steps.findIndex(({ hop }) => hop === hops.done);
}
