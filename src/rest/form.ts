// A query or an urlencoded body → one record of the fields asked for (contract 2).
import { type Problem, formatProblem, invalid, tooLarge } from '../errors.ts';
import { truncate } from '../lib/text.ts';

/** A file part of a form. */
export type FormFile = { readonly filename: string; readonly contentType: string; readonly bytes: Buffer };

/** What a form holds under a name: text, or for a field that asks for one a file. */
export type Raw = string | FormFile | undefined;

/** What was asked for, and nothing else: so every name in it is one of ours. */
export type Form = Readonly<Record<string, Raw>>;

/** The fields asked for, and whether each may be a file. Others are passed over. */
export type Wanted = ReadonlyMap<string, 'text' | 'file'>;

/** The form of most requests that read. */
export const noFields: Form = Object.freeze({});

export function textIn(form: Form, name: string): string | undefined {
  const value = form[name];
  return typeof value === 'string' ? value : undefined;
}

export const maxTextBytes = 1024 ** 2;
export const maxParts = 64;
const maxFields = 1000;

/** Strict where browsers are lenient: what cannot be decoded is refused, not guessed at. */
export function parseUrlencoded(encoded: string, wanted: Wanted): Form {
  if (encoded === '') return noFields;
  if (encoded.includes('\uFFFD')) throw invalid([{ message: 'The form is not UTF-8 text.' }]);
  return collect(pairsOf(encoded), wanted);
}

/** The query of a POST is read for `f`; at what else is asked for it is only glanced. */
export function peekQuery(encoded: string, wanted: Wanted): Form {
  if (encoded === '') return noFields;
  const pairs = pairsOf(encoded);
  const form = collect(
    pairs.filter(({ name }) => name === 'f'),
    wanted,
  );
  for (const { name, value } of pairs) if (name !== undefined && wanted.has(name)) form[name] ??= value;
  return form;
}

function collect(pairs: readonly Pair[], wanted: Wanted): Record<string, Raw> {
  const form: Record<string, Raw> = {};
  const seen = new Set<string | undefined>();
  const problems = new Map<string, Problem>();
  const report = (problem: Problem) => problems.set(formatProblem(problem), problem);
  for (const { name, value } of pairs) {
    if (name === undefined) report({ field: 'A field name', message: notDecodable });
    else if (seen.has(name)) report({ field: truncate(name), message: 'is given more than once.' });
    else if (value === undefined) report({ field: truncate(name), message: notDecodable });
    else if (wanted.has(name)) form[name] = value;
    seen.add(name);
  }
  if (problems.size > 0) throw invalid([...problems.values()].slice(0, maxParts));
  return form;
}

/** What cannot be decoded is undefined. */
type Pair = { readonly name: string | undefined; readonly value: string | undefined };

const notDecodable = 'must be percent-encoded UTF-8 text.';

function pairsOf(encoded: string): Pair[] {
  if (hasMoreThan(encoded, '&', maxFields))
    throw tooLarge({ message: `The form must have at most ${maxFields} fields.` });
  const pairs: Pair[] = [];
  let start = 0;
  while (start < encoded.length) {
    const mark = encoded.indexOf('&', start);
    const pair = encoded.slice(start, mark < 0 ? undefined : mark);
    start += pair.length + 1;
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    pairs.push({
      name: decode(equals < 0 ? pair : pair.slice(0, equals)),
      value: decode(equals < 0 ? '' : pair.slice(equals + 1)),
    });
  }
  return pairs;
}

function decode(encoded: string): string | undefined {
  const spaced = encoded.includes('+') ? encoded.replaceAll('+', ' ') : encoded;
  if (!spaced.includes('%')) return spaced;
  // What can be seen without an error is: there may be a thousand of them.
  if (/%(?![0-9A-Fa-f]{2})/.test(spaced)) return undefined;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined;
  }
}

function hasMoreThan(text: string, mark: string, most: number): boolean {
  let at = -1;
  for (let count = 0; count <= most; count += 1) {
    at = text.indexOf(mark, at + 1);
    if (at < 0) return false;
  }
  return true;
}
