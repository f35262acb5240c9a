// The body of a request as few, large buffers, and a count of its HTTP chunks, which must not be too small.
import { Readable } from 'node:stream';
import { ServiceError } from '../errors.ts';
import { maxMergedBytes, minAverageChunkBytes, refusedAverageChunkBytes } from './limits.ts';

export type RequestBodyOptions = {
  /** Without the transfer coding, the network alone decides how the body is cut. */
  readonly isChunked: boolean;
  readonly onBytes: (count: number) => void;
  readonly onRefused: () => void;
};

/** Node creates a Buffer object of some hundred bytes for every chunk, even for one of a single byte. */
export class RequestBody extends Readable {
  readonly #source: Readable;
  readonly #options: RequestBodyOptions;
  readonly #chunks: ChunkCounter;
  #isStarted = false;
  #merged = Buffer.alloc(0);
  #mergedBytes = 0;

  constructor(source: Readable, options: RequestBodyOptions) {
    super({ highWaterMark: maxMergedBytes });
    this.#source = source;
    this.#options = options;
    this.#chunks = new ChunkCounter(options.isChunked);
    // Without this, a client that breaks off after its request is refused would cause an uncaught error.
    this.on('error', () => undefined);
  }

  refuse(error: ServiceError): void {
    this.#options.onRefused();
    this.destroy(error);
  }

  /** Nothing is read before it is asked for, so that Node discards the body of a request that is refused before. */
  override _read(): void {
    if (!this.#isStarted) {
      this.#isStarted = true;
      this.#source.on('data', this.#onData).on('end', this.#onEnd);
      this.#source.on('error', this.#onBreak).on('close', this.#onBreak);
    }
    this.#source.resume();
  }

  /** The rest of a refused body is discarded. Otherwise it would stay on the connection, in front of the next request. */
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.#isStarted) {
      this.#source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onBreak);
      this.#source.resume();
    }
    done(error);
  }

  readonly #onData = (chunk: Buffer): void => {
    const problem = this.#chunks.add(chunk.length);
    if (problem) {
      this.refuse(problem);
      return;
    }
    this.#options.onBytes(chunk.length);
    this.#append(chunk);
  };

  readonly #onEnd = (): void => {
    this.#flush();
    this.push(null);
  };

  /** After the end, `close` says nothing new. */
  readonly #onBreak = (error?: Error): void => {
    if (!this.#source.readableEnded) this.destroy(error ?? new Error('The request was aborted.'));
  };

  #append(chunk: Buffer): void {
    if (this.#mergedBytes + chunk.length > maxMergedBytes) this.#flush();
    if (chunk.length >= maxMergedBytes) {
      this.#push(chunk);
      return;
    }
    const needed = this.#mergedBytes + chunk.length;
    if (needed > this.#merged.length) {
      const larger = Buffer.allocUnsafe(Math.min(2 * needed, maxMergedBytes));
      this.#merged.copy(larger, 0, 0, this.#mergedBytes);
      this.#merged = larger;
    }
    chunk.copy(this.#merged, this.#mergedBytes);
    this.#mergedBytes = needed;
  }

  #flush(): void {
    if (this.#mergedBytes === 0) return;
    this.#push(this.#merged.subarray(0, this.#mergedBytes));
    this.#merged = Buffer.alloc(0);
    this.#mergedBytes = 0;
  }

  #push(buffer: Buffer): void {
    if (!this.push(buffer)) this.#source.pause();
  }
}

/** Every chunk costs processor time, whatever its size. */
export class ChunkCounter {
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
