// A runtime whose clock moves only when told to; sleepers wake in the order of their times.
import { randomBytes } from 'node:crypto';
import { type Answer, type Outgoing, type Runtime, realRuntime } from '../../src/runtime.ts';
import { noteSecretBytes } from './leaks.ts';

export type FakeRuntime = Runtime & {
  advance: (ms: number) => Promise<void>;
  /** Who answers what is posted; an answer may be a status alone. Nobody at first: the connection is refused. */
  receiver: Receiver;
  /** What else has to come to rest whenever time has moved on. */
  waitFor: () => Promise<void> | false;
};

type Answered = number | Answer | Promise<number | Answer>;

export type Receiver = (outgoing: Outgoing, signal: AbortSignal, at: number) => Answered;

/** A receiver that never answers. */
export const blackHole: Receiver = () => new Promise(() => undefined);

/** The real one but for the clock: what waits there ends only when it is called off. */
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
  let ids = 0;
  let sleepers: Sleeper[] = [];

  /** A few turns, so that what was woken gets to where it sleeps again. */
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
    now: () => time,
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
    receiver: () => {
      throw new Error('The connection was refused.');
    },
    post: async (outgoing, signal) => {
      const given = new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('given up'))),
      );
      given.catch(() => undefined);
      const answered = await Promise.race([given, runtime.receiver(outgoing, signal, time)]);
      return typeof answered === 'number' ? { status: answered, body: Buffer.alloc(0) } : answered;
    },
  };
  return runtime;
}
