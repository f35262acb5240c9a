// How far a job is: its steps, weighted by how long a step of their kind takes, and the time that is left.
//
// The kind of a step is its id, or `skipped`. Its weight is the mean duration of such steps in this job and in the
// earlier ones. Before the first measurement, it is the mean of similar kinds, or of all steps. The weights change while
// the job runs, so `percent` is stored: it goes down only when a workload is put back.
import type { Plan, Step } from '../planning/plan.ts';
import { isTemplateStepId } from '../planning/step-ids.ts';

export type Progress = {
  readonly done: number;
  readonly total: number;
  readonly percent: number;
  /** The kind of the next step, or null if all steps are done. */
  readonly current: string | null;
  readonly stepStartedAt: number;
  readonly kinds: Readonly<Record<string, KindProgress>>;
};

type KindProgress = {
  readonly left: number;
  /** How often such a step was measured. One that is repeated after its workload was put back counts again. */
  readonly count: number;
  readonly ms: number;
};

/** Earlier jobs count as this many steps of a kind: a single slow step of this job says little about the others. */
const maxKnown = 10;

const noKind: KindProgress = { left: 0, count: 0, ms: 0 };

/** Reverting has no steps of its own in the plan of a patch. */
const revertKind = 'revert';

const kindOf = ({ id, isSkipped }: Step): string => (isSkipped ? 'skipped' : id);

export function startProgress(plan: Plan, earlier: Progress | undefined, at: number): Progress {
  const kinds: Record<string, KindProgress> = {};
  for (const [kind, { count, ms }] of Object.entries(earlier?.kinds ?? {})) {
    const known = Math.min(count, maxKnown);
    if (known > 0) kinds[kind] = { left: 0, count: known, ms: (known * ms) / count };
  }
  const total = plan.steps.length;
  const empty = { done: 0, total, percent: 0, current: null, stepStartedAt: at, kinds };
  return moveTo(empty, plan, { done: 0, next: 0 }, at);
}

/** The step at `index` is done. */
export function advanceProgress(progress: Progress, plan: Plan, index: number, at: number): Progress {
  const step = plan.steps[index];
  if (!step) return progress;
  const done = Math.max(progress.done, index + 1);
  const moved = moveTo(measure(progress, kindOf(step), at), plan, { done, next: index + 1 }, at);
  return { ...moved, percent: Math.max(progress.percent, percentOf(moved, plan)) };
}

/** A workload was put back, so the steps from `index` on are no longer done; or it could not be put back. */
export function revertProgress(
  progress: Progress,
  plan: Plan,
  { index, isPutBack }: { index: number; isPutBack: boolean },
  at: number,
): Progress {
  const done = isPutBack ? Math.min(progress.done, index) : progress.done;
  const moved = moveTo(measure(progress, revertKind, at), plan, { done, next: index }, at);
  return isPutBack ? { ...moved, percent: Math.min(progress.percent, percentOf(moved, plan)) } : moved;
}

/** With the time that the current step has taken, which is of this kind. */
function measure(progress: Progress, kind: string, at: number): Progress {
  const { kinds, stepStartedAt } = progress;
  const { left, count, ms } = kinds[kind] ?? noKind;
  const measured = { left, count: count + 1, ms: ms + Math.max(0, at - stepStartedAt) };
  return { ...progress, kinds: { ...kinds, [kind]: measured } };
}

/** The steps before `done` are done, and the one at `next` begins. */
function moveTo(
  progress: Progress,
  { steps }: Plan,
  { done, next }: { done: number; next: number },
  at: number,
): Progress {
  const left = new Map<string, number>();
  for (const kind of steps.slice(done).map(kindOf)) left.set(kind, (left.get(kind) ?? 0) + 1);
  const kinds: Record<string, KindProgress> = {};
  for (const kind of [...Object.keys(progress.kinds), ...left.keys()])
    kinds[kind] = { ...(progress.kinds[kind] ?? noKind), left: left.get(kind) ?? 0 };
  const current = steps[next] ? kindOf(steps[next]) : null;
  return { ...progress, done, kinds, stepStartedAt: at, current };
}

export function restartStep(progress: Progress, at: number): Progress {
  return { ...progress, stepStartedAt: at };
}

/**
 * Undefined if no step of this job or an earlier one was measured yet. `revertsLeft` is how many workloads the job
 * still has to put back, if it reverts.
 */
export function remainingMs(
  { kinds, current, stepStartedAt }: Progress,
  revertsLeft: number | undefined,
  at: number,
): number | undefined {
  const left =
    revertsLeft === undefined
      ? Object.entries(kinds).map(([kind, one]) => ({ kind, count: one.left }))
      : [{ kind: revertKind, count: revertsLeft }];
  const now = revertsLeft === undefined ? current : revertKind;
  let sum = 0;
  for (const { kind, count } of left.filter((one) => one.count > 0)) {
    const weight = weightOf(kinds, kind);
    if (weight === undefined) return undefined;
    const passed = kind === now ? Math.min(weight, Math.max(0, at - stepStartedAt)) : 0;
    sum += count * weight - passed;
  }
  return Math.round(sum);
}

/** Less than 100 before the job has succeeded. */
function percentOf({ kinds, done }: Progress, { steps }: Plan): number {
  const weights = new Map(Object.keys(kinds).map((kind) => [kind, weightOf(kinds, kind) ?? 1]));
  const sum = (some: readonly Step[]) =>
    some.reduce((total, step) => total + Math.max(1, weights.get(kindOf(step)) ?? 1), 0);
  return Math.min(99, Math.floor((100 * sum(steps.slice(0, done))) / sum(steps)));
}

function weightOf(kinds: Progress['kinds'], kind: string): number | undefined {
  const similar = Object.keys(kinds).filter((other) => groupOf(other) === groupOf(kind));
  return meanOf(kinds, [kind]) ?? meanOf(kinds, similar) ?? meanOf(kinds, Object.keys(kinds));
}

/** Steps that wait for a rollout, steps that Jobs perform, and steps that take hardly any time. */
function groupOf(kind: string): string {
  if (kind === 'verify' || kind === revertKind) return 'rollout';
  return isTemplateStepId(kind) ? 'job' : 'steward';
}

function meanOf(kinds: Progress['kinds'], names: readonly string[]): number | undefined {
  let [count, ms] = [0, 0];
  for (const name of names) {
    count += kinds[name]?.count ?? 0;
    ms += kinds[name]?.ms ?? 0;
  }
  return count === 0 ? undefined : ms / count;
}
