// The door to time and chance. Everything that reads a clock, waits or draws random bits does it through a World,
// so tests can stand in for it.
import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';

export type World = {
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Resolves after `ms`; rejects as soon as the signal is aborted. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Lets everything else that waits have its turn. */
  breathe: () => Promise<void>;
  newId: () => string;
  newSecret: (bytes: number) => Buffer;
};

export const realWorld: World = {
  now: () => Date.now(),
  sleep: (ms, signal) => wait(ms, undefined, signal === undefined ? {} : { signal }),
  breathe: () => nextTurn(),
  newId: () => randomUUID(),
  newSecret: (bytes) => randomBytes(bytes),
};
