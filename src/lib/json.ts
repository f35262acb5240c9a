// JSON as a type, JSON that is serialized once, and a limit on its depth.

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

export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner, levels - 1));
}
