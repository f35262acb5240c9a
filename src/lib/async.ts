// Small tools for asynchronous work: a mutex, a timeout, a timer for many moments, and retries while the store is unavailable.
import { setMaxListeners } from 'node:events';
import { isUnavailable } from '../errors.ts';
import type { Runtime } from '../runtime.ts';

/** Runs pieces of work one after another: each starts when the one before it has ended, whether it succeeded or not. */
export type Mutex = <T>(work: () => Promise<T>) => Promise<T>;

export function createMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => undefined);
    return next;
  };
}

export type Timeout = {
  readonly ms: number;
  /** The message of the error when the time is up. */
  readonly message: string;
  /** Aborted when the caller gives up earlier. */
  readonly stopping?: AbortSignal;
};

/** Settles as the work does, or rejects when the time is up. The signal of the work is aborted then, and when the caller gives up. */
export async function withTimeout<T>(
  { sleep }: Pick<Runtime, 'sleep'>,
  work: (signal: AbortSignal) => Promise<T>,
  { ms, message, stopping }: Timeout,
): Promise<T> {
  const over = new AbortController();
  // The work may run many parts at the same time. Without this, Node warns about the eleventh part that listens to the signal.
  setMaxListeners(0, over.signal);
  const abort = () => over.abort();
  // `AbortSignal.any` would leave a reference with `stopping`, which may outlive every request and job.
  stopping?.addEventListener('abort', abort);
  if (stopping?.aborted) abort();
  const timeout = sleep(ms, over.signal).then(() => {
    throw new Error(message);
  });
  timeout.catch(() => undefined);
  try {
    return await Promise.race([work(over.signal), timeout]);
  } finally {
    stopping?.removeEventListener('abort', abort);
    over.abort();
  }
}

/** One timer for many moments. It fires at the earliest one; its callback handles everything due and sets the next. */
export class EarliestTimer {
  readonly #runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly #onTime: () => void;
  #pending: { readonly at: number; readonly cancelled: AbortController } | undefined;

  constructor(runtime: Pick<Runtime, 'now' | 'sleep'>, onTime: () => void) {
    this.#runtime = runtime;
    this.#onTime = onTime;
  }

  /** Fires at this moment, or at an earlier one that was set before. */
  fireAt(at: number): void {
    if (this.#pending && this.#pending.at <= at) return;
    this.cancel();
    const cancelled = new AbortController();
    this.#pending = { at, cancelled };
    const { now, sleep } = this.#runtime;
    sleep(Math.max(0, at - now()), cancelled.signal).then(
      () => {
        this.#pending = undefined;
        this.#onTime();
      },
      () => undefined,
    );
  }

  cancel(): void {
    this.#pending?.cancelled.abort();
    this.#pending = undefined;
  }
}

/** The pause between two tries while the store is unavailable. */
export const retryAfterMs = 500;

/** Repeats the work while the store is unavailable; any other error is thrown. */
export async function retryWhileUnavailable<T>(
  work: () => Promise<T>,
  { sleep }: Pick<Runtime, 'sleep'>,
  signal: AbortSignal,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await sleep(retryAfterMs, signal);
    }
  }
}
