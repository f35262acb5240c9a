// Tests of work with a timeout, on a fake clock, and of the limiter.
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLimiter, withTimeout } from '../../src/lib/async.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createFakeRuntime } from '../kit/runtime.ts';

/** Starts work with a timeout of one second. `isAborted` returns whether the signal of the work is aborted. */
function start({ takesMs, stopping }: { takesMs: number; stopping?: AbortSignal }) {
  const runtime = createFakeRuntime();
  let workSignal: AbortSignal | undefined;
  const work = async (signal: AbortSignal) => {
    workSignal = signal;
    await runtime.sleep(takesMs);
    return signal.aborted ? 'stopped' : 'done';
  };
  const limits = { ms: 1000, message: 'it took too long.', ...(stopping && { stopping }) };
  const result = withTimeout(runtime, work, limits).catch((error: unknown) => (error as Error).message);
  return { runtime, result, isAborted: () => workSignal?.aborted };
}

describe('work with a timeout', () => {
  it('returns its result if it ends in time', async () => {
    const { runtime, result, isAborted } = start({ takesMs: 999 });
    await runtime.advance(998);
    expect(isAborted()).toBe(false);
    await runtime.advance(1);
    expect(await result).toBe('done');
  });

  it('is aborted after the timeout, and the caller does not wait for it', async () => {
    const { runtime, result, isAborted } = start({ takesMs: 5000 });
    await runtime.advance(1000);
    expect(await result).toBe('it took too long.');
    expect(isAborted()).toBe(true);
  });

  it('is aborted when the caller gives up, and the caller does not wait for it', async () => {
    const caller = new AbortController();
    const { runtime, result, isAborted } = start({ takesMs: 5000, stopping: caller.signal });
    await runtime.advance(500);
    expect(isAborted()).toBe(false);
    caller.abort();
    expect(await result).toBe('This operation was aborted');
    expect(isAborted()).toBe(true);
  });

  it('is aborted from the start if the caller has given up before', async () => {
    const { result, isAborted } = start({ takesMs: 5000, stopping: AbortSignal.abort() });
    expect(await result).toBe('This operation was aborted');
    expect(isAborted()).toBe(true);
  });

  it.each([999, 5000])('that takes %d ms leaves no listener on the signal of the caller', async (takesMs) => {
    const { signal } = new AbortController();
    const { runtime, result } = start({ takesMs, stopping: signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await runtime.advance(1000);
    await result;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

it('a pause of more than 24.8 days does not end at once', async () => {
  const stopping = new AbortController();
  let hasEnded = false;
  const end = () => (hasEnded = true);
  const sleeping = realRuntime.sleep(2 ** 31, stopping.signal).then(end, () => undefined);
  await realRuntime.sleep(20);
  expect(hasEnded).toBe(false);
  stopping.abort();
  await sleeping;
  expect(hasEnded).toBe(false);
});

describe('a limiter', () => {
  it('runs as many pieces of work at once as it has places, in the order of the calls', async () => {
    const limit = createLimiter(2);
    const started: number[] = [];
    const ends: (() => void)[] = [];
    const results = [0, 1, 2, 3].map((n) =>
      limit(async () => {
        started.push(n);
        await new Promise<void>((resolve) => (ends[n] = resolve));
        return n;
      }),
    );
    const end = async (n: number) => {
      ends[n]?.();
      await results[n];
      await new Promise(setImmediate);
    };
    await new Promise(setImmediate);
    expect(started).toEqual([0, 1]);
    await end(1);
    expect(started).toEqual([0, 1, 2]);
    await end(0);
    await end(2);
    await end(3);
    expect(await Promise.all(results)).toEqual([0, 1, 2, 3]);
  });

  it('frees the place of work that fails', async () => {
    const limit = createLimiter(1);
    const failing = limit(() => Promise.reject(new Error('failed')));
    const next = limit(() => Promise.resolve('done'));
    await expect(failing).rejects.toThrow('failed');
    expect(await next).toBe('done');
  });
});
