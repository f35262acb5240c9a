// The limits on all request bodies together. A small body that arrives with its headers is not counted. Every other
// body counts in bytes until its request is answered. Bodies of signed-in callers have a budget of their own, so that
// others cannot use it up. Bodies of others share theirs fairly between networks (`network-limits.ts`).
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import { networkOf } from '../lib/address.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { onAnswered } from './answered.ts';
import { clientAddress } from './client-address.ts';
import { anonymousBodies, maxBodyBytes, maxUncountedBytes, signedInBodies } from './limits.ts';
import { AnonymousArrivals, ByteBudget, tooManyBodies } from './network-limits.ts';
import { countBody } from './request-body.ts';

type BodyLimitsOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly maxFileBytes: number;
  /** Decides only which limits hold. What a caller may do is decided after the body is read. */
  readonly isSignedIn: (request: FastifyRequest) => Promise<boolean>;
};

export class BodyLimits {
  readonly #isSignedIn: BodyLimitsOptions['isSignedIn'];
  readonly #signedIn: ByteBudget;
  readonly #anonymous: ByteBudget;
  readonly #arrivals: AnonymousArrivals;

  constructor({ runtime, maxFileBytes, isSignedIn }: BodyLimitsOptions) {
    this.#isSignedIn = isSignedIn;
    // A form with the largest file and its texts must fit into the share of one network.
    const leastShare = maxFileBytes + maxBodyBytes;
    const budgetOf = (maxBytes: number) => Math.max(maxBytes, 2 * leastShare);
    this.#signedIn = new ByteBudget(budgetOf(signedInBodies.maxBytes), budgetOf(signedInBodies.maxBytes));
    this.#anonymous = new ByteBudget(
      budgetOf(anonymousBodies.maxBytes),
      budgetOf(anonymousBodies.maxBytes) / 2,
    );
    this.#arrivals = new AnonymousArrivals(runtime);
  }

  /**
   * The body for the parsers. A small body that has arrived together with the headers is the payload itself: it
   * costs nothing here. Every other body is counted, and refused when it exceeds a limit.
   */
  async receive(request: FastifyRequest, reply: FastifyReply, payload: Readable): Promise<Readable> {
    // In the next microtask, the payload holds everything that has arrived together with the headers.
    await Promise.resolve();
    requireOpen(request);
    if (hasArrived(request, payload)) return payload;
    const isSignedIn = await this.#isSignedIn(request);
    requireOpen(request);
    return this.#count(request, reply, payload, isSignedIn);
  }

  stop(): void {
    this.#arrivals.stop();
  }

  #count(request: FastifyRequest, reply: FastifyReply, payload: Readable, isSignedIn: boolean): Readable {
    const network = isSignedIn ? '' : networkOf(clientAddress(request));
    const budget = isSignedIn ? this.#signedIn : this.#anonymous;
    let bytes = 0;
    const body = countBody(payload, {
      isChunked: isChunked(request),
      onBytes(count) {
        bytes += count;
        return budget.take(network, count) ? undefined : tooManyBodies();
      },
    });
    // A client that is refused may go on sending for a long time.
    body.once('error', () => {
      if (!reply.sent) void reply.header('connection', 'close');
    });
    if (!isSignedIn) this.#arrivals.add(body, network);
    // The memory of the form is in use until the answer: an operation may wait, for example to check a password.
    onAnswered(reply, () => {
      body.destroy();
      budget.give(network, bytes);
    });
    return body;
  }
}

/**
 * The client may have closed the connection while a hook waited. Then its body never ends, and its network is
 * unknown.
 */
function requireOpen({ raw }: FastifyRequest): void {
  if (raw.destroyed) throw new ServiceError('invalid', 'The request body cannot be read.');
}

function hasArrived({ headers }: FastifyRequest, payload: Readable): boolean {
  const length = Number(headers['content-length']);
  return length <= maxUncountedBytes && payload.readableLength === length;
}

/** Whether the body, if there is one, had not arrived together with the headers. */
export function hasWaitedForBody({ receivedBody, raw }: FastifyRequest): boolean {
  return receivedBody !== null && receivedBody !== raw;
}

/** Whether a request has a body that must be received. */
export function hasBody({ method, headers }: FastifyRequest): boolean {
  if (method !== 'POST') return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function isChunked({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined;
}
