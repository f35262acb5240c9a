// Compares the answer that a page shows with the output of its commands. Ids, times, tokens, keys, ports and
// durations differ in every run and are masked on both sides. `…` in an answer of a page stands for omitted
// content.
import { isDeepStrictEqual } from 'node:util';
import type { Answer } from './pages.ts';

const masks: readonly (readonly [RegExp, string])[] = [
  [/\bwhsec_[A-Za-z0-9+/=]+/g, '<key>'],
  [/\bstw_[A-Za-z0-9_-]{43}/g, '<key>'],
  [/\bv1,[A-Za-z0-9+/]{43}=/g, '<signature>'],
  [/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<id>'],
  [/(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/g, '<token>'],
  [/\b1[0-9]{12}\b/g, '<time>'],
  [/\b1[0-9]{9}\b/g, '<seconds>'],
  [/\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( UTC|Z)?/g, '<time>'],
  [/\b(localhost|127\.0\.0\.1):[0-9]{2,5}\b/g, '$1:<port>'],
  [/\bElapsed: [0-9]+ milliseconds \(approximately [0-9]+ minutes\)/g, 'Elapsed: <duration>'],
  [/\b[0-9]+ hh, [0-9]+ min, [0-9]+ sec, [0-9]+ millisec/g, '<duration>'],
  [/("[A-Za-z]*Ms": ?)[0-9]+/g, '$1<ms>'],
  [/\b[0-9]+(\.[0-9]+)? ?m?s\b/g, '<duration>'],
  [/\bSteward\/[0-9]+\.[0-9]+\.[0-9]+/g, 'Steward/<version>'],
];

export function mask(text: string): string {
  return masks.reduce((masked, [pattern, name]) => masked.replace(pattern, name), text);
}

/** Whether the output of the commands is what the page shows. */
export function isAnswer(shown: Answer, output: string): boolean {
  if (shown.language === 'json') {
    const expected = parseAll(shown.text);
    const actual = parseAll(output);
    return expected !== undefined && actual !== undefined && matches(expected, actual);
  }
  const tidy = shown.language === 'xml' ? tidyXml : tidyText;
  return matchesText(tidy(mask(shown.text)), tidy(mask(output)));
}

function tidyText(text: string): string {
  return text.replace(/[ \t]+$/gm, '').trim();
}

/** Pages show XML indented. */
function tidyXml(text: string): string {
  return text.replace(/>\s+</g, '><').trim();
}

/** A line that is only `…` stands for any number of lines, none included. */
function matchesText(expected: string, actual: string): boolean {
  const escape = (text: string) => text.replace(/[$()*+.?[\\\]^{|}]/g, '\\$&');
  const anything = (text: string) => text.split('…').map(escape).join('[^]*?');
  const lines = expected.split(/\n…\n/).map(anything).join('\\n(?:[^]*?\\n)?');
  return new RegExp(`^${lines}$`).test(actual);
}

const omitted = '…';

/** Values are compared after masking; members and elements may be omitted where the page has `…`. */
function matches(expected: unknown, actual: unknown, key = ''): boolean {
  if (expected === omitted) return true;
  if (Array.isArray(expected)) return Array.isArray(actual) && matchesElements(expected, actual);
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null || Array.isArray(actual)) return false;
    const { [omitted]: hasMore, ...members } = expected as Record<string, unknown>;
    const others = actual as Record<string, unknown>;
    return (
      (hasMore !== undefined || Object.keys(others).every((name) => name in members)) &&
      Object.entries(members).every(([name, value]) => name in others && matches(value, others[name], name))
    );
  }
  if (typeof expected === 'string')
    return typeof actual === 'string' && matchesText(mask(expected), mask(actual));
  if (typeof expected === 'number')
    return typeof actual === 'number' && maskNumber(key, expected) === maskNumber(key, actual);
  return isDeepStrictEqual(expected, actual);
}

function matchesElements(expected: readonly unknown[], actual: readonly unknown[]): boolean {
  const [first, ...rest] = expected;
  if (expected.length === 0) return actual.length === 0;
  if (first === omitted)
    return matchesElements(rest, actual) || (actual.length > 0 && matchesElements(expected, actual.slice(1)));
  return actual.length > 0 && matches(first, actual[0]) && matchesElements(rest, actual.slice(1));
}

function maskNumber(key: string, value: number): string {
  return key.endsWith('Ms') ? '<ms>' : mask(String(value));
}

/** Parses JSON documents that follow one another. A bare `…` becomes a member or an element. */
function parseAll(text: string): unknown[] | undefined {
  const documents: string[] = [];
  let document = '';
  const open: string[] = [];
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],…]|[^"{}[\],…]+|"/g)) {
    if (token === '{' || token === '[') open.push(token);
    if (token === '}' || token === ']') open.pop();
    const isMember = open.at(-1) === '{' && /[{,]\s*$/.test(document);
    document += token !== omitted ? token : isMember ? '"…":"…"' : '"…"';
    if (open.length === 0 && document.trim() !== '') {
      documents.push(document);
      document = '';
    }
  }
  try {
    return [...documents, ...(document.trim() === '' ? [] : [document])].map(
      (one) => JSON.parse(one) as unknown,
    );
  } catch {
    return undefined;
  }
}
