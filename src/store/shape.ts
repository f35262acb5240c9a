// How the fields of a row are kept by a store that has columns. A feature says it beside its type; only such a store reads it.

/**
 * `key` and `owner`: the field is what `keyOf` or `ownerOf` answers. `number`: an integer. `secret`: anything that must not be
 * readable by whoever gets hold of the database.
 */
export type Kind = 'key' | 'owner' | 'text' | 'number' | 'flag' | 'json' | 'secret' | 'bytes';

/** A list that only ever grows at its end, each entry a row of a table of its own. */
export type RowsOf = { readonly table: string; readonly shape: AnyShape };

export type AnyShape = { readonly [field: string]: Kind | RowsOf };

/** Written `{ … } satisfies Shape<T>`, so that no field is forgotten. */
export type Shape<T> = { readonly [F in keyof T]-?: T[F] extends readonly unknown[] ? Kind | RowsOf : Kind };
