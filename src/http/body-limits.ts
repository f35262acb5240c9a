// The limits on all request bodies together. A small body that arrives with its headers is not counted. Every other
// body counts in bytes until its request is answered. If its caller has no valid bearer token or session cookie, it
// must also arrive in time: after a second it takes one of the few slots of its client network, and after a minute
// it is refused. Bodies of signed-in callers have a budget of their own, so that others cannot use it up.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import { ServiceError } from '../lib/errors.ts';
import { networkOf } from '../lib/address.ts';
import { EarliestTimer } from '../lib/async.ts';
import type { Runtime } from '../lib/runtime.ts';
import { clientAddress } from './client-address.ts';
import { anonymousBodies, maxBodyBytes, maxUncountedBytes, signedInBodies } from './limits.ts';
import { countBody } from './request-body.ts';

type BodyLimitsOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly maxFileBytes: number;
  /** Decides only which limits hold. What a caller may do is decided after the body is read. */
  readonly isSignedIn: (request: FastifyRequest) => Promise<boolean>;
};

type Refuse = (error: ServiceError) => void;

type Arrival = {
  readonly refuse: Refuse;
  readonly network: string;
  readonly startedAt: number;
  hasSlot: boolean;
};

export class BodyLimits {
  readonly #runtime: BodyLimitsOptions['runtime'];
  readonly #isSignedIn: BodyLimitsOptions['isSignedIn'];
  readonly #signedIn: ByteBudget;
  readonly #anonymous: ByteBudget;
  /** In the order of their start. */
  readonly #arrivals = new Set<Arrival>();
  readonly #slotsTaken = new Map<string, number>();
  readonly #timer: EarliestTimer;

  constructor({ runtime, maxFileBytes, isSignedIn }: BodyLimitsOptions) {
    this.#runtime = runtime;
    this.#isSignedIn = isSignedIn;
    // A form with the largest file and its texts must fit into the share of one network.
    const leastShare = maxFileBytes + maxBodyBytes;
    const budgetOf = (maxBytes: number) => Math.max(maxBytes, 2 * leastShare);
    this.#signedIn = new ByteBudget(budgetOf(signedInBodies.maxBytes), budgetOf(signedInBodies.maxBytes));
    this.#anonymous = new ByteBudget(
      budgetOf(anonymousBodies.maxBytes),
      budgetOf(anonymousBodies.maxBytes) / 2,
    );
    this.#timer = new EarliestTimer(runtime, () => this.#checkArrivals());
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
    this.#timer.cancel();
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
    const arrival = isSignedIn ? undefined : this.#addArrival((error) => body.destroy(error), network);
    body.once('close', () => arrival && this.#removeArrival(arrival));
    // The memory of the form is in use until the answer: an operation may wait, for example to check a password.
    reply.raw.once('close', () => {
      body.destroy();
      budget.give(network, bytes);
    });
    return body;
  }

  #addArrival(refuse: Refuse, network: string): Arrival {
    const arrival = { refuse, network, startedAt: this.#runtime.now(), hasSlot: false };
    this.#arrivals.add(arrival);
    this.#timer.fireAt(arrival.startedAt + anonymousBodies.uncountedMs);
    return arrival;
  }

  #removeArrival(arrival: Arrival): void {
    if (!this.#arrivals.delete(arrival) || !arrival.hasSlot) return;
    const taken = (this.#slotsTaken.get(arrival.network) ?? 0) - 1;
    if (taken > 0) this.#slotsTaken.set(arrival.network, taken);
    else this.#slotsTaken.delete(arrival.network);
  }

  #checkArrivals(): void {
    const now = this.#runtime.now();
    for (const arrival of this.#arrivals) {
      const age = now - arrival.startedAt;
      if (age < anonymousBodies.uncountedMs) break;
      if (age >= anonymousBodies.timeoutMs) this.#refuse(arrival, late());
      else if (!arrival.hasSlot && !this.#takeSlot(arrival)) this.#refuse(arrival, tooManyBodies());
    }
    for (const { startedAt, hasSlot } of this.#arrivals) {
      this.#timer.fireAt(startedAt + (hasSlot ? anonymousBodies.timeoutMs : anonymousBodies.uncountedMs));
      if (!hasSlot) break;
    }
  }

  #takeSlot(arrival: Arrival): boolean {
    const taken = this.#slotsTaken.get(arrival.network) ?? 0;
    arrival.hasSlot = taken < anonymousBodies.maxPerNetwork;
    if (arrival.hasSlot) this.#slotsTaken.set(arrival.network, taken + 1);
    return arrival.hasSlot;
  }

  #refuse(arrival: Arrival, error: ServiceError): void {
    this.#removeArrival(arrival);
    arrival.refuse(error);
  }
}

class ByteBudget {
  readonly #most: number;
  readonly #maxPerNetwork: number;
  readonly #byNetwork = new Map<string, number>();
  #total = 0;

  constructor(most: number, maxPerNetwork: number) {
    this.#most = most;
    this.#maxPerNetwork = maxPerNetwork;
  }

  /** Counts the bytes in any case, because they have arrived. Returns false if they are too many. */
  take(network: string, bytes: number): boolean {
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) + bytes;
    this.#byNetwork.set(network, ofNetwork);
    this.#total += bytes;
    return this.#total <= this.#most && ofNetwork <= this.#maxPerNetwork;
  }

  give(network: string, bytes: number): void {
    if (bytes === 0) return;
    this.#total -= bytes;
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) - bytes;
    if (ofNetwork > 0) this.#byNetwork.set(network, ofNetwork);
    else this.#byNetwork.delete(network);
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

function tooManyBodies(): ServiceError {
  return new ServiceError('unavailable', 'Too many request bodies are being read.', { retryAfterSeconds: 5 });
}

function late(): ServiceError {
  return new ServiceError('invalid', 'The request body did not arrive in time.');
}
