// The executor for a cluster: gives Deployments, StatefulSets and DaemonSets of one namespace other images, and waits for their rollouts.
import { withTimeout } from '../../../lib/async.ts';
import type { Runtime } from '../../../runtime.ts';
import type { Inventory, Workload } from '../../workloads.ts';
import type { StepId } from '../../step-ids.ts';
import type {
  ApplyResult,
  Deviation,
  Executor,
  StepContext,
  TemplateResult,
  TemplateRun,
} from '../executor.ts';
import { hasStatus } from './client.ts';
import { type Cluster, type ClusterConnection, maxListed } from './cluster.ts';
import { type InventoryOptions, readInventory } from './inventory.ts';
import { type LockOptions, UpgradeLock, outageMs } from './lock.ts';
import { buildDonePatch, buildImagePatch, isPatchedBy } from './patch.ts';
import type { ClusterPod } from './pod.ts';
import { RolloutMonitor, hasTargetImages, isOwnedBy, isRolledOut } from './rollout.ts';
import { StepJobs } from './step-jobs.ts';
import { findDeviation } from './final-check.ts';
import { type ClusterWorkload, type Direction, parsePath, pathOf } from './workload.ts';

export { connectCluster } from './cluster.ts';

export type KubernetesOptions = Pick<
  InventoryOptions,
  'parallelism' | 'imageRegistry' | 'optionalContainers' | 'stepTemplates'
> & {
  readonly cluster: ClusterConnection;
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly hasEnded: LockOptions['hasEnded'];
  readonly rolloutTimeoutMs: number;
  readonly stepTimeoutMs: number;
  readonly pollIntervalMs?: number;
  /** The default covers the first two attempts of a node. */
  readonly imageTimeoutMs?: number;
};

/** Short, because a process waits for it when it stops. */
const releaseTimeoutMs = 2_000;

/** Longer than for other steps: a rollback that fails leaves a mixture of versions. */
const rollbackRetryMs = 10 * outageMs;

const conflictPauseMs = 50;

const defaultPollIntervalMs = 500;

type WorkloadMove = {
  readonly cluster: Cluster;
  readonly workload: Workload;
  readonly direction: Direction;
  readonly context: StepContext;
};

export function createKubernetesExecutor(options: KubernetesOptions): Executor {
  return new KubernetesExecutor(options);
}

export class KubernetesExecutor implements Executor {
  readonly #options: KubernetesOptions;
  readonly #runtime: KubernetesOptions['runtime'];
  readonly #connection: ClusterConnection;
  readonly #lock: UpgradeLock;
  readonly #stepJobs: StepJobs;

