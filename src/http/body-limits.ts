// The limits on all request bodies together. A small body that arrives with its headers is not counted. Every other
// body counts in bytes until its request is answered. Bodies of signed-in callers have a budget of their own, so that
// others cannot use it up. Bodies of others share theirs fairly between networks (`network-limits.ts`).
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Readable, Transform } from 'node:stream';
import { networkOf } from '../lib/address.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { onAnswered } from './answer-limits.ts';
import { clientAddress } from './client-address.ts';
import {
  anonymousBodies,
  maxBodyBytes,
  maxMergedBytes,
  maxUncountedBytes,
  minAverageChunkBytes,
  refusedAverageChunkBytes,
  signedInBodies,
} from './limits.ts';
import { AnonymousArrivals, ByteBudget, tooManyBodies } from './network-limits.ts';

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
  const chunks = new ChunkCounter(isChunked);
  const merger = new Merger();
  const body = new Transform({
    highWaterMark: maxMergedBytes,
    transform(chunk: Buffer, _encoding, done) {
      const problem = chunks.add(chunk.length) ?? onBytes(chunk.length);
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

/** Every chunk costs processor time, whatever its size. */
class ChunkCounter {
  readonly #isChunked: boolean;
  #chunks = 0;
  #bytes = 0;

  constructor(isChunked: boolean) {
    this.#isChunked = isChunked;
  }

  /** Returns why the body is refused, if its chunks are too small. */
  add(bytes: number): ServiceError | undefined {
    this.#chunks += 1;
    this.#bytes += bytes;
    const areTooSmall = this.#bytes < this.#chunks * refusedAverageChunkBytes;
    return this.#isChunked && areTooSmall && this.#bytes > maxMergedBytes ? chunksTooSmall() : undefined;
  }
}

function chunksTooSmall(): ServiceError {
  return new ServiceError('invalid', 'The request body cannot be read.', {
    problems: [
      {
        message: `The chunks of a body over ${maxMergedBytes} bytes must have at least ${minAverageChunkBytes} bytes on average.`,
      },
    ],
  });
}
