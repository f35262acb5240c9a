// The executor for a cluster: moves Deployments, StatefulSets and DaemonSets of one namespace to other images, and sees them through.
import { withTimeout } from '../../../lib/async.ts';
import type { Runtime } from '../../../runtime.ts';
import type { Workload } from '../../workloads.ts';
import type { StepContext, Executor } from '../executor.ts';
import { ClusterError } from './client.ts';
import type { Cluster, Connected } from './cluster.ts';
import { type ClusterWorkload, pathOf, readPath } from './workload.ts';
import { type LockOptions, createLock, outageMs } from './lock.ts';
import { annotations, buildPatch, ends } from './patch.ts';
import { type Direction, type ClusterPod, hasArrived } from './rollout.ts';
import { type InventoryOptions, readInventory } from './inventory.ts';
import { createWatch } from './watch.ts';

export { connectCluster } from './cluster.ts';

export type KubernetesOptions = Pick<
  InventoryOptions,
  'parallelism' | 'imageRegistry' | 'optionalContainers'
> & {
  readonly cluster: Connected;
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly hasEnded: LockOptions['hasEnded'];
  /** How long a rollout may make no progress. */
  readonly rolloutMs: number;
  /** How often a rollout is looked at. */
  readonly pollMs?: number;
  /** How long an image may be impossible to have: the first two tries of a node fit in. */
  readonly imageMs?: number;
};

/** Letting go is no reason to keep a process that ends. */
const releaseMs = 2_000;

/** What has been changed is put back, if it takes a while: the alternative is a mixture. */
const putBackPatienceMs = 10 * outageMs;

const afterConflictMs = 50;

export function createKubernetesExecutor({
  cluster: connected,
  runtime,
  hasEnded,
  rolloutMs,
  pollMs = 500,
  imageMs = 30_000,
  ...options
}: KubernetesOptions): Executor {
  const { open } = connected;
  const lock = createLock({ runtime, hasEnded });
  const watch = createWatch({ runtime, rolloutMs, imageMs });

  /** Before everything that changes the cluster. */
  async function ensureOurs(cluster: Cluster, errand: StepContext): Promise<void> {
    await errand.assertOwnership();
    await lock.hold(cluster, errand);
  }

  /** Gives the workload its images unless it has them. What moves it on in between, be it only its status, makes it look again. */
  async function bring(
    cluster: Cluster,
    workload: Workload,
    aim: Direction,
    errand: StepContext,
  ): Promise<void> {
    for (; ; await runtime.sleep(afterConflictMs, errand.signal)) {
      if (hasArrived(await read(cluster, workload), workload, aim)) return;
      await ensureOurs(cluster, errand);
      const found = await read(cluster, workload);
      if (hasArrived(found, workload, aim)) return;
      try {
        await cluster.patch(found, buildPatch(found, workload, aim, errand.jobId));
        return;
      } catch (error) {
        if (!(error instanceof ClusterError && error.code === 409)) throw error;
      }
    }
  }

  async function seeThrough(
    cluster: Cluster,
    workload: Workload,
    aim: Direction,
    errand: StepContext,
  ): Promise<void> {
    const look = watch(workload, aim, errand);
    for (; ; await runtime.sleep(pollMs, errand.signal)) {
      const found = await read(cluster, workload);
      if (!hasArrived(found, workload, aim)) throw new Error(`${pathOf(found)} was moved by somebody else.`);
      const { isThere, stuck } = await look(cluster, found);
      if (isThere) return mark(cluster, found, aim, errand);
      for (const pod of stuck) await remove(cluster, pod, errand);
      await lock.keep(cluster, errand);
    }
  }

  async function remove(cluster: Cluster, pod: ClusterPod, errand: StepContext): Promise<void> {
    await ensureOurs(cluster, errand);
    try {
      await cluster.deletePod(pod);
    } catch (error) {
      // It is gone, or another has its name.
      if (!(error instanceof ClusterError && (error.code === 404 || error.code === 409))) throw error;
    }
  }

  /** Tells whoever looks at the workload that it has come through. */
  async function mark(
    cluster: Cluster,
    found: ClusterWorkload,
    aim: Direction,
    errand: StepContext,
  ): Promise<void> {
    const { [annotations.job]: job, [annotations.state]: state } = found.annotations;
    if (job !== errand.jobId || state === ends[aim]) return;
    await ensureOurs(cluster, errand);
    await cluster.patch(found, { metadata: { annotations: { [annotations.state]: ends[aim] } } });
  }

  async function carry(
    cluster: Cluster,
    workload: Workload,
    aim: Direction,
    errand: StepContext,
  ): Promise<void> {
    await bring(cluster, workload, aim, errand);
    await seeThrough(cluster, workload, aim, errand);
  }

  const during = ({ signal }: StepContext, ms = outageMs) => open({ ms, signal });

  return {
    inventory: () => readInventory({ ...options, ...connected, runtime, hasEnded }),
    // Nothing but the workloads is the executor's; the namespace is.
    perform: (_step, errand) => lock.hold(during(errand), errand),
    apply: (workload, errand) => bring(during(errand), workload, 'image', errand),
    verify: (workload, errand) => carry(during(errand), workload, 'image', errand),
    rollback: (workload, errand) => carry(during(errand, putBackPatienceMs), workload, 'formerImage', errand),
    async release(jobId) {
      const giveBack = (signal: AbortSignal) => lock.release(open({ ms: releaseMs, signal }), jobId);
      const message = 'the lock was not given back in time.';
      // Whoever wants the lock has it when it has not been renewed for a while.
      await withTimeout(runtime, giveBack, { ms: releaseMs, message }).catch(() => undefined);
    },
  };
}

async function read(cluster: Cluster, workload: Workload): Promise<ClusterWorkload> {
  try {
    return await cluster.read(readPath(workload.name));
  } catch (error) {
    if (error instanceof ClusterError && error.code === 404)
      throw new Error(`${workload.name} is not there any more.`, { cause: error });
    throw error;
  }
}
