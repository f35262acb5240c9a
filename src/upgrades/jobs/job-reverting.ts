// The rules of reverting: a failed or cancelled patch puts back its workloads, newest first (see job.ts).
//
// Reverting stops early at its deadline, when an administrator cancels it, or after an unexpected error. If a
// workload is refused (for example because a permission is missing), the others are reverted all the same. In all
// these cases the job is `failed` and keeps `reverting`. Only a resume of this job is accepted next, and it
// continues to revert. A workload that cannot be put back for another reason, for example because another client
// has changed it, is reported and stays unchanged.
import { formatList } from '../../lib/format.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Plan, Step } from '../planning/plan.ts';
import { formatImages } from '../executors/workloads.ts';
import { endStep, noteBegun, startOfHop } from './job-steps.ts';
import { type Line, announcement, endJob, record } from './job-record.ts';
import type { Job, Reverting } from './job-table.ts';
import { restartStep, revertProgress } from './progress.ts';

export function beginCancel(transaction: Transaction, job: Job, plan: Plan, at: number): Job {
  const lines: Line[] = [...announcement(job), [2903, { cause: job.cancelledBy ?? '' }]];
  const reason = `Cancelled by ${job.cancelledBy ?? ''}.`;
  const reverting = startReverting(job, plan, job.next, { then: 'cancelled', since: at, reason });
  const progress = restartStep(job.progress, at);
  const cancelled = { ...job, reason, announced: true, isBegun: false, reverting, progress };
  return record(transaction, cancelled, lines, at);
}

/** The job reverts the workloads that its steps before this index have changed. Those of finished hops stay. */
export function startReverting(
  job: Job,
  plan: Plan,
  before: number,
  start: Pick<Reverting, 'then' | 'since' | 'reason'>,
): Reverting {
  const first = startOfHop(job, plan);
  const left = plan.steps
    .flatMap(({ action }, index) => (action === 'apply' && index >= first && index < before ? index : []))
    .reverse();
  return { ...start, left, refused: [] };
}

export function stepsToRevert({ reverting }: Job, plan: Plan): Step[] {
  return stepsAt(reverting?.left ?? [], plan);
}

function stepsAt(indexes: readonly number[], { steps }: Plan): Step[] {
  return indexes.flatMap((index) => steps[index] ?? []);
}

/** The workloads of which a change was refused. Older ones can only be reverted after it. */
export function refusedSubjects({ reverting }: Job, plan: Plan): ReadonlySet<string> {
  return new Set(stepsAt(reverting?.refused ?? [], plan).map(({ subject }) => subject));
}

export type RevertResult = {
  readonly outcome: 'begun' | 'put back' | 'already back' | 'refused' | 'failed';
  /** Why the workload was not put back. Undefined: the message of a newer change of the workload says it. */
  readonly cause?: string;
};

export function revertStep(
  transaction: Transaction,
  job: Job,
  plan: Plan,
  { step, outcome, cause }: RevertResult & { readonly step: Step },
  at: number,
): Job {
  if (outcome === 'begun') return noteBegun(transaction, job, step, at);
  const { seqNum: index } = step;
  const isPutBack = outcome === 'put back' || outcome === 'already back';
  const verified =
    plan.steps.slice(index + 1).find(({ action, subject }) => action === 'verify' && subject === step.subject)
      ?.counts?.done ?? 1;
  const workloadsDone = isPutBack ? Math.min(job.workloadsDone, verified - 1) : job.workloadsDone;
  const lines: Line[] = [];
  if (isPutBack) {
    const image = formatImages(step.workload, 'formerImage');
    lines.push([2904, { name: step.subject, image, isPatched: outcome === 'put back' }]);
  } else if (cause !== undefined) lines.push([2901, { name: `Put back ${step.subject}`, cause }]);
  // The step right before an `apply` step begins the same workload, so a resumed job continues there.
  const next = Math.min(job.next, index - 1);
  const progress = revertProgress(job.progress, plan, { index: next, isPutBack }, at);
  const reverting = job.reverting && {
    ...job.reverting,
    left: job.reverting.left.filter((other) => other !== index),
    refused: outcome === 'refused' ? [...job.reverting.refused, index] : job.reverting.refused,
  };
  return record(transaction, { ...endStep(job, step), next, workloadsDone, progress, reverting }, lines, at);
}

export function finishReverting(transaction: Transaction, job: Job, plan: Plan, at: number): Job {
  const { then = 'failed', reason = job.reason, refused = [] } = job.reverting ?? {};
  const why = 'some of them could not be put back; the messages before this one say why.';
  if (refused.length > 0) return stopReverting(transaction, job, plan, why, at);
  return endJob(transaction, { ...job, reason }, then, [[2166]], at);
}

/** More names would make the record of the job large. */
const maxNamed = 100;

export function stopReverting(transaction: Transaction, job: Job, plan: Plan, why: string, at: number): Job {
  const name = 'Put back the workloads';
  const { refused = [], left = [] } = job.reverting ?? {};
  const names = new Set(stepsAt([...refused, ...left], plan).map(({ subject }) => subject));
  const cause = `${why} Not put back: ${formatList([...names], maxNamed)}. Resume the job to put them back.`;
  const lines: Line[] = [[2901, { name, cause }], [2166]];
  const stopped = { ...job, reason: `${name}: ${cause}` };
  return endJob(transaction, stopped, 'failed', lines, at, job.reverting);
}

export function restartReverting(
  { stoppedBy: _stoppedBy, left, refused, ...reverting }: Reverting,
  at: number,
): Reverting {
  return { ...reverting, left: [...left, ...refused].sort((a, b) => b - a), refused: [], since: at };
}
