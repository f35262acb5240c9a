// How far a job is: its steps, weighted by how long a step of their kind takes, and the time that is left.
//
// The kind of a step is its id, or `skipped`. Its weight is the mean duration of such steps in this job. As long as
// there is none, it is the one of the newest earlier job that has such a step, and otherwise the median of similar
// kinds, or the mean of all steps, of this job. The weights change while the job runs, so `percent` is stored: it
// goes down only when a workload is put back.
import type { Plan, Step } from '../planning/plan.ts';
import { isTemplateStepId } from '../planning/step-ids.ts';

export type Progress = {
  readonly done: number;
  readonly total: number;
  readonly percent: number;
  /** The kind of the next step, or undefined if all steps are done. */
  readonly current?: string;
  readonly stepStartedAt: number;
  readonly kinds: Readonly<Record<string, KindProgress>>;
  /** Mean durations of earlier jobs. */
  readonly expectedMs: Readonly<Record<string, number>>;
};

type KindProgress = {
  readonly total: number;
  readonly left: number;
  /**
   * How often such a step was performed in this job. A step that is repeated after its workload was put back counts
   * again.
   */
  readonly count: number;
  readonly ms: number;
  readonly lastMs: number;
};

const noKind: KindProgress = { total: 0, left: 0, count: 0, ms: 0, lastMs: 0 };

/** Reverting has no steps of its own in the plan of a patch. */
const revertKind = 'revert';

const kindOf = ({ id, isSkipped }: Step): string => (isSkipped ? 'skipped' : id);

export function startProgress({ steps }: Plan, earlier: Progress | undefined, at: number): Progress {
  const counts = countKinds(steps);
  const kinds = Object.fromEntries([...counts].map(([kind, n]) => [kind, { ...noKind, total: n, left: n }]));
  const expectedMs = earlier ? { ...earlier.expectedMs, ...meansOf(earlier) } : {};
  return {
    done: 0,
    total: steps.length,
    percent: 0,
    ...currentOf(steps[0]),
    stepStartedAt: at,
    kinds,
    expectedMs,
  };
}

/** The step at `index` is done. */
export function advanceProgress(progress: Progress, { steps }: Plan, index: number, at: number): Progress {
  const step = steps[index];
  const { current: _current, ...rest } = progress;
  const measured = step ? measure(progress, kindOf(step), at) : progress.kinds;
  const done = Math.max(progress.done, index + 1);
  const isFirstTime = step !== undefined && done > progress.done;
  const kinds = isFirstTime ? leaveOne(measured, kindOf(step)) : measured;
  const moved = { ...rest, done, kinds, stepStartedAt: at, ...currentOf(steps[index + 1]) };
  return { ...moved, percent: Math.max(progress.percent, percentOf(moved)) };
}

/** A workload was put back, so the steps from `index` on are no longer done; or it could not be put back. */
export function revertProgress(
  progress: Progress,
  { steps }: Plan,
  { index, isPutBack }: { index: number; isPutBack: boolean },
  at: number,
): Progress {
  const { current: _current, ...rest } = progress;
  const measured = measure(progress, revertKind, at);
  const done = isPutBack ? Math.min(progress.done, index) : progress.done;
  const kinds = countLeft(measured, steps, done);
  const moved = { ...rest, done, kinds, stepStartedAt: at, ...currentOf(steps[index]) };
  return { ...moved, percent: isPutBack ? Math.min(progress.percent, percentOf(moved)) : progress.percent };
}

export function restartStep(progress: Progress, at: number): Progress {
  return { ...progress, stepStartedAt: at };
}

/**
 * Undefined if no step of this job or an earlier one was measured yet. `revertsLeft` is how many workloads the job
 * still has to put back, if it reverts.
 */
