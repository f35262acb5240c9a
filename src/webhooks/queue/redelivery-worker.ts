// Creates the new deliveries of redeliveries by filter, in the background.
//
// Every process works on every redelivery (redelivery.ts), one batch of each in turn; the store gives each process
// other deliveries. When as many deliveries are pending as `publish` allows, or when other processes are repeating
// what is left, the worker waits and looks again. A redelivery of which nothing is left is removed. A process that
// is killed in between leaves it to the others, or to the next one.
import { isUnavailable } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import type { Tasks } from '../../lib/tasks.ts';
import type { Store } from '../../store/store.ts';
import type { PublishLimits } from './event-publisher.ts';
import { type Redelivery, listRedeliveries, redeliveries } from './redelivery.ts';

/** A batch may exceed the limit of pending bytes, so it is small. */
const batch = 100;

const lookAgainMs = 500;
const retryAfterErrorMs = 10_000;

type RedeliveryWorkerOptions = {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly tasks: Tasks;
  readonly limits: PublishLimits;
};

export class RedeliveryWorker {
  readonly #options: RedeliveryWorkerOptions;
  #isWorking = false;

  constructor(options: RedeliveryWorkerOptions) {
    this.#options = options;
  }

  start(): void {
    const { store, tasks } = this.#options;
    const stopListening = store.onUpdate(() => this.#wake());
    tasks.start('redelivery', async (stopping) => {
      await new Promise((resolve) => stopping.addEventListener('abort', resolve));
      stopListening();
    });
    this.#wake();
  }

  #wake(): void {
    const { store, tasks } = this.#options;
    if (this.#isWorking || store.count(redeliveries) === 0) return;
    this.#isWorking = true;
    tasks.start('redelivery', (stopping) => this.#work(stopping));
  }

  async #work(stopping: AbortSignal): Promise<void> {
    const { store, runtime, tasks } = this.#options;
    try {
      while (store.count(redeliveries) > 0)
        if (!(await this.#advanceAll(stopping))) await runtime.sleep(lookAgainMs, stopping);
    } catch (error) {
      tasks.start('redelivery', (signal) => this.#wakeLater(signal));
      throw error;
    } finally {
      this.#isWorking = false;
    }
  }

  async #wakeLater(stopping: AbortSignal): Promise<void> {
    await this.#options.runtime.sleep(retryAfterErrorMs, stopping);
    this.#wake();
  }

  /** Returns whether a batch of any redelivery was created, or one has ended. */
  async #advanceAll(stopping: AbortSignal): Promise<boolean> {
    let hasAdvanced = false;
    for (const redelivery of listRedeliveries(this.#options.store)) {
      if (stopping.aborted) throw stopping.reason;
      // The memory store answers without a turn of the event loop, so many batches would stop all other work.
      await this.#options.runtime.yieldToEventLoop();
      try {
        if (await this.#advance(redelivery)) hasAdvanced = true;
      } catch (error) {
        // The store logs that it is unavailable.
        if (!isUnavailable(error)) throw error;
      }
    }
    return hasAdvanced;
  }

  async #advance(redelivery: Redelivery): Promise<boolean> {
    const { store, runtime } = this.#options;
    const most = Math.min(batch, this.#room());
    if (most <= 0) return false;
    const { created, isDone } = await store.deliveries.redeliver(redelivery, {
      most,
      at: runtime.now(),
      newId: runtime.newId,
    });
    if (isDone) await store.update((transaction) => transaction.remove(redeliveries, redelivery.id));
    return isDone || created > 0;
  }

  /** How many deliveries may become pending. */
  #room(): number {
    const { store, limits } = this.#options;
    const { count, bytes } = store.deliveries.pending();
    return bytes < limits.pendingBytes ? limits.pending - count : 0;
  }
}
