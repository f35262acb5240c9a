// Small tools for asynchronous work: a mutex, a limiter, a timeout, a timer for many moments, and retries while the
// store is unavailable.
import { setMaxListeners } from 'node:events';
import { isUnavailable } from './errors.ts';
import type { Runtime } from './runtime.ts';

export type Mutex = <T>(work: () => Promise<T>) => Promise<T>;

export function createMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => undefined);
    return next;
  };
}

/** Runs at most `places` pieces of work at the same time. The others wait in the order of their calls. */
export function createLimiter(places: number): Mutex {
  let free = places;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

type Timeout = {
  readonly ms: number;
  readonly message: string;
  readonly stopping?: AbortSignal;
};

export class TimeoutError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TimeoutError';
  }
}

export async function withTimeout<T>(
  { sleep }: Pick<Runtime, 'sleep'>,
  work: (signal: AbortSignal) => Promise<T>,
  { ms, message, stopping }: Timeout,
): Promise<T> {
  const over = new AbortController();
  // The work may have many parallel parts. Without this, Node warns about the eleventh part that listens to the signal.
  setMaxListeners(0, over.signal);
  const abort = () => over.abort();
  // `AbortSignal.any` would leave a reference with `stopping`, which may outlive every request and job.
  stopping?.addEventListener('abort', abort);
  if (stopping?.aborted) abort();
  const timeout = sleep(ms, over.signal).then(() => {
    throw new TimeoutError(message);
  });
  timeout.catch(() => undefined);
  try {
    return await Promise.race([work(over.signal), timeout]);
  } finally {
    stopping?.removeEventListener('abort', abort);
    over.abort();
  }
}

/** The callback must handle everything that is due and set the next moment. */
export class EarliestTimer {
  readonly #runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly #onTime: () => void;
  #pending: { readonly at: number; readonly cancelled: AbortController } | undefined;

  constructor(runtime: Pick<Runtime, 'now' | 'sleep'>, onTime: () => void) {
    this.#runtime = runtime;
    this.#onTime = onTime;
  }

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

export const retryAfterMs = 500;

type Patience = {
  readonly ms: number;
  readonly onRetry?: (error: unknown) => void;
};

/** With patience, rejects with the last error when the time is over. */
export async function retryWhileUnavailable<T>(
  work: () => Promise<T>,
  { now, sleep }: Pick<Runtime, 'now' | 'sleep'>,
  signal?: AbortSignal,
  { ms, onRetry }: Patience = { ms: Infinity },
): Promise<T> {
  for (const deadline = now() + ms; ;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || now() >= deadline) throw error;
      onRetry?.(error);
      await sleep(retryAfterMs, signal);
    }
  }
}
