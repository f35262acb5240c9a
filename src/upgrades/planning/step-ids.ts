// The ids of the steps of a plan (docs/protocol.md#steps), grouped by who performs them.

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

export type Hook = (typeof hooks)[number];
export type TemplateStepId = (typeof templateSteps)[number] | Hook;
export type StepId = (typeof stewardSteps)[number] | (typeof workloadSteps)[number] | TemplateStepId;

export const templateStepIds: readonly TemplateStepId[] = [...templateSteps, ...hooks];
export const stepIds: readonly StepId[] = [...stewardSteps, ...workloadSteps, ...templateStepIds];

export function isTemplateStepId(id: string): id is TemplateStepId {
  return templateStepIds.some((known) => known === id);
}