export function remainingMs(
  progress: Progress,
  revertsLeft: number | undefined,
  at: number,
): number | undefined {
  const isReverting = revertsLeft !== undefined;
  const kinds = isReverting
    ? [{ kind: revertKind, left: revertsLeft }]
    : Object.entries(progress.kinds).map(([kind, { left }]) => ({ kind, left }));
  const current = isReverting ? revertKind : progress.current;
  const weights = kinds
    .filter(({ left }) => left > 0)
    .map(({ kind, left }) => ({ kind, left, weight: weightOf(progress, kind) }));
  let sum = 0;
  for (const { kind, left, weight } of weights) {
    if (weight === undefined) return undefined;
    const passed = kind === current ? Math.min(weight, Math.max(0, at - progress.stepStartedAt)) : 0;
    sum += left * weight - passed;
  }
  return Math.round(sum);
}

/** Less than 100 before the job has succeeded. */
function percentOf(progress: Pick<Progress, 'kinds' | 'expectedMs'>): number {
  let [done, all] = [0, 0];
  for (const [kind, { total, left }] of Object.entries(progress.kinds)) {
    const weight = Math.max(1, weightOf(progress, kind) ?? 1);
    done += (total - left) * weight;
    all += total * weight;
  }
  return all === 0 ? 0 : Math.min(99, Math.floor((100 * done) / all));
}

function weightOf(
  { kinds, expectedMs }: Pick<Progress, 'kinds' | 'expectedMs'>,
  kind: string,
): number | undefined {
  const all = Object.entries(kinds);
  const similar = all.filter(([other]) => groupOf(other) === groupOf(kind));
  return (
    meanOf([kinds[kind] ?? noKind]) ??
    expectedMs[kind] ??
    medianOf(similar.flatMap(([, one]) => meanOf([one]) ?? [])) ??
    meanOf(all.map(([, one]) => one))
  );
}

/** Steps that wait for a rollout, steps that Jobs perform, and steps that take hardly any time. */
function groupOf(kind: string): string {
  if (kind === 'verify' || kind === revertKind) return 'rollout';
  return isTemplateStepId(kind) ? 'job' : 'steward';
}

function meanOf(kinds: readonly KindProgress[]): number | undefined {
  const count = kinds.reduce((sum, one) => sum + one.count, 0);
  return count === 0 ? undefined : kinds.reduce((sum, { ms }) => sum + ms, 0) / count;
}

/** One step that takes very long, such as the upgrade of a database engine, says little about others. */
function medianOf(means: readonly number[]): number | undefined {
  return means.toSorted((a, b) => a - b)[Math.floor(means.length / 2)];
}

function meansOf({ kinds }: Progress): Record<string, number> {
  const means: Record<string, number> = {};
  for (const [kind, measured] of Object.entries(kinds)) {
    const mean = meanOf([measured]);
    if (mean !== undefined) means[kind] = Math.round(mean);
  }
  return means;
}

/**
 * A step counts at most twice the mean of those before it, unless the one before it took as long: a single slow
 * rollout says little about the others.
 */
function measure({ kinds, stepStartedAt }: Progress, kind: string, at: number): Progress['kinds'] {
  const { [kind]: known = noKind } = kinds;
  const { count, ms, lastMs } = known;
  const tookMs = Math.max(0, at - stepStartedAt);
  const most = count === 0 ? Infinity : Math.max((2 * ms) / count, lastMs);
  const measured = { ...known, count: count + 1, ms: ms + Math.min(tookMs, most), lastMs: tookMs };
  return { ...kinds, [kind]: measured };
}

function leaveOne(kinds: Progress['kinds'], kind: string): Progress['kinds'] {
  const { [kind]: known = noKind } = kinds;
  return { ...kinds, [kind]: { ...known, left: Math.max(0, known.left - 1) } };
}

function countLeft(kinds: Progress['kinds'], steps: readonly Step[], done: number): Progress['kinds'] {
  const left = countKinds(steps.slice(done));
  return Object.fromEntries(
    Object.entries(kinds).map(([kind, known]) => [kind, { ...known, left: left.get(kind) ?? 0 }]),
  );
}

function countKinds(steps: readonly Step[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const step of steps) counts.set(kindOf(step), (counts.get(kindOf(step)) ?? 0) + 1);
  return counts;
}

function currentOf(step: Step | undefined): { current?: string } {
  return step ? { current: kindOf(step) } : {};
}
