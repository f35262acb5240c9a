// The executor for a cluster: gives Deployments, StatefulSets and DaemonSets of one namespace other images, and
// waits for their rollouts.
import { withTimeout } from '../../../lib/async.ts';
import type { StepId } from '../steps.ts';
import type { Direction, Findings, Inventory, Workload } from '../workloads.ts';
import {
  type ApplyResult,
  type Executor,
  RefusedError,
  type RepairedWorkload,
  type StepContext,
  type TemplateResult,
  type TemplateRun,
} from '../executor.ts';
import { ClusterError, hasStatus } from './client.ts';
import type { Cluster } from './cluster.ts';
import { FinalCheck } from './final-check.ts';
import type { ImageChecker } from '../images/image-check.ts';
import { type InventoryOptions, createInventory } from '../inventory/inventory.ts';
import { type LockOptions, UpgradeLock } from './lock.ts';
import { type NamespaceOptions, readNamespace } from './namespace.ts';
import { StepJobs } from './step-job-runner.ts';
import { type MoverOptions, type WorkloadMove, WorkloadMover, runOf } from './workload-mover.ts';

export { connectCluster } from './cluster.ts';
export { ImageChecker } from '../images/image-check.ts';

export type KubernetesOptions = InventoryOptions &
  Omit<NamespaceOptions, 'connection' | 'lock'> &
  LockOptions &
  MoverOptions & {
    /** Undefined: images are not looked up. */
    readonly imageChecker: ImageChecker | undefined;
    readonly stepTimeoutMs: number;
    /** How long a step waits for an API server that is unavailable. */
    readonly patienceMs: number;
  };

/** Short, because a process waits for it when it stops. */
const releaseTimeoutMs = 2_000;

export class KubernetesExecutor implements Executor {
  readonly #options: KubernetesOptions;
  readonly #lock: UpgradeLock;
  readonly #mover: WorkloadMover;
  readonly #stepJobs: StepJobs;
  readonly #finalCheck: FinalCheck;
  #refusals = { run: '', haveLasted: false };

  constructor(options: KubernetesOptions) {
    this.#options = options;
    this.#lock = new UpgradeLock(options);
    this.#mover = new WorkloadMover(options, this.#lock);
    this.#stepJobs = new StepJobs(options, this.#lock);
    this.#finalCheck = new FinalCheck(options, this.#mover, this.#lock);
  }

  async inventory(): Promise<Inventory> {
    const options = { ...this.#options, connection: this.#options.cluster, lock: this.#lock };
    return createInventory(await readNamespace(options), options);
  }

  async checkImages(workloads: readonly Workload[]): Promise<Findings | undefined> {
    return this.#options.imageChecker?.check(workloads);
  }

  /** These steps change no workload. They hold the lock, and the first one deletes the Jobs of earlier upgrades. */
  async perform(step: StepId, context: StepContext): Promise<void> {
    const cluster = this.#clusterFor(context);
    await this.#lock.renew(cluster, context);
    if (step === 'launch' && this.#options.stepTemplates)
      await this.#stepJobs.deleteOfEarlierJobs(cluster, context);
  }

  startTemplate(run: TemplateRun, context: StepContext): Promise<void> {
    return this.#stepJobs.start(this.#clusterFor(context), run, context);
  }

  runTemplate(run: TemplateRun, context: StepContext): Promise<TemplateResult> {
    return this.#stepJobs.run(this.#clusterFor(context), run, context);
  }

  stopTemplate(run: TemplateRun, context: StepContext): Promise<void> {
    return this.#stepJobs.stop(this.#clusterFor(context), run, context);
  }

  async apply(workload: Workload, context: StepContext): Promise<ApplyResult> {
    return { isPatched: await this.#mover.apply(this.#moveOf(workload, 'image', context)) };
  }

  async verify(workload: Workload, context: StepContext): Promise<void> {
    await this.#mover.verify(this.#moveOf(workload, 'image', context));
  }

  async beginRollback(workload: Workload, context: StepContext): Promise<void> {
    await this.#mover.apply(this.#moveOf(workload, 'formerImage', context)).catch(throwRefusal);
  }

  async rollback(workload: Workload, context: StepContext): Promise<ApplyResult> {
    const move = this.#moveOf(workload, 'formerImage', context);
    return { isPatched: await this.#mover.moveToEnd(move).catch(throwRefusal) };
  }

  check(
    workloads: readonly Workload[],
    which: Direction,
    context: StepContext,
    repaired?: RepairedWorkload[],
  ): Promise<void> {
    return this.#finalCheck.run(this.#clusterFor(context), { workloads, which, context, repaired });
  }

  async release(jobId: string): Promise<void> {
    const releaseLock = (signal: AbortSignal) =>
      this.#lock.release(this.#options.cluster.withRetry({ retryMs: releaseTimeoutMs, signal }), jobId);
    try {
      await withTimeout(this.#options.runtime, releaseLock, {
        ms: releaseTimeoutMs,
        message: 'the lock was not released in time.',
      });
    } catch {
      // A lock that is not released expires.
    }
  }

  #moveOf(workload: Workload, direction: Direction, context: StepContext): WorkloadMove {
    return { cluster: this.#clusterFor(context), workload, direction, context };
  }

  #clusterFor(context: StepContext): Cluster {
    const { signal, report } = context;
    const run = runOf(context);
    if (this.#refusals.run !== run) this.#refusals = { run, haveLasted: false };
    const onWait = (reason: string) => report({ object: 'api server', reason });
    const [refusals, retryMs] = [this.#refusals, this.#options.patienceMs];
    return this.#options.cluster.withRetry({ retryMs, signal, onWait, refusals });
  }
}

function throwRefusal(error: unknown): never {
  if (hasStatus(error, 404, 409) || !(error instanceof ClusterError)) throw error;
  // An administrator may give the permission, or change the policy, that refuses it.
  throw new RefusedError(error.message, { cause: error });
}
