// The limits on all request bodies together. A body counts in bytes until its request is answered. A body of a caller without a valid
// bearer token or session cookie must also arrive in time: after a second it takes one of the few places of its client network,
// and after a minute it is refused. Bodies of signed-in callers have a budget of their own, so that others cannot use it up.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import { ServiceError } from '../errors.ts';
import { networkOf } from '../lib/address.ts';
import { EarliestTimer } from '../lib/async.ts';
import type { Runtime } from '../runtime.ts';
import { clientAddress } from './client-address.ts';
import { anonymousBodies, maxBodyBytes, signedInBodies } from './limits.ts';
import { ChunkCounter, RequestBody } from './request-body.ts';

export type BodyLimitsOptions = {
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
  hasPlace: boolean;
};

/** Counts one body. */
type Meter = { readonly onBytes: (count: number) => void; readonly onArrived: () => void };

export class BodyLimits {
  readonly #runtime: BodyLimitsOptions['runtime'];
  readonly #isSignedIn: BodyLimitsOptions['isSignedIn'];
  readonly #signedIn: ByteBudget;
  readonly #anonymous: ByteBudget;
  /** In the order of their start. */
  readonly #arrivals = new Set<Arrival>();
  readonly #placesTaken = new Map<string, number>();
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

  /** The body for the parsers, which is refused when it exceeds a limit. */
  async receive(request: FastifyRequest, reply: FastifyReply, payload: Readable): Promise<Readable> {
    if (!hasBody(request) || isMultipart(request)) return payload;
    const isSignedIn = await this.#checkCaller(request);
    const meter = this.#startMeter(request, reply, isSignedIn, (error) => body.refuse(error));
    const body: RequestBody = new RequestBody(payload, {
      isChunked: isChunked(request),
      onBytes: meter.onBytes,
      // The client may go on sending for a long time.
      onRefused: () => void reply.header('connection', 'close'),
    });
    body.once('close', meter.onArrived);
    return body;
  }

  /** For the parser of multipart forms: `read` reads the connection itself. The result rejects when the body exceeds a limit. */
  async observe<T>(request: FastifyRequest, reply: FastifyReply, read: () => Promise<T>): Promise<T> {
    const isSignedIn = await this.#checkCaller(request);
    const { promise: refused, reject } = createRefusal();
    const refuse = (error: ServiceError) => {
      void reply.header('connection', 'close');
      reject(error);
    };
    const meter = this.#startMeter(request, reply, isSignedIn, refuse);
    const chunks = new ChunkCounter(isChunked(request));
    const onData = (chunk: Buffer) => {
      const problem = chunks.add(chunk.length);
      if (problem) refuse(problem);
      else meter.onBytes(chunk.length);
    };
    // This starts the flow of data, so the parser must start in the same turn.
    request.raw.on('data', onData);
    try {
      return await Promise.race([read(), refused]);
    } finally {
      request.raw.off('data', onData);
      meter.onArrived();
    }
  }

  stop(): void {
    this.#timer.cancel();
  }

  async #checkCaller(request: FastifyRequest): Promise<boolean> {
    const isSignedIn = await this.#isSignedIn(request);
    // The client may have closed the connection meanwhile. Then its body never ends, and its network is unknown.
    if (request.raw.destroyed) throw new ServiceError('invalid', 'The request body cannot be read.');
    return isSignedIn;
  }

  #startMeter(request: FastifyRequest, reply: FastifyReply, isSignedIn: boolean, refuse: Refuse): Meter {
    const network = isSignedIn ? '' : networkOf(clientAddress(request));
    const budget = isSignedIn ? this.#signedIn : this.#anonymous;
    const arrival = isSignedIn ? undefined : this.#addArrival(refuse, network);
    const onArrived = () => arrival && this.#removeArrival(arrival);
    let bytes = 0;
    let isAnswered = false;
    // The memory of the form is in use until then: an operation may wait, for example to check a password.
    reply.raw.once('close', () => {
      isAnswered = true;
      budget.give(network, bytes);
      onArrived();
    });
    return {
      onBytes: (count) => {
        if (isAnswered) return;
        bytes += count;
        if (!budget.take(network, count)) refuse(tooManyBodies());
      },
      onArrived,
    };
  }

  #addArrival(refuse: Refuse, network: string): Arrival {
    const arrival = { refuse, network, startedAt: this.#runtime.now(), hasPlace: false };
    this.#arrivals.add(arrival);
    this.#timer.fireAt(arrival.startedAt + anonymousBodies.uncountedMs);
    return arrival;
  }

  #removeArrival(arrival: Arrival): void {
    if (!this.#arrivals.delete(arrival) || !arrival.hasPlace) return;
    const taken = (this.#placesTaken.get(arrival.network) ?? 0) - 1;
    if (taken > 0) this.#placesTaken.set(arrival.network, taken);
    else this.#placesTaken.delete(arrival.network);
  }

  #checkArrivals(): void {
    const now = this.#runtime.now();
    for (const arrival of this.#arrivals) {
      const age = now - arrival.startedAt;
      if (age < anonymousBodies.uncountedMs) break;
      if (age >= anonymousBodies.timeoutMs) this.#refuse(arrival, late());
      else if (!arrival.hasPlace && !this.#takePlace(arrival)) this.#refuse(arrival, tooManyBodies());
    }
    for (const { startedAt, hasPlace } of this.#arrivals) {
      this.#timer.fireAt(startedAt + (hasPlace ? anonymousBodies.timeoutMs : anonymousBodies.uncountedMs));
      if (!hasPlace) break;
    }
  }

  #takePlace(arrival: Arrival): boolean {
    const taken = this.#placesTaken.get(arrival.network) ?? 0;
    arrival.hasPlace = taken < anonymousBodies.maxPerNetwork;
    if (arrival.hasPlace) this.#placesTaken.set(arrival.network, taken + 1);
    return arrival.hasPlace;
  }

  #refuse(arrival: Arrival, error: ServiceError): void {
    this.#removeArrival(arrival);
    arrival.refuse(error);
  }
}

class ByteBudget {
  readonly #most: number;
  readonly #mostPerNetwork: number;
  readonly #byNetwork = new Map<string, number>();
  #total = 0;

  constructor(most: number, mostPerNetwork: number) {
    this.#most = most;
    this.#mostPerNetwork = mostPerNetwork;
  }

  /** Counts the bytes in any case, because they have arrived. Returns false if they are too many. */
  take(network: string, bytes: number): boolean {
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) + bytes;
    this.#byNetwork.set(network, ofNetwork);
    this.#total += bytes;
    return this.#total <= this.#most && ofNetwork <= this.#mostPerNetwork;
  }

  give(network: string, bytes: number): void {
    if (bytes === 0) return;
    this.#total -= bytes;
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) - bytes;
    if (ofNetwork > 0) this.#byNetwork.set(network, ofNetwork);
    else this.#byNetwork.delete(network);
  }
}

function createRefusal() {
  let reject: Refuse = () => undefined;
  const promise = new Promise<never>((_resolve, rejectPromise) => {
    reject = rejectPromise;
  });
  // A body may be refused after its parser has failed.
  promise.catch(() => undefined);
  return { promise, reject };
}

function hasBody({ method, headers }: FastifyRequest): boolean {
  if (method !== 'POST') return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function isMultipart({ headers }: FastifyRequest): boolean {
  return /^\s*multipart\/form-data/i.test(headers['content-type'] ?? '');
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
