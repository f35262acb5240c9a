// The executor for a cluster: moves Deployments, StatefulSets and DaemonSets of one namespace to other images, and sees them through.
import type { World } from '../../world.ts';
import type { Workload } from '../survey.ts';
import type { Errand, Executor } from './executor.ts';
import { ClusterError } from './kubernetes/calls.ts';
import type { Cluster, Connected } from './kubernetes/cluster.ts';
import { type Found, pathOf, readPath } from './kubernetes/found.ts';
import { createLock, outageMs } from './kubernetes/lock.ts';
import { annotations, describePatch } from './kubernetes/patch.ts';
import { type Aim, hasArrived } from './kubernetes/rollout.ts';
import { type SurveyOptions, surveyCluster } from './kubernetes/survey.ts';
import { createWatch } from './kubernetes/watch.ts';

export { connectCluster } from './kubernetes/cluster.ts';

export type KubernetesOptions = Pick<
  SurveyOptions,
  'parallelism' | 'imageRegistry' | 'optionalContainers'
> & {
  readonly cluster: Connected;
  readonly world: Pick<World, 'now' | 'sleep'>;
  /** How long a rollout may make no progress. */
  readonly rolloutMs: number;
  /** How often a rollout is looked at. */
  readonly pollMs?: number;
  /** How long an image may be impossible to have. */
  readonly imageMs?: number;
};

/** Letting go is no reason to keep a process that ends. */
const releaseMs = 2_000;

export function createKubernetesExecutor({
  cluster: connected,
  world,
  rolloutMs,
  pollMs = 500,
  imageMs = 10_000,
  ...options
}: KubernetesOptions): Executor {
  const { open } = connected;
  const lock = createLock(world);
  const watch = createWatch({ world, rolloutMs, imageMs });
  const clusterFor = ({ signal }: Errand) => open({ ms: outageMs, signal });

  /** Gives the workload its images unless it has them. What moves it on in between, be it only its status, makes it look again. */
  async function bring(cluster: Cluster, workload: Workload, aim: Aim, errand: Errand): Promise<void> {
    const place = readPath(workload.name);
    for (;;) {
      const found = await read(cluster, workload);
      if (hasArrived(found, workload, aim)) return;
      await lock.hold(cluster, errand);
      try {
        await cluster.patch(place, describePatch(found, workload, aim, errand.jobId));
        return;
      } catch (error) {
        if (!(error instanceof ClusterError && error.code === 409)) throw error;
      }
    }
  }

  async function seeThrough(cluster: Cluster, workload: Workload, aim: Aim, errand: Errand): Promise<void> {
    const look = watch(workload, aim, errand);
    for (;;) {
      const found = await read(cluster, workload);
      if (!hasArrived(found, workload, aim))
        throw new Error(`${pathOf(found)} was moved back by somebody else.`);
      if (await look(cluster, found)) return mark(cluster, found, aim, errand);
      await lock.keep(cluster, errand);
      await world.sleep(pollMs, errand.signal);
    }
  }

  /** Tells whoever looks at the workload that it has come through. */
  async function mark(cluster: Cluster, found: Found, aim: Aim, errand: Errand): Promise<void> {
    const state = aim === 'image' ? 'updated' : 'put back';
    const { [annotations.job]: job, [annotations.state]: present } = found.annotations;
    if (job !== errand.jobId || present === state) return;
    await lock.hold(cluster, errand);
    await cluster.patch(found, { metadata: { annotations: { [annotations.state]: state } } });
  }

  async function carry(workload: Workload, aim: Aim, errand: Errand): Promise<void> {
    const cluster = clusterFor(errand);
    await bring(cluster, workload, aim, errand);
    await seeThrough(cluster, workload, aim, errand);
  }

  return {
    survey: () => surveyCluster({ ...options, ...connected, world }),
    // Nothing but the workloads is the executor's; the namespace is.
    perform: (_step, errand) => lock.hold(clusterFor(errand), errand),
    apply: (workload, errand) => bring(clusterFor(errand), workload, 'image', errand),
    verify: (workload, errand) => carry(workload, 'image', errand),
    rollback: (workload, errand) => carry(workload, 'formerImage', errand),
    async release(jobId) {
      const over = new AbortController();
      const deadline = world.sleep(releaseMs, over.signal).then(() => over.abort());
      deadline.catch(() => undefined);
      // Whoever wants the lock has it when it has not been renewed for a while.
      await lock.release(open({ ms: 0, signal: over.signal }), jobId).catch(() => undefined);
      over.abort();
    },
  };
}

async function read(cluster: Cluster, workload: Workload): Promise<Found> {
  try {
    return await cluster.read(readPath(workload.name));
  } catch (error) {
    if (error instanceof ClusterError && error.code === 404)
      throw new Error(`${workload.name} is not there any more.`, { cause: error });
    throw error;
  }
}
