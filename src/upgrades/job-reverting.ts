// The rules of reverting: a failed or cancelled patch puts back its workloads, newest first (see job.ts).
//
// Reverting stops early at its deadline, when an administrator cancels it, or after an unexpected error. The job is `failed` then and
// keeps `reverting`. Only a resume of this job is accepted next, and it continues to revert.
import { formatList } from '../lib/format.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Line, announcement, endJob, record } from './job-record.ts';
import { progressOf, startOfHop } from './job-steps.ts';
import type { Job, Reverting } from './job-table.ts';
import type { Plan, Step } from './plan.ts';
import { beginReverting, revertProgress } from './progress.ts';
import { formatImages } from './workloads.ts';

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

export function restartReverting({ stoppedBy: _stoppedBy, ...reverting }: Reverting, at: number): Reverting {
  return { ...reverting, since: at };
}
