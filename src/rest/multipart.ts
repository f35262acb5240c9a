// A multipart body → the fields that a route asks for.
import type { Multipart, MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { asServiceError } from '../http/errors.ts';
import { ServiceError, invalidField, tooLarge } from '../lib/errors.ts';
import { truncate } from '../lib/text.ts';
import { type GivenForm, type Raw, type RequestedFields, maxParts, maxTextBytes } from './form.ts';

/** Every part is read as bytes, so that text is decoded in one way only. */
export function multipartOptions(maxFileBytes: number) {
  return {
    isPartAFile: () => true,
    limits: {
      parts: maxParts,
      fields: maxParts,
      files: maxParts,
      fileSize: Math.max(maxFileBytes, maxTextBytes),
    },
    // Without this, the parser never ends when it skips the last part and that part fills its buffer.
    fileHwm: 1024 ** 2,
  };
}

export async function readMultipart(
  request: FastifyRequest,
  requested: RequestedFields,
  maxFileBytes: number,
): Promise<GivenForm> {
  const body = request.countedBody ?? request.raw;
  const form: Record<string, Raw> = {};
  const unknown: string[] = [];
  try {
    await readParts(withRaw(request, body), requested, maxFileBytes, { form, unknown });
  } catch (error) {
    // The plugin skips a part named like a property of every object, and reports it after all other parts.
    if ((error as { code?: unknown }).code === 'FST_PROTO_VIOLATION') return { form, unknown };
    // Without this, the rest of the body would stay on the connection, in front of the next request.
    body.unpipe();
    body.resume();
    throw multipartError(error);
  }
  return { form, unknown };
}

/** Browsers send an empty file part for a control without a file, so it counts as absent. */
async function readParts(
  request: FastifyRequest,
  requested: RequestedFields,
  maxFileBytes: number,
  { form, unknown }: { form: Record<string, Raw>; unknown: string[] },
): Promise<void> {
  const seen = new Set<string>();
  for await (const part of partsOf(request)) {
    const name = part.fieldname;
    if (seen.has(name)) throw invalidField(truncate(name), 'is given more than once.');
    seen.add(name);
    if (part.type !== 'file') continue;
    if (!requested.has(name)) {
      unknown.push(name);
      part.file.resume();
      continue;
    }
    const isFile = (part.filename as string | undefined) !== undefined;
    const asFile = isFile && requested.get(name) === 'file';
    const bytes = await readPart(part.file, name, asFile ? maxFileBytes : maxTextBytes);
    if (bytes.length === 0 && isFile) continue;
    form[name] = asFile
      ? { filename: part.filename, contentType: part.mimetype, bytes }
      : decodeUtf8(bytes, name);
  }
}

/** @fastify/multipart 10.1.7 reads `request.raw` and the headers there. It ignores the stream that `preParsing` has returned. */
function withRaw(request: FastifyRequest, body: Readable): FastifyRequest {
  if (body === request.raw) return request;
  const raw = Object.assign(body, { headers: request.raw.headers });
  return Object.create(request, { raw: { value: raw } }) as FastifyRequest;
}

/** @fastify/busboy 3.2.5 never ends a form with a part whose headers do not end. */
async function* partsOf(request: FastifyRequest): AsyncGenerator<Multipart> {
  const { raw } = request;
  const ended = raw.readableEnded ? Promise.resolve() : new Promise((resolve) => raw.once('end', resolve));
  const parts = request.parts();
  for (;;) {
    const next = parts.next();
    // The parser uses no timers and no I/O. If it has no part one turn after the end of the body, it will never
    // have one.
    const nothingLeft = ended.then(nextTurn).then(() => Promise.reject(malformed()));
    nothingLeft.catch(() => undefined);
    const part: IteratorResult<Multipart, unknown> = await Promise.race([next, nothingLeft]);
    if (part.done) return;
    yield part.value;
  }
}

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
