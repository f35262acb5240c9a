// The plan of a job: a list of steps. It is computed once, stored, and executed step by step.
import type { Code } from './messages.ts';
import type { Workload } from './workloads.ts';

export type Action = 'perform' | 'apply' | 'verify' | 'rollback';

export type Step = {
  readonly name: string;
  readonly action: Action;
  readonly workload: Workload | null;
  readonly codes: readonly Code[];
  /** The component or the workload that its messages name. */
  readonly subject: string;
  /** Set only in a step that completes a workload. */
  readonly counts: Counts | null;
};

export type Counts = { readonly done: number; readonly total: number };

export type Plan = {
  readonly steps: readonly Step[];
  readonly workloads: number;
};

const step = (name: string, ...codes: Code[]): Step => ({
  counts: null,
  name,
  action: 'perform',
  workload: null,
  codes,
  subject: '',
});

function workloadStep(name: string, action: Action, workload: Workload, ...codes: Code[]): Step {
  return { name: `${name} ${workload.name}`, action, workload, codes, subject: workload.name, counts: null };
}

type Stages = { readonly begin: readonly Step[]; readonly verify: readonly Step[] };

/** Begins up to `parallelism` workloads before it verifies the first, so that their rollouts overlap. */
function interleave(stages: readonly Stages[], parallelism: number): Step[] {
  const ahead = parallelism - 1;
  return [
    ...stages.slice(0, ahead).flatMap(({ begin }) => begin),
    ...stages.flatMap(({ verify }, index) => [...(stages[index + ahead]?.begin ?? []), ...verify]),
  ];
}

function planDeployments(workloads: readonly Workload[], parallelism: number): Step[] {
  const stages = workloads.map((workload, index) => {
    const { component } = workload;
    const begins = workloads[index - 1]?.component !== component;
    const ends = workloads[index + 1]?.component !== component;
    return {
      begin: [
        ...(begins ? [{ ...step(`Begin component ${component}`, 2134), subject: component }] : []),
        { ...workloadStep('Begin deployment', 'perform', workload, 2101), workload: null },
        workloadStep('Update deployment', 'apply', workload, 2038),
      ],
      verify: [
        {
          ...workloadStep('Verify deployment', 'verify', workload, 2103, 2175),
          counts: { done: index + 1, total: workloads.length },
        },
        ...(ends ? [{ ...step(`End component ${component}`, 2132), subject: component }] : []),
      ],
    };
  });
  return interleave(stages, parallelism);
}

/** Each patch is verified before the next one begins, because both may move the same workload. */
function planModules(patches: Workloads, parallelism: number, before = 0): Step[] {
  const total = before + patches.flat().length;
  let done = before;
  const stagesOf = (workload: Workload) => ({
    begin: [
      { ...workloadStep('Begin module', 'perform', workload, 2291), workload: null },
      workloadStep('Update module', 'apply', workload, 2038),
    ],
    verify: [
      { ...workloadStep('Verify module', 'verify', workload, 2173), counts: { done: (done += 1), total } },
    ],
  });
  return patches.flatMap((workloads) => interleave(workloads.map(stagesOf), parallelism));
}

/** One list for each version, in the order of installation. */
type Workloads = readonly (readonly Workload[])[];

export function planRelease([deployments = [], ...patches]: Workloads, parallelism: number): Plan {
  const steps = [
    step('Launch the upgrader', 2168),
    step('Enter read-only mode', 2165),
    step('Prepare the plan', 2270),
    step('Begin pre-diagnostics', 2287),
    step('Validate the relational database', 2094),
    step('Check the search index', 2281),
    step('End pre-diagnostics', 2288),
    step('Execute the plan', 2271),
    step('Begin the relational database', 2108),
    step('Set the primary to read-only mode', 2087),
    step('Upgrade the database engine', 2144, 2153, 2145),
    step('Promote the standby', 2090),
    step('Set the new primary to read-write mode', 2093),
    step('Add a new standby', 2092),
    step('Announce the role change', 2151),
    step('Run the database post-upgrade', 2148, 2149),
    step('End the relational database', 2109),
    ...planDeployments(deployments, parallelism),
    step('Update portal content', 2187, 2188),
    step('Begin post-upgrade operations', 2179),
    step('Post-upgrade operations for logging', 2180, 2181),
    step('Refresh auto-deployed services', 2178, 2185),
    step('Refresh the search indices', 2191, 2192),
    ...planModules(patches, parallelism, deployments.length),
  ];
  return { steps, workloads: deployments.length + patches.flat().length };
}

export function planPatches(patches: Workloads, parallelism: number): Plan {
  const steps = [
    step('Launch the upgrader', 2168),
    step('Enter read-only mode', 2165),
    step('Prepare the plan', 2270),
    step('Begin pre-diagnostics', 2287),
    step('End pre-diagnostics', 2288),
    step('Execute the plan', 2271),
    ...planModules(patches, parallelism),
    step('Begin post-upgrade operations', 2179),
    step('Post-upgrade operations for logging', 2180, 2181),
  ];
  return { steps, workloads: patches.flat().length };
}

export function planRollback(workloads: readonly Workload[]): Plan {
  const steps = [
    step('Launch the upgrader', 2168),
    step('Enter read-only mode', 2165),
    step('Prepare the plan', 2270),
    step('Execute the plan', 2271),
    ...workloads.map((workload, index) => ({
      ...workloadStep('Put back', 'rollback', workload, 2904, 2173),
      counts: { done: index + 1, total: workloads.length },
    })),
  ];
  return { steps, workloads: workloads.length };
}

export function summarisePlan(plan: Plan) {
  const moved = movedWorkloads(plan);
  return {
    components: [...new Set(moved.map(({ component }) => component))],
    newWorkloads: moved.filter(({ parts }) => parts.every(({ formerImage }) => formerImage === null)).length,
  };
}

/** The workloads that the plan moves, in the order of its steps. */
export function movedWorkloads({ steps }: Plan): Workload[] {
  return steps.flatMap(({ action, workload }) => (action === 'apply' && workload ? [workload] : []));
}

export function planToJson({ steps }: Plan) {
  return steps.map(({ name, codes }, seqNum) => ({ seqNum, name, codes }));
}
