// Declares how the fields of a row map to columns. A feature declares the shape beside its type; only the PostgreSQL store reads it.

/**
 * `key` and `owner`: the field holds the result of `keyOf` or `ownerOf`. `number`: an integer. `secret`: any value, encrypted at rest
 * if a secret key is configured.
 */
export type Kind = 'key' | 'owner' | 'text' | 'number' | 'flag' | 'json' | 'secret' | 'bytes';

/** An append-only list, stored as rows of a separate table. */
export type RowsOf = { readonly table: string; readonly shape: AnyShape };

export type AnyShape = { readonly [field: string]: Kind | RowsOf };

/** Write `{ … } satisfies Shape<T>`: the compiler then reports a missing field. */
export type Shape<T> = { readonly [F in keyof T]-?: T[F] extends readonly unknown[] ? Kind | RowsOf : Kind };
