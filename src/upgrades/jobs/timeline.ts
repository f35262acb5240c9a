// The phases of a job with their durations, and its components. Both outlive the plan, so that the page of an ended
// job shows them.
import { groupBy } from '../../lib/collections.ts';
import type { Plan, Step } from '../planning/plan.ts';
import { type PhaseName, steps } from '../executors/steps.ts';

export type Phase = {
  readonly name: PhaseName;
  /** The index of the hop, if the upgrade has several. */
  readonly hop?: number;
  /** The index of its first step. */
  readonly first: number;
  readonly steps: number;
  /** How long its steps have taken so far, those that failed included. */
  readonly ms: number;
};

/** `total` counts the moves of its workloads. A workload that two versions change moves twice. */
type Component = {
  readonly name: string;
  readonly total: number;
  /** The moves in finished hops. They stay if the job is cancelled. */
  readonly kept?: number;
};

export type Timeline = { readonly phases: readonly Phase[]; readonly components: readonly Component[] };

/** The job is stored with every step, so it must stay small. */
const maxComponents = 200;

export function startTimeline(plan: Plan): Timeline {
  const phases: Phase[] = [];
  for (const [index, step] of plan.steps.entries()) {
    const name = steps[step.id].phase;
    const { hop } = step;
    const last = phases.at(-1);
    // The steps before the first hop belong to it.
    const continues = last?.name === name && (last.hop === hop || last.hop === undefined);
    const begun = continues ? phases.pop() : undefined;
    phases.push({
      ...(begun ?? { name, first: index, ms: 0 }),
      ...(hop !== undefined && { hop }),
      steps: (begun?.steps ?? 0) + 1,
    });
  }
  const components = componentProgress(plan, 0).slice(0, maxComponents);
  return { phases, components: components.map(({ name, total }) => ({ name, total })) };
}

/** Empty for a step that concerns no component. */
function componentOfStep({ workload, id, subject }: Step): string {
  return workload?.component ?? (id === 'component-begin' || id === 'component-end' ? subject : '');
}

/** With the time that the step at `index` has taken. */
export function addStepTime({ phases, components }: Timeline, index: number, tookMs: number): Timeline {
  const current = phases.findLast(({ first }) => first <= index);
  const ms = Math.max(0, tookMs);
  return { phases: phases.map((one) => (one === current ? { ...one, ms: one.ms + ms } : one)), components };
}

/** Records how far each component is at the end of a hop. */
export function keepMoves(timeline: Timeline, plan: Plan, next: number): Timeline {
  const done = new Map(componentProgress(plan, next).map((one) => [one.name, one.done]));
  const components = timeline.components.map((one) => ({ ...one, kept: done.get(one.name) ?? 0 }));
  return { ...timeline, components };
}

export type ComponentProgress = Component & {
  readonly done: number;
  readonly isCurrent: boolean;
  /** The names of its workloads. */
  readonly workloads: readonly string[];
};

/** How far each component is when the steps before `next` are done. */
export function componentProgress({ steps }: Plan, next: number): ComponentProgress[] {
  const current = steps[next] ? componentOfStep(steps[next]) : '';
  const isDone = ({ seqNum }: Step) => seqNum < next;
  const moving = steps.filter(({ workload }) => workload !== null);
  return Array.from(groupBy(moving, componentOfStep), ([name, ofComponent]) => {
    const moves = ofComponent.filter(({ counts }) => counts !== null);
    const done = moves.filter(isDone).length;
    const begun = ofComponent.filter((step) => step.action === 'apply' && isDone(step)).length;
    const workloads = [...new Set(ofComponent.map(({ subject }) => subject))];
    return { name, total: moves.length, done, isCurrent: name === current || begun > done, workloads };
  });
}
