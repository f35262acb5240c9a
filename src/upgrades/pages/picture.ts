// A job as a picture: its phases with their durations, and a tile for each component that fills as its workloads move.
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Job } from '../jobs/job-table.ts';
import { type ComponentProgress, type Phase, componentProgress } from '../jobs/timeline.ts';
import type { Plan } from '../planning/plan.ts';

const phaseLabels: Readonly<Record<Phase['name'], string>> = {
  prepare: 'Prepare',
  database: 'Database',
  deployments: 'Deployments',
  finish: 'Post-upgrade',
  check: 'Final check',
};

type PartState = 'done' | 'current' | 'failed' | 'waiting' | 'partial' | 'unchanged';

const stateLabels: Readonly<Record<PartState, string>> = {
  done: 'done',
  current: 'in progress',
  failed: 'failed',
  waiting: 'not started',
  partial: 'partly done',
  unchanged: 'as before the job',
};

/** With several hops: one item for each, named by its version, and the phases of the current one. */
export function phasesView(job: Job, plan: Plan | undefined, now: number): Html {
  const parts = job.timeline.phases.map((phase): Part => {
    const state = stateOfPhase(job, phase);
    const ms = state === 'current' ? phase.ms + Math.max(0, now - job.progress.stepStartedAt) : phase.ms;
    return { label: phaseLabel(phase, job.timeline.phases), state, ms, hop: phase.hop };
  });
  const hops = [...new Set(parts.flatMap(({ hop }) => hop ?? []))];
  if (hops.length < 2) return partList('Phases', parts);
  const ofHop = (hop: number) => parts.filter((part) => part.hop === hop);
  const current = hops.find((hop) => ofHop(hop).some(({ state }) => state !== 'done'));
  return html`${partList('Versions', [
    ...hops.map((hop) => {
      const to = plan?.hops[hop]?.to;
      const label = `Version ${hop + 1} of ${hops.length}`;
      return joinParts(to === undefined ? label : `${label}: ${to}`, ofHop(hop));
    }),
    ...parts.filter(({ hop }) => hop === undefined),
  ])}
    ${current !== undefined && partList(`Phases of version ${current + 1}`, ofHop(current))}`;
}

type Part = {
  readonly label: string;
  readonly state: PartState;
  readonly ms: number;
  readonly hop?: number | undefined;
};

function joinParts(label: string, parts: readonly Part[]): Part {
  const isAll = (state: PartState) => parts.every((part) => part.state === state);
  const hasFailed = parts.some(({ state }) => state === 'failed');
  const state = hasFailed ? 'failed' : isAll('done') ? 'done' : isAll('waiting') ? 'waiting' : 'current';
  return { label, state, ms: parts.reduce((sum, { ms }) => sum + ms, 0) };
}

function partList(label: string, parts: readonly Part[]): Html {
  return html`<ol class="phases" aria-label="${label}">
    ${parts.map(
      ({ label: name, state, ms }) =>
        html`<li class="${state}">
          <strong>${name}</strong>
          <span>${state === 'waiting' ? 'Not started' : formatDuration(ms)}</span>
          ${state === 'failed' && html`<span class="bad">failed</span>`}
        </li> `,
    )}
  </ol>`;
}

/** A release that also installs its patches updates deployments twice. */
function phaseLabel(phase: Phase, all: readonly Phase[]): string {
  const first = all.find(({ name, hop }) => name === phase.name && hop === phase.hop);
  return first === phase ? phaseLabels[phase.name] : `${phaseLabels[phase.name]} (patches)`;
}

function stateOfPhase({ state, next }: Job, { first, steps, ms }: Phase): PartState {
  if (state === 'cancelled' && next < first + steps) return ms > 0 ? 'unchanged' : 'waiting';
  if (state === 'success' || next >= first + steps) return 'done';
  if (next < first) return 'waiting';
  return state === 'failed' ? 'failed' : state === 'in_progress' ? 'current' : 'waiting';
}

export function tilesOf(job: Job, plan: Plan | undefined): ComponentProgress[] {
  if (plan) return componentProgress(plan, job.next);
  const isDone = job.state === 'success';
  return job.timeline.components.map((component) => ({
    ...component,
    done: isDone ? component.total : (component.kept ?? 0),
    isCurrent: false,
    workloads: [],
  }));
}

/** The component at whose step the job has failed. */
function failedComponent(job: Job, plan: Plan | undefined): string | undefined {
  if (job.state !== 'failed' || !plan) return undefined;
  const step = plan.steps[job.failedAt ?? job.next];
  return step?.workload?.component ?? tilesOf(job, plan).find(({ isCurrent }) => isCurrent)?.name;
}

/** `selected` is the component whose messages the page shows. A second click shows all messages again. */
export function tilesView(job: Job, plan: Plan | undefined, selected: string | undefined): Html | false {
  const tiles = tilesOf(job, plan);
  const isCancelled = job.state === 'cancelled';
  if (tiles.length === 0 || job.state === 'scheduled') return false;
  const failed = failedComponent(job, plan);
  // The failed one needs attention, so it comes first.
  const inOrder = tiles.toSorted((a, b) => Number(b.name === failed) - Number(a.name === failed));
  return html`<ul class="tiles" aria-label="Components">
    ${inOrder.map((tile) => {
      const { name, total, done } = tile;
      // What finished hops have changed stays.
      const isUnchanged = isCancelled && done === 0;
      const state = isUnchanged ? 'unchanged' : name === failed ? 'failed' : stateOfTile(tile, job);
      const percent = total === 0 ? 0 : Math.round((100 * done) / total);
      return html`<li class="${state}">
        <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
          <rect width="${percent}" height="1" />
        </svg>
        <a href="${name === selected ? '?' : `?component=${encodeURIComponent(name)}`}" ${name === selected && html`aria-current="true"`}
          ><strong>${name}</strong> <span>${isUnchanged ? 'As before' : `${done} of ${formatCount(total, 'update')}`}${state === 'failed' && ', failed'}</span>
          <span class="unseen">${stateLabels[state]}: show its messages</span></a
        >
      </li> `;
    })}
  </ul>`;
}

function stateOfTile({ done, total, isCurrent }: ComponentProgress, { state }: Job): PartState {
  if (done >= total) return 'done';
  if (isCurrent && state === 'in_progress') return 'current';
  return done > 0 ? 'partial' : 'waiting';
}
