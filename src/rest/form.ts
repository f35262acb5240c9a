// A query or a urlencoded body → the fields that a route asks for.
import { maxBodyBytes } from '../http/limits.ts';
import { type Problem, formatProblem, invalid, tooLarge } from '../lib/errors.ts';
import { truncate } from '../lib/text.ts';

export type FormFile = { readonly filename: string; readonly contentType: string; readonly bytes: Buffer };

export type Raw = string | FormFile | undefined;

export type Form = Readonly<Record<string, Raw>>;

export type RequestedFields = {
  readonly has: (name: string) => boolean;
  readonly get: (name: string) => 'text' | 'file' | undefined;
};

export const emptyForm: Form = Object.freeze({});

export function textIn(form: Form | undefined, name: string): string | undefined {
  const value = form?.[name];
  return typeof value === 'string' ? value : undefined;
}

export const maxTextBytes = maxBodyBytes;
export const maxParts = 64;
const maxFields = 1000;

/** Refuses text that cannot be decoded, where browsers would guess. */
export function parseUrlencoded(encoded: string, requested: RequestedFields): Form {
  if (encoded === '') return emptyForm;
  if (encoded.includes('\uFFFD')) throw invalid([{ message: 'The form is not UTF-8 text.' }]);
  return collect(parsePairs(encoded), requested);
}

/** The query of a POST counts for `f` only. Its other fields are returned too, so that an operation can refuse them. */
export function parsePostQuery(encoded: string, requested: RequestedFields): Form {
  if (encoded === '') return emptyForm;
  const pairs = parsePairs(encoded);
  const form = collect(
    pairs.filter(({ name }) => name === 'f'),
    requested,
  );
  for (const { name, value } of pairs)
    if (name !== undefined && requested.has(name)) form[name] ??= decode(value);
  return form;
}

function collect(pairs: readonly Pair[], requested: RequestedFields): Record<string, Raw> {
  const form: Record<string, Raw> = {};
  const seen = new Set<string | undefined>();
  const problems: Problem[] = [];
  for (const { name, value } of pairs) {
    if (name === undefined) problems.push({ field: 'A field name', message: notDecodable });
    else if (seen.has(name)) problems.push({ field: truncate(name), message: 'is given more than once.' });
    else if (requested.has(name)) {
      const text = decode(value);
      if (text === undefined) problems.push({ field: truncate(name), message: notDecodable });
      else form[name] = text;
    } else if (!isPercentEncoded(value)) problems.push({ field: truncate(name), message: notDecodable });
    seen.add(name);
  }
  if (problems.length === 0) return form;
  const distinct = new Map(problems.map((problem) => [formatProblem(problem), problem]));
  throw invalid([...distinct.values()].slice(0, maxParts));
}

/**
 * A name that cannot be decoded is undefined. The value is still encoded: only values that a route asks for are
 * decoded.
 */
type Pair = { readonly name: string | undefined; readonly value: string };

const notDecodable = 'must be percent-encoded UTF-8 text.';

function parsePairs(encoded: string): Pair[] {
  if (hasMoreThan(encoded, '&', maxFields))
    throw tooLarge({ message: `The form must have at most ${maxFields} fields.` });
  const pairs: Pair[] = [];
  for (const pair of encoded.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? '' : pair.slice(equals + 1);
    pairs.push({ name, value });
  }
  return pairs;
}

function isPercentEncoded(encoded: string): boolean {
  return !/%(?![0-9A-Fa-f]{2})/.test(encoded);
}

/**
 * The result is a string of its own: in V8, a part of a string keeps the whole string in memory, so that a stored value
 * would keep the body of its request.
 */
function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.includes('+') ? plusToSpace(encoded) : encoded);
  } catch {
    return undefined;
  }
}

const plus = 0x2b;
const space = 0x20;

/** Replacing each `+` in a string of 1 MiB would take twenty times as long. */
function plusToSpace(encoded: string): string {
  const bytes = Buffer.from(encoded);
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === plus) bytes[at] = space;
  return bytes.toString();
}

function hasMoreThan(text: string, mark: string, most: number): boolean {
  let at = -1;
  for (let count = 0; count <= most; count += 1) {
    at = text.indexOf(mark, at + 1);
    if (at < 0) return false;
  }
  return true;
}