  constructor(options: KubernetesOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#connection = options.cluster;
    this.#lock = new UpgradeLock(options);
    const { stepTimeoutMs, pollIntervalMs = defaultPollIntervalMs } = options;
    this.#stepJobs = new StepJobs({
      runtime: options.runtime,
      lock: this.#lock,
      stepTimeoutMs,
      pollIntervalMs,
    });
  }

  inventory(): Promise<Inventory> {
    const { parallelism, imageRegistry, optionalContainers, stepTemplates } = this.#options;
    return readInventory({
      connection: this.#connection,
      lock: this.#lock,
      parallelism,
      imageRegistry,
      optionalContainers,
      stepTemplates,
    });
  }

  /** These steps change no workload. They hold the lock, and the first one deletes the Jobs of earlier upgrades. */
  async perform(step: StepId, context: StepContext): Promise<void> {
    const cluster = this.#clusterFor(context);
    await this.#lock.acquire(cluster, context);
    if (step === 'launch' && this.#options.stepTemplates)
      await this.#stepJobs.deleteFinished(cluster, context);
  }

  runTemplate(run: TemplateRun, context: StepContext): Promise<TemplateResult> {
    return this.#stepJobs.run(this.#clusterFor(context), run, context);
  }

  stopTemplate(run: TemplateRun, context: StepContext): Promise<void> {
    return this.#stepJobs.stop(this.#clusterFor(context), run, context);
  }

  async apply(workload: Workload, context: StepContext): Promise<ApplyResult> {
    const cluster = this.#clusterFor(context);
    return { isPatched: await this.#patchImages({ cluster, workload, direction: 'image', context }) };
  }

  /** Patches first, in case another client has set the former images again since `apply`. */
  async verify(workload: Workload, context: StepContext): Promise<void> {
    const cluster = this.#clusterFor(context);
    await this.#moveWorkload({ cluster, workload, direction: 'image', context });
  }

  async rollback(workload: Workload, context: StepContext): Promise<void> {
    const cluster = this.#clusterFor(context, rollbackRetryMs);
    await this.#moveWorkload({ cluster, workload, direction: 'formerImage', context });
  }

  async check(
    workloads: readonly Workload[],
    which: Direction,
    context: StepContext,
  ): Promise<readonly Deviation[]> {
    const cluster = this.#clusterFor(context);
    await this.#lock.acquire(cluster, context);
    const { workloads: listed, isComplete } = await cluster.listWorkloads();
    if (!isComplete) throw new Error(`the namespace has more than ${maxListed} workloads of a kind.`);
    const found = new Map(listed.map((one) => [pathOf(one), one]));
    return workloads.flatMap((workload) => findDeviation(workload, found.get(workload.name), which) ?? []);
  }

  async release(jobId: string): Promise<void> {
    const releaseLock = (signal: AbortSignal) =>
      this.#lock.release(this.#connection.withRetry({ retryMs: releaseTimeoutMs, signal }), jobId);
    try {
      await withTimeout(this.#runtime, releaseLock, {
        ms: releaseTimeoutMs,
        message: 'the lock was not released in time.',
      });
    } catch {
      // A lock that is not released expires.
    }
  }

  #clusterFor({ signal }: StepContext, retryMs = outageMs): Cluster {
    return this.#connection.withRetry({ retryMs, signal });
  }

  async #moveWorkload(move: WorkloadMove): Promise<void> {
    await this.#patchImages(move);
    await this.#waitForRollout(move);
  }

  /**
   * Returns false if the workload had the images before this step. Starts over after 409: the workload has changed since it was read,
   * even if only in its status.
   */
  async #patchImages(move: WorkloadMove): Promise<boolean> {
    const { cluster, workload, direction, context } = move;
    const { jobId } = context;
    for (; ; await this.#runtime.sleep(conflictPauseMs, context.signal)) {
      const before = await readWorkload(cluster, workload);
      if (hasTargetImages(before, workload, direction)) return isPatchedBy(before, workload, jobId);
      await this.#assertOwnership(move);
      const found = await readWorkload(cluster, workload);
      if (hasTargetImages(found, workload, direction)) return isPatchedBy(found, workload, jobId);
      try {
        await cluster.patchWorkload(found, buildImagePatch(found, workload, direction, jobId));
        return true;
      } catch (error) {
        if (!hasStatus(error, 409)) throw error;
      }
    }
  }

  async #waitForRollout(move: WorkloadMove): Promise<void> {
    const { cluster, workload, direction, context } = move;
    const {
      rolloutTimeoutMs,
      imageTimeoutMs = 30_000,
      pollIntervalMs = defaultPollIntervalMs,
    } = this.#options;
    const { runStartedAt } = context;
    const monitor = new RolloutMonitor({
      workload,
      direction,
      runStartedAt,
      rolloutTimeoutMs,
      imageTimeoutMs,
    });
    for (; ; await this.#runtime.sleep(pollIntervalMs, context.signal)) {
      const found = await readWorkload(cluster, workload);
      if (!hasTargetImages(found, workload, direction))
        throw new Error(`another client changed the images of ${pathOf(found)} during the rollout.`);
      if (isRolledOut(found)) return this.#recordDone(move, found);
      const at = this.#runtime.now();
      const pods = (await cluster.listPods(found.selector)).filter((pod) => isOwnedBy(pod, found));
      const rollout = monitor.check(found, pods, at);
      if (rollout.state === 'failed') throw new Error(`${pathOf(found)}: ${rollout.cause}`);
      for (const pod of rollout.blockingPods) await this.#deletePod(move, pod);
      await this.#lock.renew(cluster, context);
    }
  }

  async #deletePod(move: WorkloadMove, pod: ClusterPod): Promise<void> {
    await this.#assertOwnership(move);
    try {
      await move.cluster.deletePod(pod);
    } catch (error) {
      // 404: the pod no longer exists. 409: another pod has its name now.
      if (!hasStatus(error, 404, 409)) throw error;
    }
  }

  async #recordDone(move: WorkloadMove, found: ClusterWorkload): Promise<void> {
    const patch = buildDonePatch(found, move.direction, move.context.jobId);
    if (!patch) return;
    await this.#assertOwnership(move);
    await move.cluster.patchWorkload(found, patch);
  }

  async #assertOwnership({ cluster, context }: WorkloadMove): Promise<void> {
    await context.assertOwnership();
    await this.#lock.acquire(cluster, context);
  }
}

async function readWorkload(cluster: Cluster, { name }: Workload): Promise<ClusterWorkload> {
  try {
    return await cluster.readWorkload(parsePath(name));
  } catch (error) {
    if (hasStatus(error, 404)) throw new Error(`${name} no longer exists.`, { cause: error });
    throw error;
  }
}
