// The clock, pauses, ids and random bytes. All code gets them through a `Runtime`, so that tests can replace them.
import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as immediate, setTimeout as timeout } from 'node:timers/promises';

export const dayMs = 86_400_000;

export type Runtime = {
  now: () => number;
  /** What other machines take for the time, where tests have moved `now`. */
  timeOfDay?: () => number;
  /** For durations: it only goes forward, at the same speed, whatever happens to the clock. Its start means nothing. */
  elapsed: () => number;
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  yieldToEventLoop: () => Promise<void>;
  /** The id contains the time, by default the present one: `timeOfId` reads it, and ids of one time are neighbours in an index. */
  newId: (at?: number) => string;
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
  newId: (at = Date.now()) => {
    const time = at.toString(16).padStart(12, '0');
    const id = `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
    // Without this, V8 keeps the parts from which the text was joined, about 400 bytes.
    return id.toLowerCase();
  },
  newSecret: (bytes) => randomBytes(bytes),
  startTimeout: (ms, onTimeout) => {
    const startedAt = performance.now();
    const timer = setTimeout(onTimeout, ms);
    return { elapsedMs: () => Math.round(performance.now() - startedAt), stop: () => clearTimeout(timer) };
  },
};

const uuidWithTime = /^([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

/** The time in the id; undefined for an id of another form. */
export function timeOfId(id: string): number | undefined {
  const [, high, low] = uuidWithTime.exec(id) ?? [];
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16);
}

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
