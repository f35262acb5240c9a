// The plan of a job: a list of steps. It is computed once, stored, and executed step by step. Its digest identifies it.
import { createHash } from 'node:crypto';
import type { Code } from './messages.ts';
import { installedVersions } from '../versions/deployment.ts';
import type { Hop } from '../versions/hops.ts';
import type { Container, Version } from '../versions/manifest.ts';
import {
  type Performers,
  type StepId,
  type TemplateStepId,
  databaseSteps,
  isTemplateStepId,
  steps,
} from '../executors/steps.ts';
import type { Workload } from '../executors/workloads.ts';

type PerformedBy = 'steward' | 'rollout' | 'job' | 'nobody' | 'simulation';

type StepAction = 'perform' | 'run-template' | 'apply' | 'verify' | 'rollback' | 'check';

export type Step = {
  /** The position in the plan. */
  readonly seqNum: number;
  readonly id: StepId;
  readonly name: string;
  readonly performedBy: PerformedBy;
  /** The name of the step template, if a Job performs the step. */
  readonly template: string | null;
  /** The hash of what the Job does. */
  readonly templateContent?: string;
  /** Its messages say so, and nothing is executed. */
  readonly isSkipped: boolean;
  readonly action: StepAction;
  readonly workload: Workload | null;
  readonly codes: readonly Code[];
  /** The component, the workload or the hook that its messages name. */
  readonly subject: string;
  /** Set only in a step that completes a workload. */
  readonly counts: WorkloadCounts | null;
  /** The index of the hop. The first steps of a job and its final check belong to none, nor do those of a rollback. */
  readonly hop?: number;
};

type WorkloadCounts = { readonly done: number; readonly total: number };

export type Plan = {
  readonly steps: readonly Step[];
  readonly workloads: number;
  /** How many workloads are moved at the same time, also when they are put back. */
  readonly parallelism: number;
  /** The databases that the step `database-engine` upgrades. Only a simulation knows them. */
  readonly databases?: readonly string[];
  /** A rollback is one hop. */
  readonly hops: readonly Hop[];
};

export type PlannedSteps = Omit<Plan, 'hops'>;

/**
 * A step before it is known who performs it, and at which position. A step that frames others has their ids: without
 * one that is performed, its messages say that it is skipped.
 */
type Draft = Omit<Step, 'seqNum' | 'performedBy' | 'template' | 'isSkipped'> & {
  readonly frames?: readonly TemplateStepId[];
};

const kinds: Readonly<Record<StepId, { readonly name: string; readonly codes: readonly Code[] }>> = steps;

function step(id: StepId): Draft {
  const { name, codes } = kinds[id];
  const action = isTemplateStepId(id) ? 'run-template' : 'perform';
  const subject = steps[id].by === 'hook' ? id : '';
  return { id, name, action, workload: null, codes, subject, counts: null };
}

function stepList(...ids: readonly StepId[]): Draft[] {
  return ids.map(step);
}

const finalCheck: Draft = { ...step('final-check'), action: 'check' };

/** `what` the workload is called in the name of the step. */
function namedStep(id: StepId, subject: string, what = ''): Draft {
  const draft = step(id);
  return { ...draft, name: `${draft.name}${what} ${subject}`, subject };
}

function workloadStep(id: StepId, action: StepAction, workload: Workload, what?: string): Draft {
  return { ...namedStep(id, workload.name, what), action, workload };
}

/** A step without a template is skipped; a hook without one is left out. */
function createPlan(
  drafts: readonly Draft[],
  counts: Pick<Plan, 'workloads' | 'parallelism'>,
  performers: Performers,
): PlannedSteps {
  const { isSimulated, templates } = performers;
  const hasTemplate = (id: StepId) => isTemplateStepId(id) && templates.has(id);
  // The pre-diagnostics of a patch frame nothing. A simulation simulates them.
  const isEmpty = (frames: readonly StepId[]) =>
    frames.length === 0 ? !isSimulated : !frames.some(hasTemplate);
  const present = drafts.filter(({ id }) => steps[id].by !== 'hook' || hasTemplate(id));
  const planned = present.map(({ frames, ...draft }, seqNum) => {
    const { id } = draft;
    const isTemplateStep = isTemplateStepId(id);
    const content = isTemplateStep ? performers.contents?.get(id) : undefined;
    return {
      ...draft,
      seqNum,
      performedBy: findPerformer(id, performers),
      template: isTemplateStep && !isSimulated ? (templates.get(id) ?? null) : null,
      ...(content !== undefined && { templateContent: content }),
      isSkipped: isTemplateStep ? !hasTemplate(id) : frames !== undefined && isEmpty(frames),
    };
  });
  return { steps: planned, ...counts, ...(isSimulated && { databases: simulatedDatabases }) };
}

