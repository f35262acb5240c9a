// How far a job is: its steps, weighted by how long a step of their kind takes, and the time that is left.
//
// The kind of a step is its id, or `skipped`. Its weight is the mean duration of such steps in this job and in the
// earlier ones. Before the first measurement, it is the mean of similar kinds, or of all steps. The weights change while
// the job runs, so `percent` is stored: it goes down only when a workload is put back.
import type { Plan, Step } from '../planning/plan.ts';
import { isTemplateStepId } from '../executors/steps.ts';

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
  readonly total: number;
  readonly left: number;
  /** How often such a step was measured. One that is repeated after its workload was put back counts again. */
  readonly count: number;
  readonly ms: number;
  /** The longest of this job, and of the newest one before it that has measured any. */
  readonly maxMs?: number;
  readonly earlierMaxMs?: number;
};

/** Earlier jobs count as this many steps of a kind: a single slow step of this job says little about the others. */
const maxKnown = 10;

const noKind: KindProgress = { total: 0, left: 0, count: 0, ms: 0 };

/** Reverting has no steps of its own in the plan of a patch. */
const revertKind = 'revert';

const kindOf = ({ id, isSkipped }: Step): string => (isSkipped ? 'skipped' : id);
const currentKind = (step: Step | undefined): string | null => (step ? kindOf(step) : null);

export function startProgress({ steps }: Plan, earlier: Progress | undefined, at: number): Progress {
  const kinds: Record<string, KindProgress> = {};
  for (const [kind, { count, ms, maxMs = 0, earlierMaxMs = 0 }] of Object.entries(earlier?.kinds ?? {})) {
    const known = Math.min(count, maxKnown);
    if (known > 0)
      kinds[kind] = {
        ...noKind,
        count: known,
        ms: (known * ms) / count,
        earlierMaxMs: maxMs || earlierMaxMs,
      };
  }
  for (const [kind, count] of countKinds(steps))
    kinds[kind] = { ...(kinds[kind] ?? noKind), total: count, left: count };
  return {
    done: 0,
    total: steps.length,
    percent: 0,
    current: currentKind(steps[0]),
    stepStartedAt: at,
    kinds,
  };
}

/** The step at `index` is done. */
export function advanceProgress(progress: Progress, { steps }: Plan, index: number, at: number): Progress {
  const step = steps[index];
  if (!step) return progress;
  const done = Math.max(progress.done, index + 1);
  const kinds = measure(progress, kindOf(step), at, done - progress.done);
  const moved = { ...progress, done, kinds, stepStartedAt: at, current: currentKind(steps[index + 1]) };
  return { ...moved, percent: Math.max(progress.percent, percentOf(kinds)) };
}

/** A workload was put back, so the steps from `index` on are no longer done; or it could not be put back. */
export function revertProgress(
  progress: Progress,
  { steps }: Plan,
  { index, isPutBack }: { index: number; isPutBack: boolean },
  at: number,
): Progress {
  const done = isPutBack ? Math.min(progress.done, index) : progress.done;
  const left = countKinds(steps.slice(done));
  const kinds = Object.fromEntries(
    Object.entries(measure(progress, revertKind, at)).map(([kind, known]) => [
      kind,
      { ...known, left: left.get(kind) ?? 0 },
    ]),
  );
  const percent = isPutBack ? Math.min(progress.percent, percentOf(kinds)) : progress.percent;
  return { ...progress, done, kinds, percent, stepStartedAt: at, current: currentKind(steps[index]) };
}

/** Whether a wait is longer than any step of the current kind took. False if none was measured. */
export function isLongWait({ kinds, current }: Progress, isReverting: boolean, waitedMs: number): boolean {
  const { maxMs = 0, earlierMaxMs = 0 } = kinds[isReverting ? revertKind : (current ?? '')] ?? {};
  const longest = Math.max(maxMs, earlierMaxMs);
  return longest > 0 && waitedMs > longest;
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
function percentOf(kinds: Progress['kinds']): number {
  let [done, all] = [0, 0];
  for (const [kind, { total, left }] of Object.entries(kinds)) {
    const weight = Math.max(1, weightOf(kinds, kind) ?? 1);
    done += (total - left) * weight;
    all += total * weight;
  }
  return all === 0 ? 0 : Math.min(99, Math.floor((100 * done) / all));
}

function weightOf(kinds: Progress['kinds'], kind: string): number | undefined {
  const similar = Object.entries(kinds).filter(([other]) => groupOf(other) === groupOf(kind));
  return (
    meanOf([kinds[kind] ?? noKind]) ?? meanOf(similar.map(([, one]) => one)) ?? meanOf(Object.values(kinds))
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

/** `leaves` is how many steps of the kind are no longer left. */
function measure({ kinds, stepStartedAt }: Progress, kind: string, at: number, leaves = 0) {
  const { [kind]: known = noKind } = kinds;
  const tookMs = Math.max(0, at - stepStartedAt);
  const maxMs = Math.max(known.maxMs ?? 0, tookMs);
  const measured = { count: known.count + 1, ms: known.ms + tookMs, maxMs };
  return { ...kinds, [kind]: { ...known, ...measured, left: Math.max(0, known.left - leaves) } };
}

function countKinds(steps: readonly Step[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const step of steps) counts.set(kindOf(step), (counts.get(kindOf(step)) ?? 0) + 1);
  return counts;
}
