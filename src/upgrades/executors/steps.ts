// The steps of plans (docs/protocol.md#steps): what each is called, who performs it, which messages it records, and the
// names of the Jobs that perform them.

/**
 * Steward itself, the rollout of a workload, or a Job made from a step template. A plan has a hook only if there is a
 * template for it; other steps without one are skipped.
 */
type By = 'steward' | 'workload' | 'template' | 'hook';

/** The part of a job to which the page of the job counts the step. */
export type PhaseName = 'prepare' | 'database' | 'deployments' | 'finish' | 'check';

function define<const B extends By, const C extends number = never>(
  by: B,
  phase: PhaseName,
  name: string,
  codes: readonly C[] = [],
) {
  return { by, phase, name, codes };
}

export const steps = {
  launch: define('steward', 'prepare', 'Launch the upgrader', [2168]),
  'read-only': define('steward', 'prepare', 'Enter read-only mode', [2165]),
  prepare: define('steward', 'prepare', 'Prepare the plan', [2270]),
  'diagnostics-begin': define('steward', 'prepare', 'Begin pre-diagnostics', [2287]),
  'diagnostics-end': define('steward', 'prepare', 'End pre-diagnostics', [2288]),
  execute: define('steward', 'prepare', 'Execute the plan', [2271]),
  'database-begin': define('steward', 'database', 'Begin the relational database', [2108]),
  'database-end': define('steward', 'database', 'End the relational database', [2109]),
  'post-upgrade': define('steward', 'finish', 'Begin post-upgrade operations', [2179]),
  'final-check': define('steward', 'check', 'Check all workloads'),
  // The plan adds to the names what is moved. `begin` and `verify` have other messages in a release than in a patch.
  'component-begin': define('workload', 'deployments', 'Begin component', [2134]),
  'component-end': define('workload', 'deployments', 'End component', [2132]),
  begin: define('workload', 'deployments', 'Begin'),
  update: define('workload', 'deployments', 'Update', [2038]),
  verify: define('workload', 'deployments', 'Verify'),
  revert: define('workload', 'deployments', 'Put back', [2904, 2173]),
  'database-validate': define('template', 'prepare', 'Validate the relational database', [2094]),
  'search-check': define('template', 'prepare', 'Check the search index', [2281]),
  'database-read-only': define('template', 'database', 'Set the primary to read-only mode', [2087]),
  'database-engine': define('template', 'database', 'Upgrade the database engine', [2144, 2153, 2145]),
  'database-promote': define('template', 'database', 'Promote the standby', [2090]),
  'database-read-write': define('template', 'database', 'Set the new primary to read-write mode', [2093]),
  'database-standby': define('template', 'database', 'Add a new standby', [2092]),
  'role-change': define('template', 'database', 'Announce the role change', [2151]),
  'database-post-upgrade': define('template', 'database', 'Run the database post-upgrade', [2148, 2149]),
  'portal-content': define('template', 'finish', 'Update portal content', [2187, 2188]),
  logging: define('template', 'finish', 'Post-upgrade operations for logging', [2180, 2181]),
  'services-refresh': define('template', 'finish', 'Refresh auto-deployed services', [2178, 2185]),
  'search-refresh': define('template', 'finish', 'Refresh the search indices', [2191, 2192]),
  before: define('hook', 'prepare', 'Run the hook before', [2906, 2907]),
  'before-rollback': define('hook', 'prepare', 'Run the hook before-rollback', [2906, 2907]),
  after: define('hook', 'finish', 'Run the hook after', [2906, 2907]),
};

export type StepId = keyof typeof steps;
type StepIdBy<B extends By> = { [Id in StepId]: (typeof steps)[Id]['by'] extends B ? Id : never }[StepId];
export type TemplateStepId = StepIdBy<'template' | 'hook'>;

export const stepIds = Object.keys(steps) as StepId[];

export function isTemplateStepId(id: string): id is TemplateStepId {
  return ['template', 'hook'].includes((steps as Partial<Record<string, { by: By }>>)[id]?.by ?? '');
}

export const templateStepIds = stepIds.filter(isTemplateStepId);
export const templateSteps = templateStepIds.filter((id) => steps[id].by === 'template');
/** The steps between `database-begin` and `database-end`, in the order of a plan. */
export const databaseSteps = templateSteps.filter((id) => steps[id].phase === 'database');

/** Whether the message of the step is the result that its Job has left. */
export function returnsResult(id: StepId): boolean {
  return (steps[id].codes as readonly number[]).includes(2153);
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
