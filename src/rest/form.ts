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

/** The fields that a route asks for, and the names of the others in the order given. */
export type GivenForm = { readonly form: Form; readonly unknown: readonly string[] };

const nothing: GivenForm = { form: emptyForm, unknown: [] };

export function parseUrlencoded(encoded: string, requested: RequestedFields): Form {
  return readUrlencoded(encoded, requested).form;
}

/** Refuses text that cannot be decoded, where browsers would guess. */
export function readUrlencoded(encoded: string, requested: RequestedFields): GivenForm {
  if (encoded === '') return nothing;
  if (encoded.includes('\uFFFD')) throw invalid([{ message: 'The form is not UTF-8 text.' }]);
  return collect(parsePairs(encoded), requested);
}

/** Logs and browser histories contain addresses. */
const secretNames = new Set(['password', 'newPassword', 'signatureKey', 'key']);

/** The fields of a POST. One that stands in the query and in the body must have the same value there. */
export function joinForms(query: GivenForm, body: GivenForm): GivenForm {
  if (query === nothing) return body;
  const names = [...Object.keys(query.form), ...query.unknown];
  const problems = names.flatMap((field): Problem[] => {
    if (secretNames.has(field))
      return [{ field, message: 'must be sent in the body, never in the address.' }];
    const [inQuery, inBody] = [query.form[field], body.form[field]];
    if (inBody === undefined || inBody === inQuery) return [];
    return [{ field: truncate(field), message: 'has another value in the query than in the body.' }];
  });
  if (problems.length > 0) throw invalid(problems.slice(0, maxParts));
  return {
    form: { ...query.form, ...body.form },
    unknown: [...new Set([...query.unknown, ...body.unknown])],
  };
}

function collect(pairs: readonly Pair[], requested: RequestedFields): GivenForm {
  const form: Record<string, Raw> = {};
  const unknown: string[] = [];
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
    else unknown.push(name);
    seen.add(name);
  }
  if (problems.length === 0) return { form, unknown };
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
