// Compresses answers for clients that accept gzip. Bytes that many answers share are compressed once, when the first client asks for them;
// @fastify/compress compresses the JSON of a single answer (json.ts). Pages are not compressed: they hold form tokens beside texts that
// strangers can choose, and the length of a compressed page would reveal a token to an observer who changes those texts.
import type { FastifyReply } from 'fastify';
import Negotiator from 'negotiator';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createGzip } from 'node:zlib';

/** Shorter texts are hardly smaller after compression. */
const minBytes = 1024;

/** A larger answer is not copied for each request: clients that do not read it would fill the memory. */
const maxCopiedBytes = 64 * 1024;

export const compressOptions = { global: false, encodings: ['gzip' as const], threshold: minBytes };

export class SharedAnswers {
  readonly #compressed = new WeakMap<Buffer, Promise<Buffer>>();

  /** Equal keys have equal parts. Without a key, the answer is not compressed. */
  async send(reply: FastifyReply, parts: readonly Buffer[], key: Buffer | undefined): Promise<FastifyReply> {
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    if (key !== undefined && bytes > minBytes) {
      void reply.header('vary', 'accept-encoding');
      if (acceptsGzip(reply.request.headers['accept-encoding']))
        return reply.header('content-encoding', 'gzip').send(await this.#compress(parts, key));
    }
    return reply
      .header('content-length', bytes)
      .send(bytes <= maxCopiedBytes ? Buffer.concat(parts) : Readable.from(parts));
  }

  #compress(parts: readonly Buffer[], key: Buffer): Promise<Buffer> {
    const compressed = this.#compressed.get(key) ?? buffer(Readable.from(parts).pipe(createGzip()));
    this.#compressed.set(key, compressed);
    return compressed;
  }
}

function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false;
  const negotiator = new Negotiator({ headers: { 'accept-encoding': header } });
  return negotiator.encoding(['gzip', 'identity']) === 'gzip';
}
