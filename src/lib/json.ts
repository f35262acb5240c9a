// JSON as a type, JSON that is serialized once, and limits on its size.

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Stored records are plain JSON, although their types do not say so. */
export function asJson(value: object): { readonly [key: string]: Json } {
  return value as { readonly [key: string]: Json };
}

export class CachedJson {
  readonly json: Json;
  #bytes: Buffer | undefined;

  constructor(json: Json) {
    this.json = json;
  }

  get bytes(): Buffer {
    return (this.#bytes ??= Buffer.from(JSON.stringify(this.json)));
  }
}

export function plainJson(answer: Json | CachedJson): Json {
  return answer instanceof CachedJson ? answer.json : answer;
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
