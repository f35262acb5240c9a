// The limits on all request bodies together. A small body that arrives with its headers is not counted: it can neither
// be slow nor come in tiny chunks, and counting costs a third of a small request. Every other body counts in bytes
// until its request is answered. Bodies of signed-in callers have a budget of their own, so that others cannot use it
// up. Bodies of others share theirs fairly between networks, and few of a network may arrive slowly.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Readable, Transform } from 'node:stream';
import { networkOf } from '../lib/address.ts';
import { EarliestTimer } from '../lib/async.ts';
import { ServiceError } from '../lib/errors.ts';
import { unreadableBody } from './errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { onAnswered } from './answer-limits.ts';
import { clientAddress } from './client-address.ts';
import { maxBodyBytes } from './limits.ts';

/** A body of at most this size that arrives together with the headers counts against no limit. */
const maxUncountedBytes = 16 * 1024;

/** Smaller chunks of a body are merged into buffers of this size. */
const maxMergedBytes = 64 * 1024;

/** Holds for bodies over `maxMergedBytes`. Every chunk costs processor time, whatever its size. */
const minAverageChunkBytes = 64;

/** Slightly less than promised, because Node reports a chunk that arrives in two segments as two. */
const refusedAverageChunkBytes = 60;

/**
 * Bodies of callers without a valid bearer token or session cookie. Most arrive at once. A body that has not
 * arrived after `slotAfterMs` takes a slot of its network, so signing in works even in the network of an attacker.
 */
const anonymousBodies = {
  maxBytes: 64 * 1024 ** 2,
  slotsPerNetwork: 4,
  slotAfterMs: 1000,
  timeoutMs: 60_000,
} as const;

const maxSignedInBytes = 128 * 1024 ** 2;

type BodyLimitsOptions = {
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly maxFileBytes: number;
  /** Decides only which limits hold. What a caller may do is decided after the body is read. */
  readonly isSignedIn: (request: FastifyRequest) => Promise<boolean>;
};

