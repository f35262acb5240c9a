// The transaction of an update, which a rule reads and writes.
//
// A rule is synchronous and may run more than once, so it must do nothing but read and write the transaction. A
// write that belongs to the port of a feature but must commit with the change, such as the deliveries of an event,
// is a method of the transaction too. Each feature adds its own to the interface below, next to its port.
import type { Cell, ChangedRow, Reader, Table } from './state.ts';

/** Writes to the ports. They take effect with the commit, in the order of the calls. */
// oxlint-disable-next-line typescript/no-empty-object-type -- features extend it
export interface TransactionWrites {}

export type Transaction = Reader & {
  /** Adds the row, or replaces the one with the same key. */
  put: <T>(table: Table<T>, row: NoInfer<T>) => void;
  remove: (table: Table<never>, key: string) => void;
  write: <T>(cell: Cell<T>, value: T) => void;
  /** What the transaction has put, removed and written so far. */
  changed: () => readonly ChangedRow[];
} & { readonly [P in keyof TransactionWrites]: RecordedWrites<TransactionWrites[P]> };

/** The same methods, which record the call. */
type RecordedWrites<W> = {
  readonly [M in keyof W]: W[M] extends (...args: infer A) => unknown ? (...args: A) => void : never;
};
