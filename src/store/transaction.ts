// What a rule sees of the store: named tables, cells, logs, archives and queues of immutable values, read and changed within one
// transaction.
import type { AnyShape } from './shape.ts';

export type Table<T> = {
  readonly name: string;
  readonly keyOf: (row: T) => string;
  readonly shape: AnyShape;
};

/** One value that always exists. */
export type Cell<T> = { readonly name: string; readonly initial: T };

/** Lists that only grow, each under its key. `entry` is never there: it ties the type of the entries to the log. */
export type Log<T> = { readonly name: string; readonly shape: AnyShape; readonly entry?: T };

/** A table of rows too large to be at hand all the time: they are fetched. */
export type Archive<T> = Table<T> & { readonly isArchive: true };

/** Work for later. What is listed, changed or removed together has one owner. */
export type Queue<T> = {
  readonly name: string;
  readonly shape: AnyShape;
  readonly keyOf: (row: T) => string;
  readonly ownerOf: (row: T) => string;
  /** When it may be taken up; null when nothing is left to do. */
  readonly dueAt: (row: T) => number | null;
  /** Whether it goes before the owner's other rows that are due. */
  readonly isUrgent: (row: T) => boolean;
  /** Whether it is the first to go when there are too many finished ones. */
  readonly isDull: (row: T) => boolean;
};

/** Definitions, for a store that must know beforehand what will be kept in it. Cells it takes as they come. */
export type Records = {
  readonly tables: readonly Table<never>[];
  readonly archives: readonly Archive<never>[];
  readonly logs: readonly Log<unknown>[];
  readonly queues: readonly Queue<never>[];
};

export type Reader = {
  get: <T>(table: Table<T>, key: string) => T | undefined;
  all: <T>(table: Table<T>) => Iterable<T>;
  read: <T>(cell: Cell<T>) => T;
  /** The entries under a key, oldest first; not a copy. */
  entries: <T>(log: Log<T>, key: string) => readonly T[];
  /** How many rows of the queue are not finished, claimed ones included. */
  waiting: (queue: Queue<never>) => number;
  /** Whether the process of that name is at work on this store; one that has just died may still seem to be. */
  isAlive: (process: string) => boolean;
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
  /** Replaces a row that this process has claimed and gives it free. Throws `LostClaim` where it is another's by now, or was dropped. */
  settle: <T>(queue: Queue<T>, claimed: T, row: T) => void;
  /** Replaces the rows that wait and that nobody has claimed, of one owner or (undefined) of all. */
  amend: <T>(queue: Queue<T>, owner: string | undefined, change: (row: T) => T) => void;
  /** Removes the owner's rows that wait, are not urgent and that nobody has claimed, the first added first, until so many are left. */
  thin: (queue: Queue<never>, owner: string, keep: number) => void;
  /** Removes the owner's finished rows, the dull ones before the others, the first finished first, until so many are left. */
  trim: (queue: Queue<never>, owner: string, keep: number) => void;
  /** Removes all rows of the owner. */
  drop: (queue: Queue<never>, owner: string) => void;
};

/** What was claimed is no longer this process's to settle. */
export class LostClaim extends Error {
  constructor(key: string) {
    super(`The claim of ${key} is lost.`);
    this.name = 'LostClaim';
  }
}
