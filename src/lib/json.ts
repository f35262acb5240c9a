// JSON as a type, JSON that is serialized once for many answers, its version, and limits on its size.
import { hash } from 'node:crypto';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** JSON that nobody changes. */
export type DeepReadonly<T> = T extends (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** Stored records are plain JSON, although their types do not say so. */
export function asJson(value: object): { readonly [key: string]: Json } {
  return value as { readonly [key: string]: Json };
}

/** Undefined if the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The version of a value that does not contain the time of its last change. Equal values have the same version. */
export function versionOf(value: object): number {
  return hash('sha256', JSON.stringify(value), 'buffer').readUIntBE(0, 6);
}

/** JSON whose text many answers share. `space` is the indentation. */
export class SharedJson {
  readonly json: () => Json;
  readonly bytes: (space: number) => Buffer | Promise<Buffer>;

  constructor(json: () => Json, bytes: (space: number) => Buffer | Promise<Buffer>) {
    this.json = json;
    this.bytes = bytes;
  }

  /** Serializes the value when the first answer needs it. */
  static of(json: Json): SharedJson {
    const texts = new Map<number, Buffer>();
    return new SharedJson(
      () => json,
      (space) => {
        const bytes = texts.get(space) ?? Buffer.from(toText(json, space));
        texts.set(space, bytes);
        return bytes;
      },
    );
  }
}

export function plainJson(answer: Json | SharedJson): Json {
  return answer instanceof SharedJson ? answer.json() : answer;
}

/** Indented text ends with a line break. */
export function toText(json: Json, space: number): string {
  return space === 0 ? JSON.stringify(json) : `${JSON.stringify(json, null, space)}\n`;
}

/** The same text in parts, for a value whose last property is a long list, which `head` has as an empty one. */
export function* toTexts(head: Json, list: Iterable<Json>, space: number): Iterable<string> {
  const text = toText(head, space);
  const end = text.lastIndexOf('[]') + 1;
  const lineBreak = (level: number) => (space === 0 ? '' : `\n${' '.repeat(level * space)}`);
  let separator = '';
  yield text.slice(0, end);
  for (const item of list) {
    yield separator + lineBreak(2) + JSON.stringify(item, null, space).replaceAll('\n', lineBreak(2));
    separator = ',';
  }
  yield (separator === '' ? '' : lineBreak(1)) + text.slice(end);
}

type JsonLimits = { readonly values: number; readonly nesting: number };

const [quote, backslash, comma, openBracket, closeBracket, openBrace, closeBrace] = Buffer.from('"\\,[]{}');

/**
 * Counts values and levels before the text is parsed: for 10 MiB of tiny values, `JSON.parse` needs more than a
 * second and hundreds of megabytes. Returns a problem, or undefined for a text within the limits, even if it is not
 * valid JSON. An empty list counts as two values.
 */
export function findExcess(bytes: Uint8Array, { values, nesting }: JsonLimits): string | undefined {
  let count = 1;
  let depth = 0;
  let isInString = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (isInString) {
      if (byte === backslash) index += 1;
      else if (byte === quote) isInString = false;
    } else if (byte === quote) isInString = true;
    else if (byte === comma) count += 1;
    else if (byte === openBracket || byte === openBrace) {
      count += 1;
      depth += 1;
      if (depth > nesting) return `must not be nested more than ${nesting} levels deep.`;
    } else if (byte === closeBracket || byte === closeBrace) depth -= 1;
    if (count > values) return `must have at most ${values} values.`;
  }
  return undefined;
}
