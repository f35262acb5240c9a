// A query, an urlencoded or a multipart body → one record of the fields asked for (contract 2).
import type { FastifyRequest } from 'fastify';
import { ServiceError, invalid } from '../errors.ts';
import { asServiceError } from './reply.ts';

export type Form = Readonly<Record<string, string | undefined>>;

export const maxTextBytes = 1024 ** 2;
export const maxParts = 64;

/** Strict where browsers are lenient: what cannot be decoded is refused, not guessed at. */
export function parseUrlencoded(encoded: string, wanted: ReadonlySet<string>): Form {
  const form = emptyForm();
  const seen = new Set<string>();
  if (encoded.includes('\uFFFD')) throw invalid(['The form is not UTF-8 text.']);
  for (const pair of encoded.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals), 'A field name');
    refuseRepeat(seen, name);
    const value = decode(equals < 0 ? '' : pair.slice(equals + 1), name);
    if (wanted.has(name)) form[name] = value;
  }
  return form;
}

function decode(encoded: string, what: string): string {
  try {
    return decodeURIComponent(encoded.replaceAll('+', ' '));
  } catch {
    throw invalid([`${what}: must be percent-encoded UTF-8 text.`]);
  }
}

/** A text field may come as a file part; an empty file part counts as absent; parts nobody asked for are passed over. */
export async function readMultipart(request: FastifyRequest, wanted: ReadonlySet<string>): Promise<Form> {
  const form = emptyForm();
  const seen = new Set<string>();
  try {
    for await (const part of request.parts()) {
      const name = part.fieldname;
      refuseRepeat(seen, name);
      if (part.type === 'field') {
        if (part.valueTruncated) throw tooLarge(name);
        // The parser has already read a part that calls itself JSON; the field is its text.
        const text = typeof part.value === 'string' ? part.value : JSON.stringify(part.value);
        if (wanted.has(name)) form[name] = text;
      } else if (wanted.has(name)) {
        const bytes = await part.toBuffer();
        if (bytes.length > maxTextBytes) throw tooLarge(name);
        if (bytes.length > 0) form[name] = decodeUtf8(bytes, name);
      } else {
        part.file.resume();
      }
    }
  } catch (error) {
    throw asServiceError(error) ?? new ServiceError('invalid', 'The multipart body is malformed.');
  }
  return form;
}

function refuseRepeat(seen: Set<string>, name: string): void {
  if (seen.has(name)) throw invalid([`${name.slice(0, 64)}: is given more than once.`]);
  seen.add(name);
}

function tooLarge(field: string): ServiceError {
  return new ServiceError('too-large', 'The request is too large.', {
    details: [`${field}: must be at most ${maxTextBytes} bytes.`],
  });
}

function decodeUtf8(bytes: Buffer, field: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw invalid([`${field}: must be UTF-8 text.`]);
  }
}

/** Without a prototype, so that no field name means anything but itself. */
function emptyForm(): Record<string, string | undefined> {
  return Object.create(null) as Record<string, string | undefined>;
}
