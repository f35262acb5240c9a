// A fake runtime: its clock moves only when a test advances it, and sleepers wake in the order of their times.
import { randomBytes } from 'node:crypto';
import { type Runtime, realRuntime } from '../../src/lib/runtime.ts';
import { noteSecretBytes } from './leaks.ts';

export type FakeRuntime = Runtime & {
  advance: (ms: number) => Promise<void>;
  /** Sets the clock forward, or back. No time passes. */
  jump: (ms: number) => void;
  /** Other pending work, such as that of a store. `advance` waits for it after each step; false when there is none. */
  waitFor: () => Promise<void> | false;
};

/** The real runtime, except that `sleep` never resolves: it only rejects when it is aborted. */
export const timelessRuntime = {
  ...realRuntime,
  sleep: (_ms: number, signal?: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      const stop = () => reject(signal?.reason as Error);
      if (signal?.aborted) stop();
      signal?.addEventListener('abort', stop);
    }),
};

type Sleeper = { at: number; wake: () => void };

export function createFakeRuntime(start = Date.UTC(2026, 0, 1)): FakeRuntime {
  let time = start;
  let jumpedMs = 0;
  let ids = 0;
  let sleepers: Sleeper[] = [];

  /** Lets the event loop turn a few times, so that woken sleepers can sleep again. */
  async function rest(turns: number): Promise<void> {
    for (let turn = 0; turn < turns; turn += 1) {
      await new Promise(setImmediate);
      const busy = runtime.waitFor();
      if (!busy) continue;
      await busy;
      turn = -1;
    }
  }

  const runtime: FakeRuntime = {
    now: () => time + jumpedMs,
    elapsed: () => time,
    jump: (ms) => {
      jumpedMs += ms;
    },
    yieldToEventLoop: () => new Promise(setImmediate),
    newId: () => `id-${(ids += 1)}`,
    newSecret: (bytes) => {
      const secret = randomBytes(bytes);
      noteSecretBytes(secret);
      return secret;
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason as Error);
          return;
        }
        const stop = () => {
          sleepers = sleepers.filter((other) => other !== sleeper);
          reject(signal?.reason as Error);
        };
        const sleeper: Sleeper = {
          at: time + ms,
          wake: () => {
            signal?.removeEventListener('abort', stop);
            resolve();
          },
        };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', stop);
      }),
    startTimeout: (ms, onTimeout) => {
      const startedAt = time;
      const stopped = new AbortController();
      runtime.sleep(ms, stopped.signal).then(onTimeout, () => undefined);
      return { elapsedMs: () => time - startedAt, stop: () => stopped.abort() };
    },
    async advance(ms) {
      await rest(2);
      const end = time + ms;
      for (;;) {
        const next = sleepers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (!next) break;
        sleepers = sleepers.filter((other) => other !== next);
        time = Math.max(time, next.at);
        next.wake();
        await rest(4);
      }
      time = end;
    },
    waitFor: () => false,
  };
  return runtime;
}
