// Defines the kinds of stored data and the transaction that reads and changes them. All values are immutable.
//
// - A table holds rows by key. A cell holds one value. A log holds append-only lists by key. An archive is a table whose rows are read one
//   at a time because they are large.
// - A queue holds work for later. Every row has an owner, and owners take turns when rows are claimed. A row is pending while `dueAt`
//   returns a time and finished when it returns null. A pending row is free or claimed by one process:
//
//       enqueue → free ── claim ──→ claimed ── settle ──→ free (due again later) or finished
//
//   `settle` fails with `LostClaim` if the process no longer holds the claim. `amend` and `thin` change free rows only; `trim` removes
//   finished rows; `drop` removes every row of an owner, claimed ones included, and so makes their claims invalid.
import type { AnyShape } from './shape.ts';

export type Table<T> = {
  readonly name: string;
  readonly keyOf: (row: T) => string;
  readonly shape: AnyShape;
  /** What the row adds to `Reader.bytes`. Absent: nothing. */
  readonly bytesOf?: (row: T) => number;
};

/** One value that always exists. */
export type Cell<T> = { readonly name: string; readonly initial: T };

/** Append-only lists by key. `entry` is never set: it only carries the type of the entries. */
export type Log<T> = { readonly name: string; readonly shape: AnyShape; readonly entry?: T };

/** A table with rows that are too large to keep in memory. `Store.fetch` reads one. */
export type Archive<T> = Table<T> & { readonly isArchive: true };

export type Queue<T> = {
  readonly name: string;
  readonly shape: AnyShape;
  readonly keyOf: (row: T) => string;
  readonly ownerOf: (row: T) => string;
  /** The earliest time to claim the row; null when the row is finished. */
  readonly dueAt: (row: T) => number | null;
  /** Whether the row is claimed before the owner's other due rows. */
  readonly isUrgent: (row: T) => boolean;
  /** Whether `trim` removes the row before the owner's other finished rows. */
  readonly isDull: (row: T) => boolean;
  /** What the row adds to `Reader.waitingBytes` while it is unfinished. It must not change while the row exists. */
  readonly bytesOf: (row: T) => number;
};

/** All definitions, for a store that needs its tables in advance. Cells need no definition. */
export type Records = {
  readonly tables: readonly Table<never>[];
  readonly archives: readonly Archive<never>[];
  readonly logs: readonly Log<unknown>[];
  readonly queues: readonly Queue<never>[];
};

export type Reader = {
  get: <T>(table: Table<T>, key: string) => T | undefined;
  all: <T>(table: Table<T>) => Iterable<T>;
  /** The number of rows in the table. */
  count: (table: Table<never>) => number;
  /** The sum of `bytesOf` over the rows of the table. */
  bytes: (table: Table<never>) => number;
  read: <T>(cell: Cell<T>) => T;
  /** The entries under a key, oldest first. The array is not copied and grows with the log. */
  entries: <T>(log: Log<T>, key: string) => readonly T[];
  /** The number of unfinished rows in the queue, claimed ones included. */
  waiting: (queue: Queue<never>) => number;
  /** The sum of `bytesOf` over these rows. */
  waitingBytes: (queue: Queue<never>) => number;
  /** Whether the process is running. A process that died counts as alive until its lease expires. */
  isAlive: (process: string) => boolean;
};

export type Transaction = Reader & {
  /** Adds the row, or replaces the one with the same key. */
  put: <T>(table: Table<T>, row: T) => void;
  remove: (table: Table<never>, key: string) => void;
  write: <T>(cell: Cell<T>, value: T) => void;
  /** The transaction itself does not see the appended entries; readers see them after the commit. */
  append: <T>(log: Log<T>, key: string, entries: readonly T[]) => void;
  // Changes to a queue are visible after the commit only, also to the transaction itself.
  /** Adds a row. Its key must never have been used in the queue. */
  enqueue: <T>(queue: Queue<T>, row: T) => void;
  /** Replaces a row that this process has claimed and releases the claim. Throws `LostClaim` if the process no longer holds it. */
  settle: <T>(queue: Queue<T>, claimed: T, row: T) => void;
  /** Replaces the pending, unclaimed rows of one owner, or of all owners if `owner` is undefined. */
  amend: <T>(queue: Queue<T>, owner: string | undefined, change: (row: T) => T) => void;
  /** Removes the owner's oldest pending rows that are neither urgent nor claimed until `keep` of them are left. */
  thin: (queue: Queue<never>, owner: string, keep: number) => void;
  /** Removes finished rows of the owner until `keep` are left: dull rows first, then the others, each in the order they finished. */
  trim: (queue: Queue<never>, owner: string, keep: number) => void;
  /** Removes every row of the owner, claimed ones included. */
  drop: (queue: Queue<never>, owner: string) => void;
};

/** This process no longer holds the claim, so it must not settle the row. */
export class LostClaim extends Error {
  constructor(key: string) {
    super(`The claim of ${key} is lost.`);
    this.name = 'LostClaim';
  }
}
