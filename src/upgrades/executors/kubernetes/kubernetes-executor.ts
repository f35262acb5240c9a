// The executor for a cluster: gives Deployments, StatefulSets and DaemonSets of one namespace other images, and
// waits for their rollouts.
import { withTimeout } from '../../../lib/async.ts';
import type { StepId } from '../steps.ts';
import type { Findings, Inventory, Workload } from '../workloads.ts';
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
import { type Cluster, maxListed } from './cluster.ts';
import type { ImageChecker } from '../images/image-check.ts';
import { type InventoryOptions, readInventory } from './inventory.ts';
import { type LockOptions, UpgradeLock } from './lock.ts';
import { isPatchedBy } from './patch.ts';
import { countRestarts, findCrash, isRolledOut } from './rollout.ts';
import { StepJobs } from './step-job-runner.ts';
import { type MoverOptions, type WorkloadMove, WorkloadMover } from './workload-mover.ts';
import { type ClusterWorkload, type Direction, pathOf } from './workload.ts';

export { connectCluster } from './cluster.ts';
export { ImageChecker } from '../images/image-check.ts';

export type KubernetesOptions = Omit<InventoryOptions, 'connection' | 'lock'> &
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

/** For programs that have crashed before this run: whether they still do. */
const crashLoopMs = 10_000;

export class KubernetesExecutor implements Executor {
  readonly #options: KubernetesOptions;
  readonly #lock: UpgradeLock;
  readonly #mover: WorkloadMover;
  readonly #stepJobs: StepJobs;

  constructor(options: KubernetesOptions) {
    this.#options = options;
    this.#lock = new UpgradeLock(options);
    this.#mover = new WorkloadMover(options, this.#lock);
    this.#stepJobs = new StepJobs(options, this.#lock);
  }

  inventory(): Promise<Inventory> {
    return readInventory({ ...this.#options, connection: this.#options.cluster, lock: this.#lock });
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

  async rollback(workload: Workload, context: StepContext): Promise<ApplyResult> {
    try {
      return { isPatched: await this.#mover.moveToEnd(this.#moveOf(workload, 'formerImage', context)) };
    } catch (error) {
      if (hasStatus(error, 404, 409) || !(error instanceof ClusterError)) throw error;
      // An administrator may give the permission, or change the policy, that refuses it.
      throw new RefusedError(error.message, { cause: error });
    }
  }

  async check(
    workloads: readonly Workload[],
    which: Direction,
    context: StepContext,
    repaired?: RepairedWorkload[],
  ): Promise<void> {
    const cluster = this.#clusterFor(context);
    const waitedFor = new Set<Workload>();
    for (let looks = 1; ; looks += 1) {
      await this.#lock.renew(cluster, context);
      const found = await checkWorkloads(cluster, workloads, which, context);
      if (looks === 1 && repaired) {
        repaired.push(...found.patched.map((workload) => ({ workload, isPatched: true })));
        for (const { workload } of found.deviations) {
          const isPatched = await this.#mover.moveToEnd(this.#moveOf(workload, which, context));
          repaired.push({ workload, isPatched });
        }
        if (found.deviations.length > 0) continue;
      }
      if (found.deviations.length > 0) throw deviationError(found.deviations);
      const pods = await cluster.listPods();
      let mayCrashAgain = false;
      for (const workload of workloads) {
        const known = this.#mover.restartsAtCompletion(workload, pods, context);
        const crash = findCrash(workload, pods, which, known ?? countRestarts(pods));
        if (crash !== undefined) throw new Error(crash);
        mayCrashAgain ||= !known && findCrash(workload, pods, which, new Map()) !== undefined;
      }
      if (mayCrashAgain) {
        await this.#options.runtime.sleep(crashLoopMs, context.signal);
        continue;
      }
      // Each is waited for once: in a cluster that always changes, some workload is always unhealthy.
      const next = found.unhealthy.filter((workload) => !waitedFor.has(workload));
      if (next.length === 0) return;
      for (const workload of next) {
        await this.#mover.waitForHealth(this.#moveOf(workload, which, context));
        waitedFor.add(workload);
      }
    }
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

  #clusterFor({ signal }: StepContext): Cluster {
    return this.#options.cluster.withRetry({ retryMs: this.#options.patienceMs, signal });
  }
}

const maxDeviations = 20;

type Deviation = {
  readonly problem: string;
  /** The images that the workload has now take the place of those that it should not have. */
  readonly workload: Workload;
};

/** The final check: which workloads have other images than those that the job has set, and which are not healthy. */
async function checkWorkloads(
  cluster: Cluster,
  workloads: readonly Workload[],
  which: Direction,
  context: StepContext,
) {
  const { workloads: listed, isComplete } = await cluster.listWorkloads();
  if (!isComplete) throw new Error(`the namespace has more than ${maxListed} workloads of a kind.`);
  const byPath = new Map(listed.map((found) => [pathOf(found), found]));
  const select = (isSelected: (found: ClusterWorkload) => boolean) =>
    workloads.filter(({ name }) => {
      const found = byPath.get(name);
      return found && isSelected(found);
    });
  const deviations = workloads.flatMap(
    (workload) => findDeviation(workload, byPath.get(workload.name), which) ?? [],
  );
  const deviating = new Set(deviations.map(({ workload }) => workload.name));
  return {
    deviations,
    /** This step has given them their images, in this process or in one that it has replaced. */
    patched: select((found) => isPatchedBy(found, which, context) && !deviating.has(pathOf(found))),
    /** Pods are missing, or the controller has not observed a change. */
    unhealthy: select((found) => !isRolledOut(found)),
  };
}

function deviationError(deviations: readonly Deviation[]): Error {
  const rest = deviations.length - maxDeviations;
  const texts = deviations.slice(0, maxDeviations).map(({ problem }) => problem);
  return new Error([...texts, ...(rest > 0 ? [`There are ${rest} more.`] : [])].join(' '));
}

function findDeviation(
  workload: Workload,
  found: ClusterWorkload | undefined,
  which: Direction,
): Deviation | undefined {
  if (!found) return { workload, problem: `${workload.name} no longer exists.` };
  const path = pathOf(found);
  const imageOf = (container: string) => found.containers.find(({ name }) => name === container)?.image;
  const wrong = workload.parts.find((part) => imageOf(part.container) !== part[which]);
  if (!wrong) return undefined;
  const { container, [which]: wanted } = wrong;
  const current = imageOf(container);
  const problem =
    current === undefined
      ? `${path} no longer has the container ${container}.`
      : `${path} has the image ${current} in its container ${container} instead of ${wanted ?? 'none'}.`;
  return { workload: startFrom(workload, imageOf, which), problem };
}

/**
 * The administrator has read the present images when the job is resumed, so the job may replace them, whatever they
 * are.
 */
function startFrom(
  workload: Workload,
  imageOf: (container: string) => string | undefined,
  which: Direction,
): Workload {
  const other = which === 'image' ? 'formerImage' : 'image';
  const parts = workload.parts.map((part) => ({ ...part, [other]: imageOf(part.container) ?? part[other] }));
  return { ...workload, parts };
}
