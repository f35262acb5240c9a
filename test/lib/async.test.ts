// Work that has its time, on a clock that moves only when told to.
import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { withTimeout } from '../../src/lib/async.ts';
import { createFakeRuntime } from '../kit/runtime.ts';

/** Starts work that takes so long, and tells whether it was told to stop. */
function start({ takesMs, stopping }: { takesMs: number; stopping?: AbortSignal }) {
  const runtime = createFakeRuntime();
  let given: AbortSignal | undefined;
  const work = async (signal: AbortSignal) => {
    given = signal;
    await runtime.sleep(takesMs);
    return signal.aborted ? 'stopped' : 'done';
  };
  const limits = { ms: 1000, message: 'it took too long.', ...(stopping && { stopping }) };
  const result = withTimeout(runtime, work, limits).catch((error: unknown) => (error as Error).message);
  return { runtime, result, isStopped: () => given?.aborted };
}

describe('work that has its time', () => {
  it('answers when it ends in time', async () => {
    const { runtime, result, isStopped } = start({ takesMs: 999 });
    await runtime.advance(998);
    expect(isStopped()).toBe(false);
    await runtime.advance(1);
    expect(await result).toBe('done');
  });

  it('is told to stop when its time is up, and not waited for', async () => {
    const { runtime, result, isStopped } = start({ takesMs: 5000 });
    await runtime.advance(1000);
    expect(await result).toBe('it took too long.');
    expect(isStopped()).toBe(true);
  });

  it('is told to stop when it is given up, and not waited for', async () => {
    const giving = new AbortController();
    const { runtime, result, isStopped } = start({ takesMs: 5000, stopping: giving.signal });
    await runtime.advance(500);
    expect(isStopped()).toBe(false);
    giving.abort();
    expect(await result).toBe('This operation was aborted');
    expect(isStopped()).toBe(true);
  });

  it('knows that it was given up before it began', async () => {
    const { result, isStopped } = start({ takesMs: 5000, stopping: AbortSignal.abort() });
    expect(await result).toBe('This operation was aborted');
    expect(isStopped()).toBe(true);
  });

  it.each([999, 5000])('leaves nothing with the signal that outlives it, taking %d ms', async (takesMs) => {
    const { signal } = new AbortController();
    const { runtime, result } = start({ takesMs, stopping: signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await runtime.advance(1000);
    await result;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
