// The clock, pauses, ids and random bytes. All code gets them through a `Runtime`, so that tests can replace them.
import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as immediate, setTimeout as timeout } from 'node:timers/promises';

export const dayMs = 86_400_000;

export type Runtime = {
  now: () => number;
  /** For durations: it only goes forward, at the same speed, whatever happens to the clock. Its start means nothing. */
  elapsed: () => number;
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  yieldToEventLoop: () => Promise<void>;
  newId: () => string;
  newSecret: (bytes: number) => Buffer;
  /** Corrects `now` by a clock that several processes share: it was `time` between `from` and `to` of `now`. */
  followClock?: (time: number, from: number, to: number) => void;
  /** Limits and measures work outside the process. It takes real time even where the clock stands still. */
  startTimeout: (ms: number, onTimeout: () => void) => Stopwatch;
};

export type Stopwatch = {
  readonly elapsedMs: () => number;
  readonly stop: () => void;
};

/** Node's timers take no longer time, and end at once if they are given one. */
const maxTimerMs = 2 ** 31 - 1;

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const options = signal === undefined ? {} : { signal };
  let left = ms;
  for (; left > maxTimerMs; left -= maxTimerMs) await timeout(maxTimerMs, undefined, options);
  await timeout(left, undefined, options);
}

export const realRuntime: Runtime = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep,
  yieldToEventLoop: () => immediate(),
  // Without `toLowerCase`, V8 keeps the parts from which `randomUUID` has joined the text, about 400 bytes.
  newId: () => randomUUID().toLowerCase(),
  newSecret: (bytes) => randomBytes(bytes),
  startTimeout: (ms, onTimeout) => {
    const startedAt = performance.now();
    const timer = setTimeout(onTimeout, ms);
    return { elapsedMs: () => Math.round(performance.now() - startedAt), stop: () => clearTimeout(timer) };
  },
};

/** The clock of the runtime then shows the shared time, as exactly as that is known. */
export function withSharedClock(runtime: Runtime): Runtime {
  let offset = 0;
  return {
    ...runtime,
    now: () => runtime.now() + offset,
    followClock: (time, from, to) => {
      const isEqual = from <= time + 1 && time <= to;
      if (!isEqual) offset += Math.round(time - (from + to) / 2);
    },
  };
}
