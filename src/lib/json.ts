// JSON as a type, and the formats an answer may have.

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** What rules keep is plain JSON; their types only do not say so. */
export function asJson(value: object): { readonly [key: string]: Json } {
  return value as { readonly [key: string]: Json };
}

/** Answers that last, and their bytes once they have been written out. */
const lastingAnswers = new WeakMap<object, Buffer | null>();

/** Says of an answer that is given again and again as it is that its bytes are worth keeping as long as it is kept itself. */
export function lasting<T extends object>(answer: T): T {
  lastingAnswers.set(answer, null);
  return answer;
}

export function writeJson(json: Json): string | Buffer {
  const kept = typeof json === 'object' && json !== null ? lastingAnswers.get(json) : undefined;
  if (kept) return kept;
  const text = JSON.stringify(json);
  if (kept === undefined) return text;
  const bytes = Buffer.from(text);
  lastingAnswers.set(json as object, bytes);
  return bytes;
}

export type Format = 'json' | 'pjson' | 'html';

/** Whether there is anything deeper than so many levels down. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner, levels - 1));
}
