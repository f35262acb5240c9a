// Sends answers as JSON or page, as the client prefers, and compresses them for clients that accept gzip. Bytes that
// many answers share are compressed once, when the first client asks for them. Pages are not compressed: they hold
// form tokens beside texts that strangers can choose, and the length of a compressed page would reveal a token to an
// observer who changes those texts. `@fastify/compress` would compress a shared answer for each request.
import type { FastifyReply } from 'fastify';
import Negotiator from 'negotiator';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { createGzip, gzip } from 'node:zlib';
import { largeAnswers } from './limits.ts';

/** Shorter texts are hardly smaller after compression. */
const minBytes = 1024;

const compressedHeaders = { 'content-encoding': 'gzip', vary: 'accept-encoding' };

export type Body = string | Buffer | Readable;

/** The bodies of answers that many clients get. */
export class SharedAnswers {
  readonly #joined = new WeakMap<Buffer, Buffer>();
  readonly #compressed = new WeakMap<Buffer, Promise<Buffer>>();

  /** Adds the headers of the body too. Equal keys have equal parts. Without a key, the body is not compressed. */
  bodyFor(reply: FastifyReply, parts: readonly Buffer[], key: Buffer | undefined): Body | Promise<Body> {
    const bytes = parts.reduce((sum, { length }) => sum + length, 0);
    if (key === undefined) return plainBody(reply, parts, bytes);
    if (bytes > minBytes) {
      // A cache must not send this answer to every client.
      void reply.header('vary', compressedHeaders.vary);
      if (acceptsGzip(reply)) return this.#compress(reply, parts, key, bytes);
    }
    const body = this.#joined.get(key) ?? plainBody(reply, parts, bytes);
    if (Buffer.isBuffer(body)) this.#joined.set(key, body);
    return body;
  }

  async #compress(reply: FastifyReply, parts: readonly Buffer[], key: Buffer, bytes: number): Promise<Body> {
    const compressed = this.#compressed.get(key) ?? buffer(Readable.from(parts).pipe(createGzip()));
    this.#compressed.set(key, compressed);
    try {
      const body = await compressed;
      void reply.headers(compressedHeaders);
      return body;
    } catch {
      this.#compressed.delete(key);
      return plainBody(reply, parts, bytes);
    }
  }
}

/** A large answer is not copied for each client. A stream of several parts costs more than one buffer. */
function plainBody(reply: FastifyReply, parts: readonly Buffer[], bytes: number): Body {
  if (parts.length === 1 && parts[0]) return parts[0];
  if (bytes <= largeAnswers.minBytes) return Buffer.concat(parts);
  for (const part of parts) reply.server.answersInMemory.hold(reply, part);
  void reply.header('content-length', bytes);
  return Readable.from(parts);
}

function acceptsGzip({ request: { headers } }: FastifyReply): boolean {
  // Most programs send no such coding.
  if (!/gzip|\*/i.test(headers['accept-encoding'] ?? '')) return false;
  const negotiator = new Negotiator({ headers });
  return negotiator.encoding(['gzip', 'identity']) === 'gzip';
}

/** Every JSON answer carries these. */
export const jsonHeaders = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
};

export function sendJson(reply: FastifyReply, status: number, body: string | Buffer | object): FastifyReply {
  const isSerialized = typeof body === 'string' || Buffer.isBuffer(body);
  const answer = jsonBody(reply.code(status), isSerialized ? body : JSON.stringify(body));
  if (!(answer instanceof Promise)) return reply.send(answer);
  void answer.then((bytes) => reply.send(bytes));
  return reply;
}

/** Adds the headers of a JSON answer, and returns its body. */
export function jsonBody(reply: FastifyReply, text: string | Buffer): Body | Promise<Body> {
  void reply.headers(jsonHeaders);
  if (Buffer.byteLength(text) <= minBytes || !acceptsGzip(reply)) return text;
  return promisify(gzip)(text).then(
    (bytes) => {
      void reply.headers(compressedHeaders);
      return bytes;
    },
    () => text,
  );
}

/** The order of the types matters: a client that accepts anything gets JSON. */
export function prefersHtml(accept: string | undefined): boolean {
  // Most programs send one of these.
  if (accept === undefined || accept === '*/*') return false;
  const preferred = new Negotiator({ headers: { accept } }).mediaTypes(['application/json', 'text/html']);
  return preferred[0] === 'text/html';
}
