// Changes the images of a workload in one direction, forward or back, waits for its rollout, and writes Events about it.
import type { CoreV1Event } from '@kubernetes/client-node';
import type { Runtime } from '../../../lib/runtime.ts';
import { toXmlText, truncate } from '../../../lib/text.ts';
import { type Direction, type Workload, formatImages } from '../workloads.ts';
import { RefusedError, type StepContext } from '../executor.ts';
import { hasStatus } from './client.ts';
import type { Cluster, ClusterConnection } from './cluster.ts';
import type { UpgradeLock } from './lock.ts';
import { annotations, buildImagePatch, isPatchedBy, states } from './patch.ts';
import {
  type Restarts,
  RolloutMonitor,
  countRestarts,
  describeRemaining,
  findRewritten,
  hasTargetImages,
  isRolledOut,
} from './rollout.ts';
import {
  type ClusterPod,
  type ClusterWorkload,
  beingDeleted,
  cutMessage,
  parsePath,
  pathOf,
} from './workload.ts';

export type MoverOptions = {
  readonly cluster: ClusterConnection;
  readonly runtime: Pick<Runtime, 'now' | 'elapsed' | 'sleep'>;
  readonly rolloutTimeoutMs: number;
  readonly pollIntervalMs?: number;
  readonly imageTimeoutMs?: number;
};

export type WorkloadMove = {
  readonly cluster: Cluster;
  readonly workload: Workload;
  readonly direction: Direction;
  readonly context: StepContext;
};

type EventReason = 'UpgradeStarted' | 'UpgradeCompleted' | 'UpgradeFailed' | 'UpgradeReverted';

/** The pause after a conflict grows: another client may change the workload again and again. */
const conflictPauseMs = { min: 50, max: 2_000 };

/**
 * A rollout may take long, so the pause between two looks grows up to this multiple of the first one. A job follows one
 * rollout at a time, so a watch would save few requests.
 */
const maxPauseFactor = 4;

/** Most rollouts of small workloads are complete earlier, and then the pods are not needed. */
const looksBeforePods = 4;

/**
 * A step waits for its Event, so the time is short. Just after a restart the API server refuses Events for about a
 * second.
 */
const eventRetryMs = 1_500;

/** The source of Events. */
const component = 'steward';

/** The API server accepts names of 253 characters. */
const maxName = 200;

export class WorkloadMover {
  readonly #options: MoverOptions;
  readonly #runtime: MoverOptions['runtime'];
  readonly #lock: UpgradeLock;
  /** Errors of a process that no longer owns the job. They are no failures of the workload. */
  readonly #lostOwnership = new WeakSet<object>();
  /** How often pods had restarted when the rollout of a run was complete, by the names of their workloads. */
  readonly #restarts = new Map<string, { run: string; restarts: Restarts }>();
  /** The job whose Events are refused. */
  #deniedJob: string | undefined;