const simulatedDatabases = ['catalog', 'hosting', 'portal'];

function findPerformer(id: StepId, { isSimulated, templates }: Performers): PerformedBy {
  if (steps[id].by === 'steward') return 'steward';
  if (isTemplateStepId(id) && !templates.has(id)) return 'nobody';
  if (isSimulated) return 'simulation';
  return isTemplateStepId(id) ? 'job' : 'rollout';
}

type Stages = { readonly begin: readonly Draft[]; readonly verify: readonly Draft[] };

/** Begins up to `parallelism` workloads before it verifies the first, so that their rollouts overlap. */
function interleave(stages: readonly Stages[], parallelism: number): Draft[] {
  const ahead = parallelism - 1;
  return [
    ...stages.slice(0, ahead).flatMap(({ begin }) => begin),
    ...stages.flatMap(({ verify }, index) => [...(stages[index + ahead]?.begin ?? []), ...verify]),
  ];
}

const moveCodes = {
  deployment: { begin: 2101, verify: [2103, 2175] },
  module: { begin: 2291, verify: [2173] },
} as const;

function moveStages(workload: Workload, what: keyof typeof moveCodes, counts: WorkloadCounts): Stages {
  const codes = moveCodes[what];
  return {
    begin: [
      { ...namedStep('begin', workload.name, ` ${what}`), codes: [codes.begin] },
      workloadStep('update', 'apply', workload, ` ${what}`),
    ],
    verify: [{ ...workloadStep('verify', 'verify', workload, ` ${what}`), codes: codes.verify, counts }],
  };
}

function planDeployments(
  workloads: readonly Workload[],
  parallelism: number,
  { done, total }: WorkloadCounts,
): Draft[] {
  const stages = workloads.map((workload, index) => {
    const { component } = workload;
    const { begin, verify } = moveStages(workload, 'deployment', { done: done + index + 1, total });
    const begins = workloads[index - 1]?.component !== component;
    const ends = workloads[index + 1]?.component !== component;
    return {
      begin: [...(begins ? [namedStep('component-begin', component)] : []), ...begin],
      verify: [...verify, ...(ends ? [namedStep('component-end', component)] : [])],
    };
  });
  return interleave(stages, parallelism);
}

/** Each patch is verified before the next one begins, because both may move the same workload. */
function planModules(patches: Workloads, parallelism: number, before: WorkloadCounts): Draft[] {
  const { total } = before;
  let { done } = before;
  const stagesOf = (workload: Workload) => moveStages(workload, 'module', { done: (done += 1), total });
  return patches.flatMap((workloads) => interleave(workloads.map(stagesOf), parallelism));
}

/** One list for each version, in the order of installation. */
type Workloads = readonly (readonly Workload[])[];

type HopMoves = { readonly isRelease: boolean; readonly workloads: Workloads };

/** The workloads of each hop, in the order of the hops. */
export function planSteps(
  hops: readonly HopMoves[],
  parallelism: number,
  performers: Performers,
): PlannedSteps {
  const total = hops.reduce((sum, { workloads }) => sum + workloads.flat().length, 0);
  let done = 0;
  const drafts = hops.flatMap(({ isRelease, workloads }, hop) => {
    const planHop = isRelease ? draftRelease : draftPatches;
    const planned = planHop(workloads, parallelism, { done, total, hops: hops.length });
    done += workloads.flat().length;
    return planned.map((draft) => ({ ...draft, hop }));
  });
  const all = [...stepList('launch', 'read-only'), ...drafts, finalCheck];
  return createPlan(all, { workloads: total, parallelism }, performers);
}

function draftRelease(
  [deployments = [], ...patches]: Workloads,
  parallelism: number,
  { done, total, hops }: WorkloadCounts & { readonly hops: number },
): Draft[] {
  const { length } = deployments;
  // In an upgrade with one hop, the patches that come along are not counted before they begin.
  const ofDeployments = { done, total: hops === 1 ? length : total };
  const ofPatches = { done: done + length, total };
  return [
    ...stepList('prepare', 'diagnostics-begin', 'database-validate', 'search-check'),
    { ...step('diagnostics-end'), frames: ['database-validate', 'search-check'] },
    ...stepList('before', 'execute'),
    { ...step('database-begin'), frames: databaseSteps },
    ...stepList(...databaseSteps),
    { ...step('database-end'), frames: databaseSteps },
    ...planDeployments(deployments, parallelism, ofDeployments),
    ...stepList('portal-content', 'post-upgrade', 'logging', 'services-refresh', 'search-refresh'),
    ...planModules(patches, parallelism, ofPatches),
    step('after'),
  ];
}

