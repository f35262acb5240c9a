// Holds tables, cells and logs in memory. The memory store keeps its data here; the PostgreSQL store reads from it and keeps it up to date.
import type { Changes, Rows } from './changes.ts';
import type { Cell, Log, Reader, Table } from './transaction.ts';

export type Copy = Pick<Reader, 'get' | 'all' | 'count' | 'bytes' | 'read' | 'entries'> & {
  apply: (changes: Changes) => void;
  /** Sets a row to the value in the database; `undefined` removes it. */
  setRow: (table: Table<never>, key: string, row: unknown) => void;
  setCell: (name: string, value: unknown) => void;
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
  /** The sums of `bytesOf`, by table. */
  const bytes = new Map<string, number>();
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

  function put({ name, bytesOf }: Table<never>, key: string, row: unknown): void {
    const rows = rowsOf(name);
    if (bytesOf) {
      const weigh = (some: unknown) => (some === undefined ? 0 : bytesOf(some as never));
      bytes.set(name, (bytes.get(name) ?? 0) + weigh(row) - weigh(rows.get(key)));
    }
    if (row === undefined) rows.delete(key);
    else rows.set(key, row);
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
    count: ({ name }) => tables.get(name)?.size ?? 0,
    bytes: ({ name }) => bytes.get(name) ?? 0,
    read: <T>(cell: Cell<T>) => (cells.has(cell.name) ? cells.get(cell.name) : cell.initial) as T,
    entries: <T>(log: Log<T>, key: string) => (logs.get(log.name)?.get(key) ?? noEntries) as readonly T[],
    apply(changes) {
      for (const [table, changed] of changes.tables) {
        for (const [key, row] of changed) put(table, key, row);
        touch(table.name);
      }
      for (const [{ name }, value] of changes.cells) {
        cells.set(name, value);
        touch(name);
      }
      for (const [{ name }, lists] of changes.logs) {
        for (const [key, entries] of lists) extend(name, key, entries);
      }
    },
    setRow(table, key, row) {
      put(table, key, row);
      touch(table.name);
    },
    setCell(name, value) {
      cells.set(name, value);
      touch(name);
    },
    extend,
    clear() {
      for (const name of tables.keys()) touch(name);
      for (const name of cells.keys()) touch(name);
      tables.clear();
      bytes.clear();
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
