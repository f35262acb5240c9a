// Reads a workload and its pods during a rollout. It watches both, so that it sees changes at once and sends few
// requests. If watching is not allowed, or a watch fails, it reads them again at an interval.
import type { Runtime } from '../../../lib/runtime.ts';
import { hasStatus } from './client.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterPod } from './pod.ts';
import { watchSeconds } from './watch.ts';
import { type ClusterWorkload, type WorkloadRef, pathOf } from './workload.ts';

/** A server or a proxy that ends every watch at once must not get more requests than from polling. */
const minWatchMs = 10_000;

const maxWatchMs = watchSeconds * 1000 + 10_000;

/** Most rollouts of small workloads are complete earlier, and then the pods are not needed. */
const intervalsBeforePods = 10;

type RolloutReaderOptions = {
  readonly cluster: Cluster;
  readonly ref: WorkloadRef;
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly pollIntervalMs: number;
  readonly signal: AbortSignal;
};

export class RolloutReader {
  readonly #options: RolloutReaderOptions;
  readonly #startedAt: number;
  readonly #workloadWatch: RestartingWatch;
  readonly #podWatch: RestartingWatch;
  readonly #onAbort = () => this.#noteChange();
  #workload: ClusterWorkload | undefined;
  #pods = new Map<string, ClusterPod>();
  #hasWatchedPods = false;
  #hasChanged = false;
  #wake: () => void = () => undefined;

  constructor(options: RolloutReaderOptions) {
    this.#options = options;
    const { runtime, signal } = options;
    this.#startedAt = runtime.now();
    const onEnd = () => this.#noteChange();
    this.#workloadWatch = new RestartingWatch(runtime, onEnd);
    this.#podWatch = new RestartingWatch(runtime, onEnd);
    signal.addEventListener('abort', this.#onAbort);
  }

  close(): void {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#workloadWatch.stop();
    this.#podWatch.stop();
  }

  async readWorkload(): Promise<ClusterWorkload> {
    const { cluster, ref } = this.#options;
    this.#hasChanged = false;
    if (this.#workloadWatch.isOpen && this.#workload) return this.#workload;
    const found = await readWorkload(cluster, ref);
    if (this.#workloadWatch.mayStart()) this.#watchWorkload(found);
    return found;
  }

  /** From the version that was read: without one, the API server may begin with a state from before the last patch. */
  #watchWorkload(found: ClusterWorkload): void {
    const { cluster, ref } = this.#options;
    const { resourceVersion } = found;
    this.#workload = found;
    const onChange = (changed: ClusterWorkload | undefined) => {
      this.#workload = changed;
      this.#noteChange();
    };
    this.#workloadWatch.start((signal) =>
      cluster.watchWorkload({ ...ref, resourceVersion }, onChange, signal),
    );
  }

  async readPods({ selector }: ClusterWorkload): Promise<readonly ClusterPod[]> {
    const { cluster, runtime, pollIntervalMs } = this.#options;
    if (runtime.now() - this.#startedAt < intervalsBeforePods * pollIntervalMs) return [];
    if (!this.#hasWatchedPods) {
      // A watch without a version begins with all pods that exist, so they need not be listed.
      this.#hasWatchedPods = true;
      this.#watchPods({ labelSelector: selector });
    }
    if (this.#podWatch.isOpen) return [...this.#pods.values()];
    const { pods, resourceVersion } = await cluster.listPods(selector);
    this.#pods = new Map(pods.map((pod) => [pod.uid, pod]));
    if (this.#podWatch.mayStart()) this.#watchPods({ labelSelector: selector, resourceVersion });
    return pods;
  }

  #watchPods(query: { readonly labelSelector: string; readonly resourceVersion?: string }): void {
    const { cluster } = this.#options;
    const onChange = (pod: ClusterPod, isDeleted: boolean) => {
      if (isDeleted) this.#pods.delete(pod.uid);
      else this.#pods.set(pod.uid, pod);
      this.#noteChange();
    };
    this.#podWatch.start((signal) => cluster.watchPods(query, onChange, signal));
  }

  /** Resolves when a watch has reported a change since the last read, or after the time. */
  async waitForChange(ms = this.#options.pollIntervalMs): Promise<void> {
    const { runtime, signal } = this.#options;
    signal.throwIfAborted();
    if (!this.#hasChanged) {
      const over = new AbortController();
      this.#wake = () => over.abort();
      await runtime.sleep(ms, over.signal).catch(() => undefined);
      over.abort();
    }
    signal.throwIfAborted();
  }

  #noteChange(): void {
    this.#hasChanged = true;
    this.#wake();
  }
}

/** A watch that can be started again after it has ended, but not too often. */
class RestartingWatch {
  readonly #runtime: Pick<Runtime, 'now'>;
  readonly #onEnd: () => void;
  #current: AbortController | undefined;
  #startedAt = -Infinity;

  constructor(runtime: Pick<Runtime, 'now'>, onEnd: () => void) {
    this.#runtime = runtime;
    this.#onEnd = onEnd;
  }

  /** False also for a watch that the server should have ended by now: its connection is dead. */
  get isOpen(): boolean {
    if (this.#runtime.now() - this.#startedAt >= maxWatchMs) this.stop();
    return this.#current !== undefined;
  }

  mayStart(): boolean {
    return !this.isOpen && this.#runtime.now() - this.#startedAt >= minWatchMs;
  }

  start(watch: (signal: AbortSignal) => Promise<void>): void {
    const current = new AbortController();
    this.#current = current;
    this.#startedAt = this.#runtime.now();
    const end = () => {
      if (this.#current !== current) return;
      this.stop();
      this.#onEnd();
    };
    watch(current.signal).then(end, end);
  }

  stop(): void {
    this.#current?.abort();
    this.#current = undefined;
  }
}

export async function readWorkload(cluster: Cluster, ref: WorkloadRef): Promise<ClusterWorkload> {
  try {
    return await cluster.readWorkload(ref);
  } catch (error) {
    if (hasStatus(error, 404)) throw new Error(`${pathOf(ref)} no longer exists.`, { cause: error });
    throw error;
  }
}
