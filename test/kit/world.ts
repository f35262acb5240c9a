// A world whose clock moves only when told to; sleepers wake in the order of their times.
import { randomBytes } from 'node:crypto';
import type { World } from '../../src/world.ts';

export type FakeWorld = World & { advance: (ms: number) => Promise<void> };

type Sleeper = { at: number; wake: () => void };

export function createFakeWorld(start = Date.UTC(2026, 0, 1)): FakeWorld {
  let time = start;
  let ids = 0;
  let sleepers: Sleeper[] = [];

  return {
    now: () => time,
    breathe: () => new Promise(setImmediate),
    newId: () => `id-${(ids += 1)}`,
    newSecret: (bytes) => randomBytes(bytes),
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
    async advance(ms) {
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      const end = time + ms;
      for (;;) {
        const next = sleepers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (!next) break;
        sleepers = sleepers.filter((other) => other !== next);
        time = Math.max(time, next.at);
        next.wake();
        // A few turns, so that what was woken gets to where it sleeps again.
        for (let turns = 0; turns < 4; turns += 1) await new Promise(setImmediate);
      }
      time = end;
    },
  };
}
