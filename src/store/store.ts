// The store as the engines and edges use it. Reads are answered at once from memory; there is one way to change anything.
import type { Cell, Reader, Table, Transaction } from './transaction.ts';

export type Store = Reader & {
  /**
   * Runs the change alone: it sees a consistent state, all its writes take effect together, and none do if it throws.
   * The change is synchronous and may run more than once, so it must do nothing but read and write the transaction.
   */
  update: <T>(change: (transaction: Transaction) => T) => Promise<T>;
  /** A number that differs after every update that touched the table or cell. */
  version: (of: Table<never> | Cell<unknown>) => number;
  /** Calls back after every update; answers how to stop that. */
  onUpdate: (listener: () => void) => () => void;
  /** Why the store cannot serve at the moment; empty when it can. */
  problems: () => readonly string[];
  close: () => Promise<void>;
};
