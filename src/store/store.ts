// The store as the engines and edges use it. Tables, cells and logs are read at once, from memory; queues and archives are asked.
// There is one way to change anything. Whatever has to be asked or changed while the store is away throws `unavailable`.
import type { Archive, Cell, Queue, Reader, Table, Transaction } from './transaction.ts';

export type Store = Reader & {
  /** This process, as others at work on the same store know it. */
  readonly self: string;
  /**
   * Runs the change alone: it sees a consistent state, all its writes take effect together, and none do if it throws.
   * The change is synchronous and may run more than once, so it must do nothing but read and write the transaction.
   */
  update: <T>(change: (transaction: Transaction) => T) => Promise<T>;
  /** Takes rows that are due for this process alone, until it settles them or is dead. */
  claim: <T>(queue: Queue<T>, claim: Claim) => Promise<Claimed<T>>;
  find: <T>(queue: Queue<T>, key: string) => Promise<T | undefined>;
  /** The first added of the rows that are not finished. */
  oldest: <T>(queue: Queue<T>) => Promise<T | undefined>;
  /** The rows of an owner, newest first, and how many there are in all. */
  page: <T>(
    queue: Queue<T>,
    owner: string,
    start: number,
    num: number,
  ) => Promise<{ readonly rows: readonly T[]; readonly total: number }>;
  fetch: <T>(archive: Archive<T>, key: string) => Promise<T | undefined>;
  /** Reads what others have changed, if they have, and as far as that can be known at the moment. */
  refresh: () => Promise<void>;
  /** A number that differs after every update that touched the table, cell or queue. */
  version: (of: Table<never> | Cell<unknown> | Queue<never>) => number;
  /** Calls back after every update, also by others, and when a process has come or gone; answers how to stop that. */
  onUpdate: (listener: () => void) => () => void;
  /** Why the store cannot serve at the moment; empty when it can. */
  problems: () => readonly string[];
  close: () => Promise<void>;
};

export type Claim = {
  readonly at: number;
  readonly most: number;
  /** Owners of one lane share its room. */
  readonly laneOf: (owner: string) => string;
  /**
   * How many more rows of the lane this process has room for. What others have claimed of it takes up room too, unless that
   * happens at the same moment.
   */
  readonly roomIn: (lane: string) => number;
};

/** `nextAt`: when the next row will be due; surely known only where all that is due was taken. */
export type Claimed<T> = { readonly rows: readonly T[]; readonly nextAt: number | undefined };
