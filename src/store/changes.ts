// Collects the writes of a transaction until the store commits them.
//
// A transaction never writes to the store directly. Writes to tables, cells and logs are recorded as final values and are visible to the
// transaction itself; operations on queues are recorded as a list of acts in call order. The store then either applies the whole record
// or drops it. Every store shares this part; only the commit differs.
import type { Cell, Log, Queue, Reader, Table, Transaction } from './transaction.ts';

export type Rows = Map<string, unknown>;

export type Changes = {
  /** Rows by table and key; `undefined` marks a removed row. */
  tables: Map<Table<never>, Rows>;
  cells: Map<Cell<unknown>, unknown>;
  logs: Map<Log<unknown>, Map<string, readonly unknown[]>>;
  /** Operations on queues, in call order. */
  acts: Act[];
};

export type Act = { readonly queue: Queue<never> } & (
  | { readonly kind: 'enqueue'; readonly row: never }
  | { readonly kind: 'settle'; readonly claimed: never; readonly row: never }
  | { readonly kind: 'amend'; readonly owner: string | undefined; readonly change: (row: never) => never }
  | { readonly kind: 'thin'; readonly owner: string; readonly keep: number }
  | { readonly kind: 'trim'; readonly owner: string; readonly keep: number }
  | { readonly kind: 'drop'; readonly owner: string }
);

export function createChanges(): Changes {
  return { tables: new Map(), cells: new Map(), logs: new Map(), acts: [] };
}

/** Replaces the maps instead of clearing them: a map that is cleared again and again keeps its memory. */
export function clear(changes: Changes): void {
  if (changes.tables.size > 0) changes.tables = new Map();
  if (changes.cells.size > 0) changes.cells = new Map();
  if (changes.logs.size > 0) changes.logs = new Map();
  if (changes.acts.length > 0) changes.acts = [];
}

export function isEmpty({ tables, cells, logs, acts }: Changes): boolean {
  return tables.size === 0 && cells.size === 0 && logs.size === 0 && acts.length === 0;
}

/** Adds `later` to `into`; later values win. */
export function merge(into: Changes, later: Changes): void {
  for (const [table, rows] of later.tables) {
    const known = rowsIn(into, table);
    for (const [key, row] of rows) known.set(key, row);
  }
  for (const [cell, value] of later.cells) into.cells.set(cell, value);
  for (const [log, lists] of later.logs) {
    for (const [key, entries] of lists) appendTo(into, log, key, entries);
  }
  for (const act of later.acts) into.acts.push(act);
}

/** A reader that shows `base` with the changes applied. Queues are shown without their acts. */
export function readThrough(base: Reader, changes: Changes): Reader {
  return {
    ...base,
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
    entries: <T>(log: Log<T>, key: string) => {
      const added = changes.logs.get(log)?.get(key) as readonly T[] | undefined;
      return added ? [...base.entries(log, key), ...added] : base.entries(log, key);
    },
  };
}

/** A transaction that records its writes in `changes` and reads through them. `mustHold` throws if this process does not hold the claim. */
export function createTransaction(
  base: Reader,
  changes: Changes,
  mustHold: <T>(queue: Queue<T>, claimed: T) => void,
): Transaction {
  const record = (act: Act) => void changes.acts.push(act);
  return {
    ...readThrough(base, changes),
    entries: base.entries,
    put: (table, row) => void rowsIn(changes, table).set(table.keyOf(row), freeze(row)),
    remove: (table, key) => void rowsIn(changes, table).set(key, undefined),
    write: (cell, value) => void changes.cells.set(cell, freeze(value)),
    append: (log, key, entries) => appendTo(changes, log, key, entries.map(freeze)),
    enqueue: (queue, row) => record({ kind: 'enqueue', queue, row: freeze(row) as never }),
    settle: (queue, claimed, row) => {
      mustHold(queue, claimed);
      record({ kind: 'settle', queue, claimed: claimed as never, row: freeze(row) as never });
    },
    amend: (queue, owner, change) =>
      record({ kind: 'amend', queue, owner, change: ((row: never) => freeze(change(row))) as never }),
    thin: (queue, owner, keep) => record({ kind: 'thin', queue, owner, keep }),
    trim: (queue, owner, keep) => record({ kind: 'trim', queue, owner, keep }),
    drop: (queue, owner) => record({ kind: 'drop', queue, owner }),
  };
}

function rowsIn(changes: Changes, table: Table<never>): Rows {
  const rows = changes.tables.get(table) ?? new Map<string, unknown>();
  changes.tables.set(table, rows);
  return rows;
}

function appendTo(changes: Changes, log: Log<unknown>, key: string, entries: readonly unknown[]): void {
  const lists = changes.logs.get(log) ?? new Map<string, readonly unknown[]>();
  changes.logs.set(log, lists);
  lists.set(key, [...(lists.get(key) ?? []), ...entries]);
}

/** How much the changes add to the sum of `weigh` over the rows of the table. */
function changeIn(
  table: Table<never>,
  base: Reader,
  changes: Changes,
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

/** Freezes a value deeply. The store returns values without copying them, so callers must not be able to change them. */
export function freeze<T>(value: T): T {
  // Typed arrays cannot be frozen: a caller must not change bytes after storing them.
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value))
    return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
