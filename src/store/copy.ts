// Holds tables, cells and logs in memory. The memory store keeps its data here; the PostgreSQL store reads from it and keeps it up to date.
import type { Changes, Rows } from './changes.ts';
import type { Cell, Log, Reader, Table } from './transaction.ts';

export type Copy = Pick<Reader, 'get' | 'all' | 'read' | 'entries'> & {
  apply: (changes: Changes) => void;
  /** Sets a row or cell to the value in the database; `undefined` removes it. */
  set: (kind: 'tables' | 'cells', name: string, key: string, value: unknown) => void;
  extend: (log: string, key: string, entries: readonly unknown[]) => void;
  clear: () => void;
  version: (of: { name: string }) => number;
  touch: (name: string) => void;
  onUpdate: (listener: () => void) => () => void;
  /** Calls every listener. */
  notify: () => void;
};

const noRows: Rows = new Map();
const noEntries: readonly never[] = [];

export function createCopy(): Copy {
  const tables = new Map<string, Rows>();
  const cells: Rows = new Map();
  const logs = new Map<string, Map<string, unknown[]>>();
  const versions = new Map<string, number>();
  const listeners = new Set<() => void>();

  const touch = (name: string) => void versions.set(name, (versions.get(name) ?? 0) + 1);

  function rowsOf(name: string): Rows {
    const rows = tables.get(name) ?? new Map<string, unknown>();
    tables.set(name, rows);
    return rows;
  }

  function put(rows: Rows, key: string, value: unknown): void {
    if (value === undefined) rows.delete(key);
    else rows.set(key, value);
  }

  function extend(name: string, key: string, entries: readonly unknown[]): void {
    const lists = logs.get(name) ?? new Map<string, unknown[]>();
    logs.set(name, lists);
    const list = lists.get(key) ?? [];
    lists.set(key, list);
    for (const entry of entries) list.push(entry);
  }

  return {
    get: <T>(table: Table<T>, key: string) => tables.get(table.name)?.get(key) as T | undefined,
    all: <T>(table: Table<T>) => (tables.get(table.name) ?? noRows).values() as Iterable<T>,
    read: <T>(cell: Cell<T>) => (cells.has(cell.name) ? cells.get(cell.name) : cell.initial) as T,
    entries: <T>(log: Log<T>, key: string) => (logs.get(log.name)?.get(key) ?? noEntries) as readonly T[],
    apply(changes) {
      for (const [{ name }, changed] of changes.tables) {
        const rows = rowsOf(name);
        for (const [key, row] of changed) put(rows, key, row);
        touch(name);
      }
      for (const [{ name }, value] of changes.cells) {
        cells.set(name, value);
        touch(name);
      }
      for (const [{ name }, lists] of changes.logs) {
        for (const [key, entries] of lists) extend(name, key, entries);
      }
    },
    set(kind, name, key, value) {
      put(kind === 'cells' ? cells : rowsOf(name), key, value);
      touch(kind === 'cells' ? key : name);
    },
    extend,
    clear() {
      for (const name of tables.keys()) touch(name);
      for (const name of cells.keys()) touch(name);
      tables.clear();
      cells.clear();
      logs.clear();
    },
    version: ({ name }) => versions.get(name) ?? 0,
    touch,
    onUpdate(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    notify() {
      for (const listener of listeners) listener();
    },
  };
}
