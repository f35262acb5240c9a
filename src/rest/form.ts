// A query, an urlencoded or a multipart body → one record of the fields asked for (contract 2).
import type { Multipart, MultipartFile } from '@fastify/multipart';
import type { FastifyRequest } from 'fastify';
import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServiceError, invalid } from '../errors.ts';
import type { Raw } from './fields.ts';
import { asServiceError, tooLarge } from './reply.ts';

export type Form = Readonly<Record<string, Raw>>;

/** The fields asked for, and whether each may be a file. Others are passed over. */
export type Wanted = ReadonlyMap<string, 'text' | 'file'>;

export function textIn(form: Form, name: string): string | undefined {
  const value = form[name];
  return typeof value === 'string' ? value : undefined;
}

export const maxTextBytes = 1024 ** 2;
export const maxParts = 64;
const maxFields = 1000;

/** Strict where browsers are lenient: what cannot be decoded is refused, not guessed at. */
export function parseUrlencoded(encoded: string, wanted: Wanted): Form {
  if (encoded.includes('\uFFFD')) throw invalid(['The form is not UTF-8 text.']);
  if (hasMoreThan(encoded, '&', maxFields)) throw tooLarge(`The form must have at most ${maxFields} fields.`);
  return collect(pairsOf(encoded), wanted);
}

/** Some fields of a query whose others are none of our concern. */
export function peekQuery(encoded: string, wanted: Wanted): Form {
  return collect(
    pairsOf(encoded).filter(({ name }) => name !== undefined && wanted.has(name)),
    wanted,
  );
}

function collect(pairs: readonly Pair[], wanted: Wanted): Form {
  const form = emptyForm();
  const seen = new Set<string>();
  const problems: string[] = [];
  for (const { name, value } of pairs) {
    const problem = seen.has(name ?? '') ? 'is given more than once.' : value === undefined && notDecodable;
    if (name === undefined) problems.push(`A field name: ${notDecodable}`);
    else if (problem) problems.push(`${cut(name)}: ${problem}`);
    else if (wanted.has(name)) form[name] = value;
    if (name !== undefined) seen.add(name);
  }
  if (problems.length > 0) throw invalid([...new Set(problems)].slice(0, maxParts));
  return form;
}

/** What cannot be decoded is undefined. */
type Pair = { readonly name: string | undefined; readonly value: string | undefined };

const notDecodable = 'must be percent-encoded UTF-8 text.';

function pairsOf(encoded: string): Pair[] {
  return encoded
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      return {
        name: decode(equals < 0 ? pair : pair.slice(0, equals)),
        value: decode(equals < 0 ? '' : pair.slice(equals + 1)),
      };
    });
}

function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/**
 * Every part is read as bytes (the plugin is told that each is a file), so that text is decoded in one way only. A text field may
 * come as a file part; an empty file part counts as absent; parts nobody asked for are passed over.
 */
export async function readMultipart(
  request: FastifyRequest,
  wanted: Wanted,
  { maxFileBytes, onBytes }: { maxFileBytes: number; onBytes: (count: number) => void },
): Promise<Form> {
  const form = emptyForm();
  const seen = new Set<string>();
  try {
    for await (const part of partsOf(request)) {
      const name = part.fieldname;
      if (seen.has(name)) throw invalid([`${cut(name)}: is given more than once.`]);
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
const turnsToFind = 20_000;

/** The parts one after another. The plugin would wait for ever where the body ends among the headers of one. */
async function* partsOf(request: FastifyRequest): AsyncGenerator<Multipart> {
  const parts = request.parts()[Symbol.asyncIterator]();
  for (;;) {
    const waiting = { is: true };
    const nothing = (async () => {
      if (!request.raw.readableEnded) await once(request.raw, 'end');
      for (let turn = 0; waiting.is && turn < turnsToFind; turn += 1) await nextTurn();
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
    if (size > most) throw tooLarge(`${name}: must be at most ${most} bytes.`);
    onBytes(chunk.length);
    chunks.push(chunk);
  }
  if (file.truncated) throw tooLarge(`${name}: must be at most ${most} bytes.`);
  return Buffer.concat(chunks);
}

function hasMoreThan(text: string, mark: string, most: number): boolean {
  let at = -1;
  for (let count = 0; count <= most; count += 1) {
    at = text.indexOf(mark, at + 1);
    if (at < 0) return false;
  }
  return true;
}

function decodeUtf8(bytes: Buffer, field: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw invalid([`${field}: must be UTF-8 text.`]);
  }
}

/** As much of a name as a message needs. */
function cut(name: string): string {
  return Array.from(name.slice(0, 65)).slice(0, 64).join('');
}

/** Without a prototype, so that no field name means anything but itself. */
function emptyForm(): Record<string, Raw> {
  return Object.create(null) as Record<string, Raw>;
}
