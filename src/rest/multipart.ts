// A multipart body → the fields that a route asks for.
import type { Multipart, MultipartFile } from '@fastify/multipart';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ServiceError, invalidField, tooLarge } from '../errors.ts';
import type { BodyLimits } from '../http/body-limits.ts';
import { asServiceError } from '../http/errors.ts';
import { truncate } from '../lib/text.ts';
import type { Runtime } from '../runtime.ts';
import { type Form, type Raw, type RequestedFields, maxParts, maxTextBytes } from './form.ts';

export type MultipartOptions = {
  readonly maxFileBytes: number;
  readonly bodyLimits: BodyLimits;
  readonly runtime: Pick<Runtime, 'yieldToEventLoop'>;
};

export class MultipartReader {
  readonly #maxFileBytes: number;
  readonly #bodyLimits: BodyLimits;
  readonly #runtime: MultipartOptions['runtime'];

  constructor({ maxFileBytes, bodyLimits, runtime }: MultipartOptions) {
    this.#maxFileBytes = maxFileBytes;
    this.#bodyLimits = bodyLimits;
    this.#runtime = runtime;
  }

  /** Every part is read as bytes, so that text is decoded in one way only. */
  get pluginOptions() {
    return {
      isPartAFile: () => true,
      limits: {
        parts: maxParts,
        fields: maxParts,
        files: maxParts,
        fileSize: Math.max(this.#maxFileBytes, maxTextBytes),
      },
      // Without this, the parser never ends when it skips the last part and that part fills its buffer.
      fileHwm: 1024 ** 2,
    };
  }

  async read(request: FastifyRequest, reply: FastifyReply, requested: RequestedFields): Promise<Form> {
    try {
      return await this.#bodyLimits.observe(request, reply, () => this.#readParts(request, requested));
    } catch (error) {
      // Without this, the rest of the body would stay on the connection, in front of the next request.
      request.raw.unpipe();
      request.raw.resume();
      throw multipartError(error);
    }
  }

  /** Browsers send an empty file part for a control without a file, so it counts as absent. */
  async #readParts(request: FastifyRequest, requested: RequestedFields): Promise<Form> {
    const form: Record<string, Raw> = {};
    const seen = new Set<string>();
    try {
      for await (const part of this.#parts(request)) {
        const name = part.fieldname;
        if (seen.has(name)) throw invalidField(truncate(name), 'is given more than once.');
        seen.add(name);
        if (part.type !== 'file') continue;
        if (!requested.has(name)) {
          part.file.resume();
          continue;
        }
        const isFile = (part.filename as string | undefined) !== undefined;
        const asFile = isFile && requested.get(name) === 'file';
        const bytes = await readPart(part.file, name, asFile ? this.#maxFileBytes : maxTextBytes);
        if (bytes.length === 0 && isFile) continue;
        form[name] = asFile
          ? { filename: part.filename, contentType: part.mimetype, bytes }
          : decodeUtf8(bytes, name);
      }
    } catch (error) {
      // The plugin skips a part named like a property of every object, and reports it after all other parts.
      if ((error as { code?: unknown }).code === 'FST_PROTO_VIOLATION') return form;
      throw error;
    }
    return form;
  }

  /** Without this, the plugin waits forever when the body ends within the headers of a part. */
  async *#parts(request: FastifyRequest): AsyncGenerator<Multipart> {
    const { raw } = request;
    const ended = raw.readableEnded ? Promise.resolve() : new Promise((resolve) => raw.once('end', resolve));
    const parts = request.parts()[Symbol.asyncIterator]();
    for (;;) {
      const wait = { isOver: false };
      const nothingLeft = this.#refuseWhenParsed(ended, wait);
      nothingLeft.catch(() => undefined);
      try {
        const next: IteratorResult<Multipart, unknown> = await Promise.race([parts.next(), nothingLeft]);
        if (next.done) return;
        wait.isOver = true;
        yield next.value;
      } finally {
        wait.isOver = true;
      }
    }
  }

  async #refuseWhenParsed(ended: Promise<unknown>, wait: { isOver: boolean }): Promise<never> {
    await ended;
    for (let turn = 0; !wait.isOver && turn < turnsToParse; turn += 1) await this.#runtime.yieldToEventLoop();
    throw malformed();
  }
}

/** After this many turns of the event loop, the parser has found everything in a body that has arrived. */
const turnsToParse = 20;

async function readPart(file: MultipartFile['file'], name: string, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of file as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw partTooLarge(name, most);
    chunks.push(chunk);
  }
  if (file.truncated) throw partTooLarge(name, most);
  return Buffer.concat(chunks);
}

function decodeUtf8(bytes: Buffer, field: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalidField(field, 'must be UTF-8 text.');
  }
}

const limitMessages: Readonly<Record<string, string>> = {
  FST_PARTS_LIMIT: `A form must have at most ${maxParts} parts.`,
  FST_FILES_LIMIT: `A form must have at most ${maxParts} parts.`,
  FST_REQ_FILE_TOO_LARGE: 'A part of the form is larger than a file may be.',
};

function multipartError(error: unknown): ServiceError {
  const message = limitMessages[String((error as { code?: unknown }).code)];
  if (message !== undefined) return tooLarge({ message });
  return asServiceError(error) ?? malformed();
}

function partTooLarge(field: string, most: number): ServiceError {
  return tooLarge({ field, message: `must be at most ${most} bytes.` });
}

function malformed(): ServiceError {
  return new ServiceError('invalid', 'The multipart body is malformed.');
}
