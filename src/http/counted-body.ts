// Counts the bytes of a body that is being received, and merges small chunks into large buffers: a million chunks of
// one byte would cost 400 MB.
import { type Readable, Transform } from 'node:stream';
import type { ServiceError } from '../lib/errors.ts';
import { unreadableBody } from './errors.ts';

/** Smaller chunks of a body are merged into buffers of this size. */
const maxMergedBytes = 64 * 1024;

/** Holds for bodies over `maxMergedBytes`. Every chunk costs processor time, whatever its size. */
const minAverageChunkBytes = 64;

/** Slightly less than promised, because Node reports a chunk that arrives in two segments as two. */
const refusedAverageChunkBytes = 60;

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
