// JSON as a type, JSON that is serialized once, and a bound on its depth.

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** For stored records, which are plain JSON although their types do not say so. */
export function asJson(value: object): { readonly [key: string]: Json } {
  return value as { readonly [key: string]: Json };
}

/** JSON that is sent many times unchanged: its bytes are made once. */
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

/** Whether anything lies more than so many levels deep. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner, levels - 1));
}
