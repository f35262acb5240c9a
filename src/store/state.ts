// Replicated state: small data that changes slowly and is read often. Every process holds all of it in memory and reads it without waiting.
//
// A table holds rows by key; a cell holds one value that always exists. All values are immutable. `Store.update` is the only way to change
// them (transaction.ts).

export type Table<T> = {
  readonly name: string;
  readonly keyOf: (row: T) => string;
  /** Fields that are encrypted at rest if a secret key is configured. */
  readonly secretFields?: readonly (keyof T & string)[];
  /** What the row adds to `Reader.bytes`. Absent: nothing. */
  readonly bytesOf?: (row: T) => number;
};

export type Cell<T> = { readonly name: string; readonly initial: T };

export type Reader = {
  get: <T>(table: Table<T>, key: string) => T | undefined;
  all: <T>(table: Table<T>) => Iterable<T>;
  /** The number of rows in the table. */
  count: (table: Table<never>) => number;
  /** The sum of `bytesOf` over the rows of the table. */
  bytes: (table: Table<never>) => number;
  read: <T>(cell: Cell<T>) => T;
};
