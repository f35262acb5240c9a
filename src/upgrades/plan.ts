// The plan of a job: a list of steps computed once from its inputs, stored, and done one after another (contract 6).
import type { Version } from './manifest.ts';
import type { Code } from './messages.ts';
import { type Deployment, imagesOf } from './releases.ts';

/** A deployment of the cluster and the image it is moved to; `formerImage` is null where there was none. */
export type Workload = {
  readonly name: string;
  readonly image: string;
  readonly checksum: string;
  readonly formerImage: string | null;
};

/** What the executor is asked to do in a step: nothing but wait, or something with one workload. */
export type Action = 'perform' | 'apply' | 'verify' | 'rollback';

export type Step = {
  readonly name: string;
  readonly action: Action;
  /** The workload the step belongs to. */
  readonly workload: Workload | null;
  /** Recorded together with the step once it is done. */
  readonly codes: readonly Code[];
  /** What its messages name: a component, or the workload. */
  readonly subject: string;
  /** N out of M once the step is done; only steps that complete a workload have one. */
  readonly counts: Counts | null;
};

export type Counts = { readonly done: number; readonly total: number };

export type Plan = {
  readonly steps: readonly Step[];
  /** How many workloads the whole job moves. */ readonly workloads: number;
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

function workloadsOf(version: Version, images: ReadonlyMap<string, string>): Workload[] {
  return [...version.containers, ...version.newContainers].map(({ name, image, checksum }) => ({
    name,
    image,
    checksum,
    formerImage: images.get(name) ?? null,
  }));
}

/** The part of a container's name before the first underscore. */
function componentOf(name: string): string {
  return name.split('_', 1)[0] ?? name;
}

function planDeployments(workloads: readonly Workload[]): Step[] {
  return workloads.flatMap((workload, index) => {
    const component = componentOf(workload.name);
    const begins = index === 0 || componentOf(workloads[index - 1]?.name ?? '') !== component;
    const ends =
      index === workloads.length - 1 || componentOf(workloads[index + 1]?.name ?? '') !== component;
    return [
      ...(begins ? [{ ...step(`Begin component ${component}`, 2134), subject: component }] : []),
      { ...workloadStep('Begin deployment', 'perform', workload, 2101), workload: null },
      workloadStep('Update deployment', 'apply', workload, 2038),
      {
        ...workloadStep('Verify deployment', 'verify', workload, 2103, 2175),
        counts: { done: index + 1, total: workloads.length },
      },
      ...(ends ? [{ ...step(`End component ${component}`, 2132), subject: component }] : []),
    ];
  });
}

/** `before` workloads of the same job are done by then, so that the count never goes down. */
function planModules(workloads: readonly Workload[], before = 0): Step[] {
  const total = before + workloads.length;
  return workloads.flatMap((workload, index) => [
    { ...workloadStep('Begin module', 'perform', workload, 2291), workload: null },
    workloadStep('Update module', 'apply', workload, 2038),
    {
      ...workloadStep('Verify module', 'verify', workload, 2173),
      counts: { done: before + index + 1, total },
    },
  ]);
}

/** Each version finds the images that the ones before it put in place. */
function chainWorkloads(versions: readonly Version[], present: Deployment): Workload[][] {
  const images = new Map(imagesOf(present));
  return versions.map((version) => {
    const workloads = workloadsOf(version, images);
    for (const { name, image } of workloads) images.set(name, image);
    return workloads;
  });
}

/** The release, then the patches of it that come along in the same job. */
export function planRelease(release: Version, patches: readonly Version[], present: Deployment): Plan {
  const [deployments = [], ...patched] = chainWorkloads([release, ...patches], present);
  const modules = patched.flat();
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
    ...planDeployments(deployments),
    step('Update portal content', 2187, 2188),
    step('Begin post-upgrade operations', 2179),
    step('Post-upgrade operations for logging', 2180, 2181),
    step('Refresh auto-deployed services', 2178, 2185),
    step('Refresh the search indices', 2191, 2192),
    ...planModules(modules, deployments.length),
  ];
  return { steps, workloads: deployments.length + modules.length };
}

export function planPatches(patches: readonly Version[], present: Deployment): Plan {
  const modules = chainWorkloads(patches, present).flat();
  const steps = [
    step('Launch the upgrader', 2168),
    step('Enter read-only mode', 2165),
    step('Prepare the plan', 2270),
    step('Begin pre-diagnostics', 2287),
    step('End pre-diagnostics', 2288),
    step('Execute the plan', 2271),
    ...planModules(modules),
    step('Begin post-upgrade operations', 2179),
    step('Post-upgrade operations for logging', 2180, 2181),
  ];
  return { steps, workloads: modules.length };
}

/** Every workload that the undone patches moved goes to the image it has in the version gone back to. */
export function planRollback(present: Deployment, after: Deployment): Plan {
  const now = imagesOf(present);
  const then = imagesOf(after);
  const moved = [...now].filter(([name, image]) => then.get(name) !== image).reverse();
  const steps = [
    step('Launch the upgrader', 2168),
    step('Enter read-only mode', 2165),
    step('Prepare the plan', 2270),
    step('Execute the plan', 2271),
    ...moved.map(([name, image], index) => {
      const workload = { name, image, checksum: 'N/A', formerImage: then.get(name) ?? null };
      const counts = { done: index + 1, total: moved.length };
      return { ...workloadStep('Put back', 'rollback', workload, 2904, 2173), counts };
    }),
  ];
  return { steps, workloads: moved.length };
}

/** The components whose workloads a plan moves, in its order, and how many of the workloads are new. */
export function summarisePlan({ steps }: Plan) {
  const moved = steps.flatMap(({ action, workload }) => (action === 'apply' && workload ? [workload] : []));
  return {
    components: [...new Set(moved.map(({ name }) => componentOf(name)))],
    newWorkloads: moved.filter(({ formerImage }) => formerImage === null).length,
  };
}

export function describePlan({ steps }: Plan) {
  return steps.map(({ name, codes }, seqNum) => ({ seqNum, name, codes }));
}
