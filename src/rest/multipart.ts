// A multipart body → one record of the fields asked for (contract 2).
import type { Multipart, MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { ServiceError, invalidField, tooLarge } from '../errors.ts';
import { truncate } from '../lib/text.ts';
import { type Form, type Raw, type Wanted, maxTextBytes } from './form.ts';
import { asServiceError } from './response.ts';

export type MultipartOptions = {
  readonly maxFileBytes: number;
  /** Told of all that is kept in memory; may throw. */
  readonly onBytes: (count: number) => void;
  readonly yieldToEventLoop: () => Promise<void>;
};

/**
 * Every part is read as bytes (the plugin is told that each is a file), so that text is decoded in one way only. A text field may
 * come as a file part; an empty file part counts as absent; parts nobody asked for are passed over.
 */
export async function readMultipart(
  request: FastifyRequest,
  wanted: Wanted,
  { maxFileBytes, onBytes, yieldToEventLoop }: MultipartOptions,
): Promise<Form> {
  const form: Record<string, Raw> = {};
  const seen = new Set<string>();
  try {
    for await (const part of partsOf(request, yieldToEventLoop)) {
      const name = part.fieldname;
      if (seen.has(name)) throw invalidField(truncate(name), 'is given more than once.');
      seen.add(name);
      if (part.type !== 'file') continue;
      if (!wanted.has(name)) {
        part.file.resume();
        continue;
      }
      const isFile = (part.filename as string | undefined) !== undefined;
      const asFile = isFile && wanted.get(name) === 'file';
      const bytes = await readPart(part.file, name, asFile ? maxFileBytes : maxTextBytes, onBytes);
      if (bytes.length === 0 && isFile) continue;
      form[name] = asFile
        ? { filename: part.filename, contentType: part.mimetype, bytes }
        : decodeUtf8(bytes, name);
    }
  } catch (error) {
    // What is left of the body would stand in the way of the next request.
    request.raw.unpipe();
    request.raw.resume();
    // The plugin passes over a name that means something to JavaScript, and says so when all others are read.
    if ((error as { code?: unknown }).code === 'FST_PROTO_VIOLATION') return form;
    throw asServiceError(error) ?? new ServiceError('invalid', 'The multipart body is malformed.');
  }
  return form;
}

/** So many turns after the whole body has come, what it holds has been found. */
const turnsToFind = 20;

/** The parts one after another. The plugin would wait for ever where the body ends among the headers of one. */
async function* partsOf(
  request: FastifyRequest,
  yieldToEventLoop: () => Promise<void>,
): AsyncGenerator<Multipart> {
  const { raw } = request;
  const hasCome = raw.readableEnded ? Promise.resolve() : new Promise((resolve) => raw.once('end', resolve));
  const parts = request.parts()[Symbol.asyncIterator]();
  for (;;) {
    const waiting = { is: true };
    const nothing = (async () => {
      await hasCome;
      for (let turn = 0; waiting.is && turn < turnsToFind; turn += 1) await yieldToEventLoop();
      throw new ServiceError('invalid', 'The multipart body is malformed.');
    })();
    nothing.catch(() => undefined);
    try {
      const next: IteratorResult<Multipart, unknown> = await Promise.race([parts.next(), nothing]);
      if (next.done) return;
      waiting.is = false;
      yield next.value;
    } finally {
      waiting.is = false;
    }
  }
}

/** No more is taken in than may be there. */
async function readPart(
  file: MultipartFile['file'],
  name: string,
  most: number,
  onBytes: (count: number) => void,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of file as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > most) throw tooLarge({ field: name, message: `must be at most ${most} bytes.` });
    onBytes(chunk.length);
    chunks.push(chunk);
  }
  if (file.truncated) throw tooLarge({ field: name, message: `must be at most ${most} bytes.` });
  return Buffer.concat(chunks);
}

function decodeUtf8(bytes: Buffer, field: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalidField(field, 'must be UTF-8 text.');
  }
}