type Received = (error: Error | null, body?: Readable) => void;

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
    const [signedIn, anonymous] = [budgetOf(maxSignedInBytes), budgetOf(anonymousBodies.maxBytes)];
    this.#signedIn = new ByteBudget(signedIn, signedIn);
    this.#anonymous = new ByteBudget(anonymous, anonymous / 2);
    this.#arrivals = new AnonymousArrivals(runtime);
  }

  /**
   * Calls `done` with the body for the parsers. A small body that has arrived together with the headers is the payload
   * itself: it costs nothing here. Every other body is counted, and refused when it exceeds a limit.
   */
  receive(request: FastifyRequest, reply: FastifyReply, payload: Readable, done: Received): void {
    // Then the payload holds everything that has arrived together with the headers.
    void Promise.resolve().then(() => {
      // The client may have closed the connection: then its body never ends, and its network is unknown.
      if (request.raw.destroyed) done(unreadableBody());
      else if (hasArrived(request, payload)) done(null, payload);
      else this.#receiveSlowly(request, reply, payload).then((body) => done(null, body), done);
    });
  }

  stop(): void {
    this.#arrivals.stop();
  }

  async #receiveSlowly(request: FastifyRequest, reply: FastifyReply, payload: Readable): Promise<Readable> {
    const isSignedIn = await this.#isSignedIn(request);
    if (request.raw.destroyed) throw unreadableBody();
    request.countedBody = this.#count(request, reply, payload, isSignedIn);
    return request.countedBody;
  }

  #count(request: FastifyRequest, reply: FastifyReply, payload: Readable, isSignedIn: boolean): Readable {
    const network = isSignedIn ? '' : networkOf(clientAddress(request));
    const budget = isSignedIn ? this.#signedIn : this.#anonymous;
    let bytes = 0;
    const body = countBody(payload, {
      isChunked: request.headers['transfer-encoding'] !== undefined,
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

function hasArrived({ headers }: FastifyRequest, payload: Readable): boolean {
  const length = Number(headers['content-length']);
  return length <= maxUncountedBytes && payload.readableLength === length;
}

/** Whether a request has a body that must be received. */
export function hasBody({ method, headers }: FastifyRequest): boolean {
  if (method !== 'POST') return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

type CountedBodyOptions = {
  /** Without the transfer coding, the network alone decides how the body is cut. */
  readonly isChunked: boolean;
  /** Returns why the body is refused, if it is. */
  readonly onBytes: (count: number) => ServiceError | undefined;
};

/**
 * Counts the bytes and the HTTP chunks of a body, and merges small chunks into few, large buffers: Node creates a Buffer
 * object of some hundred bytes for every chunk, even for one of a single byte.
 */
export function countBody(source: Readable, { isChunked, onBytes }: CountedBodyOptions): Transform {
  let [chunks, bytes] = [0, 0];
  const merger = new Merger();
  const body = new Transform({
    highWaterMark: maxMergedBytes,
    transform(chunk: Buffer, _encoding, done) {
      chunks += 1;
      bytes += chunk.length;
      const areTooSmall = bytes > maxMergedBytes && bytes < chunks * refusedAverageChunkBytes;
      const problem = isChunked && areTooSmall ? chunksTooSmall() : onBytes(chunk.length);
      if (problem) return done(problem);
      for (const buffer of merger.add(chunk)) this.push(buffer);
      done();
    },
    flush: (done) => done(null, merger.take()),
  });
  const onBreak = (error?: Error) => {
    if (!source.readableEnded) body.destroy(error ?? new Error('The request was aborted.'));
  };
  source.on('error', onBreak).on('close', onBreak);
  // Without the listener, a client that breaks off after its request is refused would cause an uncaught error.
  body.on('error', () => undefined);
  // Otherwise the rest of a refused body would stay on the connection, in front of the next request.
  body.once('close', () => source.unpipe(body).resume());
  return source.pipe(body);
}

/** Collects chunks into buffers of up to `maxMergedBytes`. */
class Merger {
  #buffer = Buffer.alloc(0);
  #length = 0;

  /** Returns the buffers that are complete. */
  add(chunk: Buffer): Buffer[] {
    const complete: (Buffer | undefined)[] = [];
    if (this.#length + chunk.length > maxMergedBytes) complete.push(this.take());
    if (chunk.length >= maxMergedBytes) complete.push(chunk);
    else this.#append(chunk);
    return complete.filter((buffer) => buffer !== undefined);
  }

  /** The rest. */
  take(): Buffer | undefined {
    const rest = this.#length === 0 ? undefined : this.#buffer.subarray(0, this.#length);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    return rest;
  }

  #append(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.min(2 * needed, maxMergedBytes));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#length);
    this.#length = needed;
  }
}

function chunksTooSmall(): ServiceError {
  return unreadableBody([
    {
      message: `The chunks of a body over ${maxMergedBytes} bytes must have at least ${minAverageChunkBytes} bytes on average.`,
    },
  ]);
}

/** Counts bytes in all and by network. Signed-in callers count as one network. */
class ByteBudget {
  readonly #maxBytes: number;
  readonly #maxBytesPerNetwork: number;
  readonly #byNetwork = new Map<string, number>();
  #total = 0;

  constructor(maxBytes: number, maxBytesPerNetwork: number) {
    this.#maxBytes = maxBytes;
    this.#maxBytesPerNetwork = maxBytesPerNetwork;
  }

  /** Counts the bytes in any case, because they have arrived. Returns false if they are too many. */
  take(network: string, bytes: number): boolean {
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) + bytes;
    this.#byNetwork.set(network, ofNetwork);
    this.#total += bytes;
    return this.#total <= this.#maxBytes && ofNetwork <= this.#maxBytesPerNetwork;
  }

  give(network: string, bytes: number): void {
    if (bytes === 0) return;
    this.#total -= bytes;
    const ofNetwork = (this.#byNetwork.get(network) ?? 0) - bytes;
    if (ofNetwork > 0) this.#byNetwork.set(network, ofNetwork);
    else this.#byNetwork.delete(network);
  }
}

type Arrival = {
  readonly body: Readable;
  readonly network: string;
  readonly startedAt: number;
  hasSlot: boolean;
};

/**
 * The bodies of anonymous clients that are arriving. After a second a body takes one of the few slots of its network.
 * After a minute it is refused.
 */
class AnonymousArrivals {
  readonly #runtime: Pick<Runtime, 'now' | 'sleep'>;
  /** In the order of their start. */
  readonly #arrivals = new Set<Arrival>();
  readonly #slotsTaken = new Map<string, number>();
  readonly #timer: EarliestTimer;

  constructor(runtime: Pick<Runtime, 'now' | 'sleep'>) {
    this.#runtime = runtime;
    this.#timer = new EarliestTimer(runtime, () => this.#check());
  }

  add(body: Readable, network: string): void {
    const arrival = { body, network, startedAt: this.#runtime.now(), hasSlot: false };
    this.#arrivals.add(arrival);
    this.#timer.fireAt(arrival.startedAt + anonymousBodies.slotAfterMs);
    body.once('close', () => this.#remove(arrival));
  }

  stop(): void {
    this.#timer.cancel();
  }

  #remove(arrival: Arrival): void {
    if (!this.#arrivals.delete(arrival) || !arrival.hasSlot) return;
    const taken = (this.#slotsTaken.get(arrival.network) ?? 0) - 1;
    if (taken > 0) this.#slotsTaken.set(arrival.network, taken);
    else this.#slotsTaken.delete(arrival.network);
  }

  #check(): void {
    const now = this.#runtime.now();
    for (const arrival of this.#arrivals) {
      const age = now - arrival.startedAt;
      if (age < anonymousBodies.slotAfterMs) break;
      if (age >= anonymousBodies.timeoutMs) this.#refuse(arrival, late());
      else if (!arrival.hasSlot && !this.#takeSlot(arrival)) this.#refuse(arrival, tooManyBodies());
    }
    for (const { startedAt, hasSlot } of this.#arrivals) {
      this.#timer.fireAt(startedAt + (hasSlot ? anonymousBodies.timeoutMs : anonymousBodies.slotAfterMs));
      if (!hasSlot) break;
    }
  }

  #takeSlot(arrival: Arrival): boolean {
    const taken = this.#slotsTaken.get(arrival.network) ?? 0;
    arrival.hasSlot = taken < anonymousBodies.slotsPerNetwork;
    if (arrival.hasSlot) this.#slotsTaken.set(arrival.network, taken + 1);
    return arrival.hasSlot;
  }

  #refuse(arrival: Arrival, error: ServiceError): void {
    this.#remove(arrival);
    arrival.body.destroy(error);
  }
}

function tooManyBodies(): ServiceError {
  return new ServiceError('unavailable', 'Too many request bodies are being read.', { retryAfterSeconds: 5 });
}

function late(): ServiceError {
  return new ServiceError('invalid', 'The request body did not arrive in time.');
}
