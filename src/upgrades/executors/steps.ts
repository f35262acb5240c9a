// The steps of a plan: their ids (docs/protocol.md#steps), and who performs them: Steward, the rollouts of workloads,
// Jobs made from step templates, or a simulation.

const stewardSteps = [
  'launch',
  'read-only',
  'prepare',
  'diagnostics-begin',
  'diagnostics-end',
  'execute',
  'database-begin',
  'database-end',
  'post-upgrade',
  'final-check',
] as const;

export const workloadSteps = [
  'component-begin',
  'component-end',
  'begin',
  'update',
  'verify',
  'revert',
] as const;

/** The steps between `database-begin` and `database-end`. */
export const databaseSteps = [
  'database-read-only',
  'database-engine',
  'database-promote',
  'database-read-write',
  'database-standby',
  'role-change',
  'database-post-upgrade',
] as const;

/** A plan has these steps even if there is no template for them. They are skipped then. */
export const templateSteps = [
  'database-validate',
  'search-check',
  ...databaseSteps,
  'portal-content',
  'logging',
  'services-refresh',
  'search-refresh',
] as const;

/** A plan has these steps only if there is a template for them. */
export const hooks = ['before', 'before-rollback', 'after'] as const;

export type TemplateStepId = (typeof templateSteps)[number] | (typeof hooks)[number];
export type StepId = (typeof stewardSteps)[number] | (typeof workloadSteps)[number] | TemplateStepId;

export const templateStepIds: readonly TemplateStepId[] = [...templateSteps, ...hooks];
export const stepIds: readonly StepId[] = [...stewardSteps, ...workloadSteps, ...templateStepIds];

export function isTemplateStepId(id: string): id is TemplateStepId {
  return templateStepIds.some((known) => known === id);
}

export type Performers = {
  readonly isSimulated: boolean;
  /** The names of the templates, by the ids of their steps. */
  readonly templates: ReadonlyMap<TemplateStepId, string>;
  /** Hashes of what the Jobs of the templates do. */
  readonly contents?: ReadonlyMap<TemplateStepId, string>;
};

/** The default has a template for every step, and no hooks. */
export function simulatedPerformers(ids: readonly TemplateStepId[] = templateSteps): Performers {
  return { isSimulated: true, templates: new Map(ids.map((id) => [id, id])) };
}

/** The name of the Job that performs a step, which is unique for each attempt. */
export function nameOfStepJob(jobId: string, seqNum: number, attempt: number): string {
  return `steward-${jobId.slice(0, 8)}-${seqNum}-${attempt}`;
}
