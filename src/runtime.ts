// The door to time, chance and other people's servers. Everything that reads a clock, waits, draws random bits or sends a
// request does it through a World, so tests can stand in for it.
import { randomBytes, randomUUID } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';

export type Runtime = {
  /** Milliseconds since the Unix epoch. */
  now: () => number;
  /** Resolves after `ms`; rejects as soon as the signal is aborted. */
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Lets everything else that waits have its turn. */
  yieldToEventLoop: () => Promise<void>;
  newId: () => string;
  newSecret: (bytes: number) => Buffer;
  /** Rejects when there is no answer, with a message for people; and as soon as the signal is aborted. */
  post: (outgoing: Outgoing, signal: AbortSignal) => Promise<Answer>;
};

/** An HTTP POST to an address that somebody else has chosen. */
export type Outgoing = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** `body` is the first of what came, as bytes and as they came. */
export type Answer = { readonly status: number; readonly body: Buffer };

/** `post` is left to `webhooks/httpClient.ts`, which is told at start where requests may go. */
export const realRuntime: Omit<Runtime, 'post'> = {
  now: () => Date.now(),
  sleep: (ms, signal) => wait(ms, undefined, signal === undefined ? {} : { signal }),
  yieldToEventLoop: () => nextTurn(),
  // A text of its own: as it comes it drags along the pieces it was made of, some 400 bytes.
  newId: () => Buffer.from(randomUUID(), 'latin1').toString('latin1'),
  newSecret: (bytes) => randomBytes(bytes),
};
