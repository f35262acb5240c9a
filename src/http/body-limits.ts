// The limits on all request bodies together. A small body that arrives with its headers is not counted: it can neither
// be slow nor come in tiny chunks, and counting costs a third of a small request. Every other body counts in bytes
// until its request is answered. Bodies of signed-in callers have a budget of their own, so that others cannot use it
// up, and each user has half of it. Bodies of others share theirs in the same way between networks, and few of a network
// may arrive slowly.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import { networkOf } from '../lib/address.ts';
import { unreadableBody } from './errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { AnonymousArrivals, tooManyBodies } from './anonymous-arrivals.ts';
import { clientAddress } from './client-address.ts';
import { countBody } from './counted-body.ts';
import { maxBodyBytes } from './limits.ts';
import { onEnded } from './request-end.ts';

/** A body of at most this size that arrives together with the headers counts against no limit. */
const maxUncountedBytes = 16 * 1024;

/** Those of callers without a valid bearer token or session cookie. */
const maxAnonymousBytes = 64 * 1024 ** 2;

const maxSignedInBytes = 128 * 1024 ** 2;

type BodyLimitsOptions = {
  readonly runtime: Pick<Runtime, 'elapsed' | 'sleep'>;
  readonly maxFileBytes: number;
  /** Decides only which limits hold. What a caller may do is decided after the body is read. */
  readonly userOf: (request: FastifyRequest) => Promise<string | undefined>;
};

type Received = (error: Error | null, body?: Readable) => void;

export class BodyLimits {
  readonly #userOf: BodyLimitsOptions['userOf'];
  readonly #signedIn: ByteBudget;
  readonly #anonymous: ByteBudget;
  readonly #arrivals: AnonymousArrivals;

  constructor({ runtime, maxFileBytes, userOf }: BodyLimitsOptions) {
    this.#userOf = userOf;
    // A form with the largest file and its texts must fit into the share of one user or network.
    const leastShare = maxFileBytes + maxBodyBytes;
    this.#signedIn = new ByteBudget(Math.max(maxSignedInBytes, 2 * leastShare));
    this.#anonymous = new ByteBudget(Math.max(maxAnonymousBytes, 2 * leastShare));
    // A clock that is set forward makes no body late.
    this.#arrivals = new AnonymousArrivals({ now: runtime.elapsed, sleep: runtime.sleep });
  }

  /**
   * Calls `done` with the body for the parsers. A small body that has arrived together with the headers is the payload
   * itself: it costs nothing here. Every other body is counted, and refused when it exceeds a limit.
   */
  receive(request: FastifyRequest, reply: FastifyReply, payload: Readable, done: Received): void {
    // Then the payload holds everything that has arrived together with the headers.
    void Promise.resolve().then(() => {
      // The client may have closed the connection: then its body never ends.
      if (request.raw.destroyed) done(unreadableBody());
      else if (hasArrived(request, payload)) done(null, payload);
      else this.#receiveSlowly(request, reply, payload).then((body) => done(null, body), done);
    });
  }

  stop(): void {
    this.#arrivals.stop();
  }

  async #receiveSlowly(request: FastifyRequest, reply: FastifyReply, payload: Readable): Promise<Readable> {
    const user = await this.#userOf(request);
    if (request.raw.destroyed) throw unreadableBody();
    request.countedBody = this.#count(request, reply, payload, user);
    return request.countedBody;
  }

  #count(request: FastifyRequest, reply: FastifyReply, payload: Readable, user?: string): Readable {
    const isSignedIn = user !== undefined;
    const source = user ?? networkOf(clientAddress(request));
    const budget = isSignedIn ? this.#signedIn : this.#anonymous;
    let bytes = 0;
    const body = countBody(payload, {
      isChunked: request.headers['transfer-encoding'] !== undefined,
      onBytes(count) {
        bytes += count;
        return budget.take(source, count) ? undefined : tooManyBodies();
      },
    });
    // A client that is refused may go on sending for a long time.
    body.once('error', () => {
      if (!reply.sent) void reply.header('connection', 'close');
    });
    if (!isSignedIn) this.#arrivals.add(body, source);
    // The memory of the form is in use until the answer: an operation may wait, for example to check a password.
    onEnded(reply, () => {
      body.destroy();
      budget.give(source, bytes);
    });
    return body;
  }
}

function hasArrived({ headers }: FastifyRequest, payload: Readable): boolean {
  const length = Number(headers['content-length']);
  return length <= maxUncountedBytes && payload.readableLength === length;
}

/** Whether a request has a body that must be received. */
export function hasBody({ method, headers }: FastifyRequest): boolean {
  if (method !== 'POST') return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Counts bytes in all and by source: a user or a network, which may have half of them. */
class ByteBudget {
  readonly #maxBytes: number;
  readonly #bySource = new Map<string, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Counts the bytes in any case, because they have arrived. Returns false if they are too many. */
  take(source: string, bytes: number): boolean {
    const ofSource = (this.#bySource.get(source) ?? 0) + bytes;
    this.#bySource.set(source, ofSource);
    this.#total += bytes;
    return this.#total <= this.#maxBytes && ofSource <= this.#maxBytes / 2;
  }

  give(source: string, bytes: number): void {
    if (bytes === 0) return;
    this.#total -= bytes;
    const ofSource = (this.#bySource.get(source) ?? 0) - bytes;
    if (ofSource > 0) this.#bySource.set(source, ofSource);
    else this.#bySource.delete(source);
  }
}
