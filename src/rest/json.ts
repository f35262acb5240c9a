// JSON as a type, and the formats an answer may have.

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** What rules keep is plain JSON; their types only do not say so. */
export function asJson(value: object): { readonly [key: string]: Json } {
  return value as { readonly [key: string]: Json };
}

export type Format = 'json' | 'pjson' | 'html';