  constructor(options: MoverOptions, lock: UpgradeLock) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#lock = lock;
  }

  /** Returns whether this step has changed the images, now or before it was repeated. */
  apply(move: WorkloadMove): Promise<boolean> {
    return this.#withFailureEvent(move, () => this.#patchImages(move));
  }

  /** Patches again if another client has set the former images since `apply`. */
  async verify(move: WorkloadMove): Promise<void> {
    await this.#withFailureEvent(move, () => this.#completeRollout(move, true));
  }

  /** Returns whether this step has changed the images, now or before it was repeated. */
  moveToEnd(move: WorkloadMove): Promise<boolean> {
    return this.#withFailureEvent(move, async () => {
      const isPatched = await this.#patchImages(move);
      await this.#completeRollout(move);
      return isPatched;
    });
  }

  /**
   * Waits for a workload whose rollout was complete before: its controller has not observed a change, or pods are
   * missing.
   */
  async waitForHealth(move: WorkloadMove): Promise<void> {
    await this.#withFailureEvent(move, () => this.#waitForRollout(move));
  }

  /** Undefined if another process has followed the rollout, or an earlier run. Then `present` counts the next time. */
  restartsAtCompletion({ name }: Workload, present: Restarts, context: StepContext): Restarts | undefined {
    const known = this.#restarts.get(name);
    if (known?.run === runOf(context)) return known.restarts;
    this.#recordRestarts(name, present, context);
    return undefined;
  }

  #recordRestarts(name: string, restarts: Restarts, context: StepContext): void {
    const run = runOf(context);
    for (const [other, known] of this.#restarts) if (known.run !== run) this.#restarts.delete(other);
    this.#restarts.set(name, { run, restarts });
  }

  async #patchImages(move: WorkloadMove): Promise<boolean> {
    const { workload, direction, context } = move;
    for (let tries = 0; ; tries += 1) {
      if (tries > 0) await this.#pauseAfterConflict(move, tries);
      const found = await readWorkload(move);
      if (hasTargetImages(found, workload, direction)) {
        const isPatched = isPatchedBy(found, direction, context);
        if (isPatched) await this.#writeStart(move, found);
        return isPatched;
      }
      const [obstacle] = found.obstacles;
      if (obstacle !== undefined) throw new RefusedError(`${workload.name}: ${obstacle}.`);
      await this.#assertOwnership(move);
      const stored = await patchUnlessChanged(move, found, direction);
      if (!stored) continue;
      const rewritten = findRewritten(stored, workload, direction);
      if (rewritten === undefined) {
        await this.#writeStart(move, found);
        return true;
      }
      if (direction === 'image') await this.#undo(move, stored);
      throw new Error(rewritten);
    }
  }

  /** The images of a policy do not stay, because nobody has planned them. Another client may have changed them since. */
  async #undo(move: WorkloadMove, stored: ClusterWorkload): Promise<void> {
    const imagesOf = ({ containers }: ClusterWorkload) => JSON.stringify(containers);
    let tries = 0;
    for (let found = stored; imagesOf(found) === imagesOf(stored); found = await readWorkload(move)) {
      if (await patchUnlessChanged(move, found, 'formerImage')) return;
      await this.#pauseAfterConflict(move, (tries += 1));
    }
  }

  async #pauseAfterConflict({ workload, context }: WorkloadMove, tries: number): Promise<void> {
    context.report({ object: workload.name, reason: 'other clients change it at the same time' });
    const { min, max } = conflictPauseMs;
    await this.#runtime.sleep(Math.min(max, min * 2 ** (tries - 1)), context.signal);
  }

  async #writeStart(move: WorkloadMove, found: ClusterWorkload): Promise<void> {
    const { workload, direction } = move;
    if (direction !== 'image') return;
    await this.#writeEvent(move, found, 'UpgradeStarted', `Set the image ${formatImages(workload, 'image')}`);
  }

  /** Writes the Event only if the workload belongs to this job: others may have set the images before. */
  async #completeRollout(move: WorkloadMove, mayPatch = false): Promise<void> {
    const { workload, direction, context } = move;
    const found = await this.#waitForRollout(move, mayPatch);
    const pods = await move.cluster.listPods(found.selector);
    this.#recordRestarts(workload.name, countRestarts(pods), context);
    const { [annotations.job]: job, [annotations.state]: state } = found.annotations;
    if (job !== context.jobId || state !== states[direction]) return;
    const images = formatImages(workload, direction);
    const own = pods.filter(({ owner, isTerminating }) => owner === workload.name && isTerminating);
    const remaining = own.slice(0, 3).map(describeRemaining);
    const which = remaining.length > 0 ? 'All wanted pods' : 'All pods';
    const what = found.wanted === 0 ? 'No pods are wanted. The template has' : `${which} run`;
    if (direction === 'image')
      await this.#writeEvent(
        move,
        found,
        'UpgradeCompleted',
        [`${what} the image ${images}`, ...remaining].join('; '),
      );
    else await this.#writeEvent(move, found, 'UpgradeReverted', `Put back to ${images}`);
  }

  async #waitForRollout(move: WorkloadMove, mayPatch = false): Promise<ClusterWorkload> {
    const { cluster, workload, direction, context } = move;
    const { pollIntervalMs = 500 } = this.#options;
    const { runStartedAt, signal } = context;
    const monitor = new RolloutMonitor({ ...this.#options, workload, direction, runStartedAt });
    for (let looks = 1; ; looks += 1) {
      const found = await readWorkload(move);
      if (!hasTargetImages(found, workload, direction)) {
        if (looks > 1 || !mayPatch)
          throw new Error(`another client changed the images of ${pathOf(found)} during the rollout.`);
        await this.#patchImages(move);
        continue;
      }
      if (isRolledOut(found)) return found;
      const listed = looks > looksBeforePods ? await cluster.listPods(found.selector) : [];
      const pods = listed.filter(({ owner }) => owner === workload.name);
      const rollout = monitor.check(found, pods, this.#runtime.elapsed());
      if (rollout.state === 'failed') throw new Error(`${pathOf(found)}: ${rollout.cause}`);
      context.report({ object: workload.name, reason: rollout.reason });
      for (const pod of rollout.blockingPods) await this.#deletePod(move, pod);
      await this.#lock.renew(cluster, context);
      await this.#runtime.sleep(Math.min(looks, maxPauseFactor) * pollIntervalMs, signal);
    }
  }

  async #deletePod(move: WorkloadMove, pod: ClusterPod): Promise<void> {
    await this.#assertOwnership(move);
    await move.cluster.deletePod(pod);
  }

  async #assertOwnership({ cluster, context }: WorkloadMove): Promise<void> {
    try {
      await context.assertOwnership();
      await this.#lock.acquire(cluster, context);
    } catch (error) {
      this.#lostOwnership.add(error as object);
      throw error;
    }
  }

  async #withFailureEvent<T>(move: WorkloadMove, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!move.context.signal.aborted && !this.#lostOwnership.has(error as object))
        await this.#writeFailure(move, (error as Error).message);
      throw error;
    }
  }

  /** An Event must name the present object, which may have been deleted. */
  async #writeFailure(move: WorkloadMove, message: string): Promise<void> {
    try {
      const cluster = this.#options.cluster.withRetry({ retryMs: 0, signal: move.context.signal });
      const found = await cluster.readWorkload(parsePath(move.workload.name));
      await this.#writeEvent(move, found, 'UpgradeFailed', message);
    } catch {
      // The error of the step says more than the missing Event.
    }
  }

  /**
   * `kubectl describe` shows it. Does not reject: a step does not fail because of its Event. After a refusal that lasts
   * it writes no more for that job.
   */
  async #writeEvent(
    { context }: WorkloadMove,
    found: ClusterWorkload,
    reason: EventReason,
    message: string,
  ): Promise<void> {
    const { jobId, change } = context;
    if (this.#deniedJob === jobId) return;
    const id = `${jobId.slice(0, 8)}-${change}.${reason.toLowerCase()}`;
    const event = this.#toEvent(found, reason, `${message} (job ${jobId})`, id);
    try {
      await this.#options.cluster.withRetry({ retryMs: eventRetryMs }).createEvent(event);
    } catch (error) {
      if (hasStatus(error, 401, 403)) this.#deniedJob = jobId;
    }
  }

  /** The API server accepts one Event of a name, so a step that is repeated writes it once. */
  #toEvent(found: ClusterWorkload, reason: EventReason, message: string, id: string): CoreV1Event {
    const at = new Date(this.#runtime.now());
    const { kind, name, uid, resourceVersion } = found;
    const { namespace } = this.#options.cluster;
    return {
      metadata: { namespace, name: `${truncate(name, maxName)}.${id}` },
      involvedObject: { apiVersion: 'apps/v1', kind, namespace, name, uid, resourceVersion },
      type: reason === 'UpgradeFailed' ? 'Warning' : 'Normal',
      reason,
      message: cutMessage(toXmlText(message)) ?? '',
      source: { component },
      reportingComponent: component,
      reportingInstance: component,
      firstTimestamp: at,
      lastTimestamp: at,
      count: 1,
    };
  }
}

export const runOf = ({ jobId, runStartedAt }: StepContext) => `${jobId} ${runStartedAt}`;

/** Rejects for a workload that is being deleted as for one that is gone: neither can be moved, now or later. */
async function readWorkload({ cluster, workload }: WorkloadMove): Promise<ClusterWorkload> {
  try {
    const found = await cluster.readWorkload(parsePath(workload.name));
    if (found.obstacles.includes(beingDeleted)) throw new Error(`${workload.name} ${beingDeleted}.`);
    return found;
  } catch (error) {
    if (hasStatus(error, 404)) throw new Error(`${workload.name} no longer exists.`, { cause: error });
    throw error;
  }
}

/** Undefined if the workload has changed since it was read, even if only in its status. */
async function patchUnlessChanged(
  { cluster, workload, context }: WorkloadMove,
  found: ClusterWorkload,
  direction: Direction,
): Promise<ClusterWorkload | undefined> {
  try {
    return await cluster.patchWorkload(found, buildImagePatch(found, workload, direction, context));
  } catch (error) {
    if (hasStatus(error, 409)) return undefined;
    throw error;
  }
}
