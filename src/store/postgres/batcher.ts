// Collects calls while an earlier batch runs, and then runs them together: one round trip and one commit serve all
// of them.
import { isUnavailable } from '../../lib/errors.ts';

type BatchOptions<I, O> = {
  /**
   * Returns the results of the first items, at least one, in their order. The other items run in the next batch. An
   * `Error` rejects the call of its item.
   */
  readonly run: (items: readonly I[]) => Promise<readonly (O | Error)[]>;
  readonly maxItems: number;
  /** Delays a batch, so that it gets more items. */
  readonly waitForMore?: () => Promise<void>;
  /** Items with the same key run in different batches. */
  readonly keyOf?: (item: I) => string | undefined;
};

type Call<I, O> = {
  readonly item: I;
  readonly resolve: (result: O) => void;
  readonly reject: (error: unknown) => void;
};

export class Batcher<I, O> {
  readonly #options: BatchOptions<I, O>;
  #waiting: Call<I, O>[] = [];
  #isRunning = false;

  constructor(options: BatchOptions<I, O>) {
    this.#options = options;
  }

  submit(item: I): Promise<O> {
    return new Promise<O>((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (!this.#isRunning) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#waiting.length > 0) {
        if (this.#options.waitForMore) await this.#options.waitForMore();
        await this.#runBatch(this.#nextBatch());
      }
    } catch (error) {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    } finally {
      this.#isRunning = false;
    }
  }

  #nextBatch(): Call<I, O>[] {
    const { maxItems, keyOf = () => undefined } = this.#options;
    const batch: Call<I, O>[] = [];
    const later: Call<I, O>[] = [];
    const keys = new Set<string>();
    for (const call of this.#waiting) {
      const key = keyOf(call.item);
      if (batch.length >= maxItems || (key !== undefined && keys.has(key))) {
        later.push(call);
        continue;
      }
      batch.push(call);
      if (key !== undefined) keys.add(key);
    }
    this.#waiting = later;
    return batch;
  }

  /** If the batch fails because of one item, every item runs alone, so that only the faulty one is rejected. */
  async #runBatch(batch: readonly Call<I, O>[]): Promise<void> {
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      this.#waiting.unshift(...batch.slice(results.length));
      for (const [index, result] of results.entries()) {
        const call = batch[index];
        if (result instanceof Error) call?.reject(result);
        else call?.resolve(result);
      }
    } catch (error) {
      if (batch.length === 1 || isUnavailable(error)) for (const { reject } of batch) reject(error);
      else for (const call of batch) await this.#runBatch([call]);
    }
  }
}

/** Returns what the function throws. */
export function attempt<T>(run: () => T): T | Error {
  try {
    return run();
  } catch (error) {
    return error as Error;
  }
}
