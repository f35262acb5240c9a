// The storage interface of the services and routes.
//
// Tables, cells and logs are small and read often: every process holds a copy in memory and reads it synchronously. With PostgreSQL,
// several processes share the data, and the copy of each follows the database (postgres/store.ts explains how). Queues and archives are
// large: every read goes to the database and returns a promise.
//
// `update` is the only way to change data. `claim` reserves rows of a queue for this process without changing them; `settle` in a later
// update writes the outcome and releases the claim (transaction.ts explains the queue). While the database is unavailable, every
// asynchronous method except `refresh` throws `unavailable`; synchronous reads keep working.
import type { Archive, Cell, Queue, Reader, Table, Transaction } from './transaction.ts';

export type Store = Reader & {
  /** The id of this process among the processes that share the store. */
  readonly self: string;
  /**
   * Runs the change alone: it sees a consistent state, all its writes take effect together, and none do if it throws.
   * The change is synchronous and may run more than once, so it must do nothing but read and write the transaction.
   */
  update: <T>(change: (transaction: Transaction) => T) => Promise<T>;
  /** Reserves due rows; no other process gets them. A claim ends when the row is settled or dropped, or when the process is dead. */
  claim: <T>(queue: Queue<T>, claim: Claim) => Promise<Claimed<T>>;
  find: <T>(queue: Queue<T>, key: string) => Promise<T | undefined>;
  /** The unfinished row that was added first. */
  oldest: <T>(queue: Queue<T>) => Promise<T | undefined>;
  /** One page of an owner's rows, newest first, and the total number of its rows. */
  page: <T>(
    queue: Queue<T>,
    owner: string,
    start: number,
    num: number,
  ) => Promise<{ readonly rows: readonly T[]; readonly total: number }>;
  fetch: <T>(archive: Archive<T>, key: string) => Promise<T | undefined>;
  /** Reads the changes of other processes into the copy. Does nothing while the database is unavailable. */
  refresh: () => Promise<void>;
  /** A number that changes with every update that touches the table, cell or queue. */
  version: (of: Table<never> | Cell<unknown> | Queue<never>) => number;
  /** Calls the listener after every update of any process, and when a process starts or ends. Returns the function that unsubscribes. */
  onUpdate: (listener: () => void) => () => void;
  /** The reasons why the store is not ready; empty when it is. */
  problems: () => readonly string[];
  close: () => Promise<void>;
};

export type Claim = {
  readonly at: number;
  readonly most: number;
  /** The lane of an owner. Owners in one lane share one limit: the deliveries of all webhooks to one receiver, for example. */
  readonly laneOf: (owner: string) => string;
  /**
   * How many more rows of the lane this process may claim. The store subtracts the claims of other processes, so the limit holds for
   * all of them together; two claims at the same moment may exceed it.
   */
  readonly roomIn: (lane: string) => number;
};

/** `nextAt`: when the next row is due. It is reliable only if the claim took every row that is due. */
export type Claimed<T> = { readonly rows: readonly T[]; readonly nextAt: number | undefined };
