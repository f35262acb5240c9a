// Replicated state: small data that changes slowly and is read often. Every process holds all of it in memory and
// reads it without waiting.
//
// A table holds rows by key; a cell holds one value that always exists. All values are immutable. `Store.update` is
// the only way to change them (transaction.ts).
import type { AuditFields } from '../lib/audit-fields.ts';

export type Table<T> = {
  readonly name: string;
  readonly keyOf: (row: T) => string;
  /** Fields that are encrypted at rest if a secret key is configured. */
  readonly secretFields?: readonly (keyof T & string)[];
  /** What the row adds to `Reader.bytes`. Absent: nothing. */
  readonly bytesOf?: (row: T) => number;
  /** What the audit trail shows of a row. */
  readonly auditFields: (row: T) => AuditFields;
};

export type Cell<T> = {
  readonly name: string;
  readonly initial: T;
  /** What the audit trail shows of the value. The names differ from those of every other cell. */
  readonly auditFields: (value: T) => AuditFields;
  /** A value with another id replaces the one before and is not compared with it. */
  readonly idOf?: (value: T) => string | undefined;
};

/** A cell of any type. */
export type AnyCell = {
  readonly name: string;
  readonly initial: unknown;
  readonly auditFields: (value: never) => AuditFields;
  readonly idOf?: (value: never) => string | undefined;
};

/** A row or a cell that a transaction has written. */
export type ChangedRow = {
  readonly of: Table<never> | AnyCell;
  /** Null for a cell. */
  readonly key: string | null;
  /** Undefined: there was no such row. */
  readonly before: unknown;
  /** Undefined: the row is removed. */
  readonly after: unknown;
};

export type Reader = {
  get: <T>(table: Table<T>, key: string) => T | undefined;
  all: <T>(table: Table<T>) => Iterable<T>;
  /** The number of rows in the table. */
  count: (table: Table<never>) => number;
  /** The sum of `bytesOf` over the rows of the table. */
  bytes: (table: Table<never>) => number;
  read: <T>(cell: Cell<T>) => T;
};
