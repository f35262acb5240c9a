// Lets requests wait until a job changes, so that clients need not poll.
import type { Runtime } from '../../lib/runtime.ts';
import type { ReadableStore } from '../../store/store.ts';
import { type Job, isOpen, newestJob } from './job-table.ts';

export class JobWatcher {
  readonly #store: ReadableStore;
  readonly #runtime: Pick<Runtime, 'sleep'>;
  readonly #waiting = new Set<AbortController>();
  #isStopped = false;

  constructor(store: ReadableStore, runtime: Pick<Runtime, 'sleep'>) {
    this.#store = store;
    this.#runtime = runtime;
  }

  async waitForChange(job: Job, messageCount: number, waitMs: number): Promise<void> {
    const hasChanged = () => {
      const newest = this.#store.read(newestJob);
      const isSame = newest?.id === job.id && newest.state === job.state;
      return !isSame || !isOpen(newest) || newest.messageCount > messageCount;
    };
    if (this.#isStopped || hasChanged()) return;
    const wait = new AbortController();
    const stopListening = this.#store.onUpdate(() => {
      if (hasChanged()) wait.abort();
    });
    this.#waiting.add(wait);
    try {
      await this.#runtime.sleep(waitMs, wait.signal);
    } catch (error) {
      if (!wait.signal.aborted) throw error;
    } finally {
      this.#waiting.delete(wait);
      stopListening();
    }
  }

  /** Without this, the server could wait up to a minute for these requests when it stops. */
  stop(): void {
    this.#isStopped = true;
    for (const wait of this.#waiting) wait.abort();
  }
}
