// The storage interface of the services and routes: one port for each kind of data.
//
// Replicated state (state.ts) is held in the memory of every process: reads are synchronous and never fail. With
// PostgreSQL, a read shows the changes of other processes within about half a second; a rule in `update` always
// works on the newest state.
//
// All other data grows with use, so it is never copied. Its ports read by key or page, and every call returns a
// promise. While the database is unavailable, every asynchronous method except `refresh` throws `unavailable`.
import type { Reader } from './state.ts';
import type { Transaction } from './transaction.ts';

/** The ports of the features. Each feature adds its own, next to the type of the port. */
// oxlint-disable-next-line typescript/no-empty-object-type -- features extend it
export interface StorePorts {}

/** What resources see of the ports, if it is not all. */
// oxlint-disable-next-line typescript/no-empty-object-type -- features extend it
export interface ReadablePorts {}

export type Store = Reader & StorePorts & StoreCore;

type StoreCore = {
  /** The id of this process among the processes that share the store. */
  readonly self: string;
  /**
   * Runs the rule alone: it sees the newest state, all its writes take effect together, and none do if it throws.
   * Only these updates are ordered globally. The other ports lock no more than the rows they write.
   */
  update: <T>(rule: (transaction: Transaction) => T) => Promise<T>;
  /** Whether the process is running. A process that died counts as alive until its lease expires. */
  isAlive: (process: string) => boolean;
  /** Reads the changes of other processes into memory. The result is whether the database could be read. */
  refresh: () => Promise<boolean>;
  /** Whether the changes of other processes could not be read for a minute. */
  isBehind: () => boolean;
  /**
   * Calls the listener after every update of any process, and when a process starts or ends. Returns the function
   * that unsubscribes.
   */
  onUpdate: (listener: () => void) => () => void;
  /** The reasons why the store is not ready; empty when it is. */
  problems: () => readonly string[];
  /** Since when the database cannot be reached; undefined while it can. */
  unavailableSince: () => number | undefined;
  close: () => Promise<void>;
};

/**
 * The store as the resources see it. They change it through `OperationCall.update`, which records the change in the
 * audit trail.
 */
export type ReadableStore = Reader &
  Omit<StoreCore, 'update'> &
  Omit<StorePorts, keyof ReadablePorts> &
  ReadablePorts;
