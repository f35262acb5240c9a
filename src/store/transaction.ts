// What a rule sees of the store: named tables, cells, logs and queues of immutable values, read and changed within one transaction.

export type Table<T> = { readonly name: string; readonly keyOf: (row: T) => string };

/** One value that always exists. */
export type Cell<T> = { readonly name: string; readonly initial: T };

/** Lists that only grow, each under its key. */
export type Log<T> = { readonly name: string; readonly entry?: T };

/** Work for later. What is listed, changed or removed together has one owner. */
export type Queue<T> = {
  readonly name: string;
  readonly keyOf: (row: T) => string;
  readonly ownerOf: (row: T) => string;
  /** When it may be taken up; null when nothing is left to do. */
  readonly dueAt: (row: T) => number | null;
  /** Whether it goes before the owner's other rows that are due. */
  readonly isUrgent: (row: T) => boolean;
  /** Whether it is the first to go when there are too many finished ones. */
  readonly isDull: (row: T) => boolean;
};

/** The rows of a queue that are not finished, claimed ones included. */
export type Waiting<T> = { readonly count: number; readonly oldest: () => T | undefined };

export type Reader = {
  get: <T>(table: Table<T>, key: string) => T | undefined;
  all: <T>(table: Table<T>) => Iterable<T>;
  read: <T>(cell: Cell<T>) => T;
  /** The entries under a key, oldest first; not a copy. */
  entries: <T>(log: Log<T>, key: string) => readonly T[];
  waiting: <T>(queue: Queue<T>) => Waiting<T>;
};

export type Transaction = Reader & {
  /** Adds the row, or replaces the one with the same key. */
  put: <T>(table: Table<T>, row: T) => void;
  remove: (table: Table<never>, key: string) => void;
  write: <T>(cell: Cell<T>, value: T) => void;
  /** Appended entries are seen by readers once the transaction has taken effect. */
  append: <T>(log: Log<T>, key: string, entries: readonly T[]) => void;
  // What is done to a queue is seen once the transaction has taken effect, also by the transaction itself.
  /** Adds a row under a key that was never used. */
  enqueue: <T>(queue: Queue<T>, row: T) => void;
  /** Replaces a row that was claimed and gives it free; nothing happens to one that was dropped meanwhile. */
  settle: <T>(queue: Queue<T>, row: T) => void;
  /** Replaces the rows that wait and that nobody has claimed, of one owner or (undefined) of all. */
  amend: <T>(queue: Queue<T>, owner: string | undefined, change: (row: T) => T) => void;
  /** Removes the owner's finished rows, the dull ones before the others, the first finished first, until so many are left. */
  trim: (queue: Queue<never>, owner: string, keep: number) => void;
  /** Removes all rows of the owner. */
  drop: (queue: Queue<never>, owner: string) => void;
};
