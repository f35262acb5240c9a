// Collects the changes of replicated state in a transaction until the store commits them.
//
// A transaction never writes to the store directly: its writes to tables and cells are recorded as final values,
// which the transaction itself sees. The store then either applies the whole record or drops it.
import type { AnyCell, Cell, ChangedRow, Reader, Table } from './state.ts';

export type Rows = Map<string, unknown>;

export type StateChanges = {
  /** Rows by table and key; `undefined` marks a removed row. */
  tables: Map<Table<never>, Rows>;
  cells: Map<AnyCell, unknown>;
};

/** A reader that shows `base` with the changes applied. */
export function readThrough(base: Reader, changes: StateChanges): Reader {
  return {
    get: <T>(table: Table<T>, key: string) => {
      const changed = changes.tables.get(table);
      return changed?.has(key) ? (changed.get(key) as T | undefined) : base.get(table, key);
    },
    all: <T>(table: Table<T>) => {
      const changed = changes.tables.get(table);
      return changed ? mergeRows(table, base.all(table), changed) : base.all(table);
    },
    count: (table) => base.count(table) + changeIn(table, base, changes, () => 1),
    bytes: (table) => base.bytes(table) + changeIn(table, base, changes, table.bytesOf ?? (() => 0)),
    read: <T>(cell: Cell<T>) => (changes.cells.has(cell) ? (changes.cells.get(cell) as T) : base.read(cell)),
    version: (of) =>
      changes.tables.has(of as Table<never>) || changes.cells.has(of as AnyCell) ? NaN : base.version(of),
  };
}

export function rowsIn(changes: StateChanges, table: Table<never>): Rows {
  const rows = changes.tables.get(table) ?? new Map<string, unknown>();
  changes.tables.set(table, rows);
  return rows;
}

export function createStateChanges(): StateChanges {
  return { tables: new Map(), cells: new Map() };
}

/** `before` has the values that were replaced. */
export function changedRows(before: StateChanges, changes: StateChanges): ChangedRow[] {
  const rows: ChangedRow[] = [];
  for (const [table, replaced] of before.tables)
    for (const [key, row] of replaced)
      rows.push({ of: table, key, before: row, after: changes.tables.get(table)?.get(key) });
  for (const [cell, value] of before.cells)
    rows.push({ of: cell, key: null, before: value, after: changes.cells.get(cell) });
  return rows;
}

/** How much the changes add to the sum of `weigh` over the rows of the table. */
function changeIn(
  table: Table<never>,
  base: Reader,
  changes: StateChanges,
  weigh: (row: never) => number,
): number {
  let change = 0;
  for (const [key, row] of changes.tables.get(table) ?? []) {
    const before = base.get(table, key) as unknown;
    if (before !== undefined) change -= weigh(before as never);
    if (row !== undefined) change += weigh(row as never);
  }
  return change;
}

function* mergeRows<T>(table: Table<T>, rows: Iterable<T>, changed: Rows): Iterable<T> {
  for (const row of rows) if (!changed.has(table.keyOf(row))) yield row;
  for (const row of changed.values()) if (row !== undefined) yield row as T;
}

/**
 * Freezes a value deeply. The store returns values without copying them, so callers must not be able to change
 * them.
 */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
