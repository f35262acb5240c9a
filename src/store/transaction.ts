// What a rule sees of the store: named tables and cells of immutable values, read and changed within one transaction.

export type Table<T> = { readonly name: string; readonly keyOf: (row: T) => string };

/** One value that always exists. */
export type Cell<T> = { readonly name: string; readonly initial: T };

/** Lists that only grow, each under its key. */
export type Log<T> = { readonly name: string; readonly entry?: T };

export type Reader = {
  get: <T>(table: Table<T>, key: string) => T | undefined;
  all: <T>(table: Table<T>) => Iterable<T>;
  read: <T>(cell: Cell<T>) => T;
  /** The entries under a key, oldest first; not a copy. */
  entries: <T>(log: Log<T>, key: string) => readonly T[];
};

export type Transaction = Reader & {
  /** Adds the row, or replaces the one with the same key. */
  put: <T>(table: Table<T>, row: T) => void;
  remove: (table: Table<never>, key: string) => void;
  write: <T>(cell: Cell<T>, value: T) => void;
  /** Appended entries are seen by readers once the transaction has taken effect. */
  append: <T>(log: Log<T>, key: string, entries: readonly T[]) => void;
};
