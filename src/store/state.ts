// Replicated state: small data that changes slowly and is read often. Every process holds all of it in memory and
// reads it without waiting.
//
// A table holds rows by key; a cell holds one value that always exists. All values are immutable. `Store.update` is
// the only way to change them (transaction.ts).
import { isDeepStrictEqual } from 'node:util';
import type { AuditFields } from '../lib/audit-fields.ts';

export type Table<T> = {
  readonly name: string;
  readonly keyOf: (row: T) => string;
  /** For each field that was added since version 0.2.0: its value in rows of versions that did not store it. */
  readonly defaults: Defaults<T>;
  /** Fields that are encrypted at rest if a secret key is configured. */
  readonly secretFields?: readonly (keyof T & string)[];
  /** What the row adds to `Reader.bytes`. Absent: nothing. */
  readonly bytesOf?: (row: T) => number;
  /** What the audit trail shows of a row. */
  readonly auditFields: (row: T) => AuditFields;
};

/** `Table<never>` is a table of any type. */
type Defaults<T> = [T] extends [never] ? object : { readonly [Field in keyof T & string]?: T[Field] };

export type Cell<T> = {
  readonly name: string;
  /** Also completes the values of versions that did not store all fields. */
  readonly initial: T;
  /** What the audit trail shows of the value. The names differ from those of every other cell. */
  readonly auditFields: (value: T) => AuditFields;
  /** A value with another id replaces the one before and is not compared with it. */
  readonly idOf?: (value: T) => string | undefined;
};

/** Adds the fields that the value lacks. Values inside it are not completed. */
export function complete<T>(value: T, defaults: unknown): T {
  const fields = Object.keys(defaults ?? {});
  if (fields.every((field) => field in (value as object))) return value;
  return { ...(defaults as T), ...value };
}

/** The row after a change at `at`; the row itself if the change has the values that it has already. */
export function updated<T extends { readonly updatedAt: number }>(
  row: T,
  change: Partial<NoInfer<T>>,
  at: number,
): T {
  const after = { ...row, ...change };
  return isDeepStrictEqual(after, row) ? row : { ...after, updatedAt: at };
}

/** A cell of any type. */
export type AnyCell = Omit<Cell<never>, 'initial'> & { readonly initial: unknown };

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
  /** A number that changes with every update of the table or cell. NaN in a transaction that has changed it. */
  version: (of: Table<never> | AnyCell) => number;
};