function draftPatches(patches: Workloads, parallelism: number, before: WorkloadCounts): Draft[] {
  return [
    ...stepList('prepare', 'diagnostics-begin'),
    { ...step('diagnostics-end'), frames: [] },
    ...stepList('before', 'execute'),
    ...planModules(patches, parallelism, before),
    ...stepList('post-upgrade', 'logging', 'after'),
  ];
}

export function planRollback(
  workloads: readonly Workload[],
  parallelism: number,
  performers: Performers,
): PlannedSteps {
  const drafts = [
    ...stepList('launch', 'read-only', 'prepare', 'before-rollback', 'execute'),
    ...workloads.map((workload, index) => ({
      ...workloadStep('revert', 'rollback', workload),
      counts: { done: index + 1, total: workloads.length },
    })),
    step('after'),
    finalCheck,
  ];
  return createPlan(drafts, { workloads: workloads.length, parallelism }, performers);
}

/** The steps of each kind of job, without those that are skipped. A failed patch puts its workloads back. */
export function performedSteps(performers: Performers) {
  const workloads: Workload[] = [{ name: '', component: '', parts: [] }];
  const idsOf = ({ steps }: PlannedSteps) => steps.filter(({ isSkipped }) => !isSkipped).map(({ id }) => id);
  const planOne = (isRelease: boolean) => planSteps([{ isRelease, workloads: [workloads] }], 1, performers);
  return {
    release: new Set(idsOf(planOne(true))),
    patch: new Set([...idsOf(planOne(false)), 'revert']),
    rollback: new Set(idsOf(planRollback(workloads, 1, performers))),
  };
}

/**
 * The workloads that the plan updates, in the order of its steps. One that several versions change appears for each
 * of them.
 */
export function updatedWorkloads({ steps }: Plan): Workload[] {
  return steps.flatMap(({ action, workload }) => (action === 'apply' && workload ? [workload] : []));
}

/** What the job has moved when all steps are done: for each workload the images of its last move. */
export function movedWorkloads({ steps }: Plan): Workload[] {
  const moved = new Map<string, Workload>();
  for (const { action, workload } of steps) {
    if (!workload || (action !== 'apply' && action !== 'rollback')) continue;
    const earlier = moved.get(workload.name)?.parts ?? [];
    const parts = new Map([...earlier, ...workload.parts].map((part) => [part.container, part]));
    moved.set(workload.name, { ...workload, parts: [...parts.values()] });
  }
  return [...moved.values()];
}

export function planToJson(plan: Plan) {
  return plan.steps.map(({ seqNum, id, name, codes, performedBy, template, subject }) => ({
    seqNum,
    id,
    name,
    codes,
    performedBy,
    ...(template !== null && { template }),
    ...(steps[id].by === 'workload' && { workload: subject }),
  }));
}

/**
 * Equal digests mean the same versions in every hop, the same images, the same steps and the same step templates. Settings, names and notes are
 * no part of it: the caller of `upgrade` sends them anyway. Lists the values in a fixed order, because a database may
 * return the fields of an object in another order than it got them.
 */
export function digestPlan({ from, to, plan }: { from: string; to: string | null; plan: Plan }): string {
  const versions = plan.hops.map(({ after }) => installedVersions(after).map(versionValues));
  const content = JSON.stringify([from, to, versions, plan.steps.map(stepValues)]);
  return createHash('sha256').update(content).digest('hex');
}

function versionValues({ id, type, version, build, containers, newContainers }: Version) {
  return [id, type, version, build, containers.map(containerValues), newContainers.map(containerValues)];
}

function containerValues({ name, image, checksum }: Container) {
  return [name, image, checksum];
}

function stepValues({
  id,
  name,
  performedBy,
  template,
  templateContent,
  isSkipped,
  action,
  codes,
  workload,
}: Step) {
  const parts = workload?.parts.map(({ container, image, formerImage }) => [container, image, formerImage]);
  const values = [id, name, performedBy, template, isSkipped, action, codes];
  const content = templateContent === undefined ? [] : [templateContent];
  return [...values, workload && [workload.name, workload.component, parts], ...content];
}
