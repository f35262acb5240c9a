// Holds the replicated state in memory. The memory store keeps its state here; the PostgreSQL store reads from it
// and keeps it up to date.
import { type Rows, type StateChanges, freeze } from './changes.ts';
import { type Cell, type Reader, type Table, complete } from './state.ts';

export type Copy = {
  readonly reader: Reader;
  apply: (changes: StateChanges) => void;
  clear: () => void;
  /** The rows and values by name. */
  dump: () => { tables: Record<string, readonly unknown[]>; cells: Record<string, unknown> };
  onUpdate: (listener: () => void) => () => void;
  /** Calls every listener. */
  notify: () => void;
};

const noRows: Rows = new Map();

export function createCopy(): Copy {
  const tables = new Map<string, Rows>();
  /** The sums of `bytesOf`, by table. */
  const bytes = new Map<string, number>();
  const cells: Rows = new Map();
  /** The cells whose value has all fields. */
  const completed = new Set<string>();
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

  const reader: Reader = {
    get: <T>(table: Table<T>, key: string) => tables.get(table.name)?.get(key) as T | undefined,
    all: <T>(table: Table<T>) => (tables.get(table.name) ?? noRows).values() as Iterable<T>,
    count: ({ name }) => tables.get(name)?.size ?? 0,
    bytes: ({ name }) => bytes.get(name) ?? 0,
    read: <T>({ name, initial }: Cell<T>) => {
      if (!cells.has(name)) return initial;
      if (!completed.has(name)) cells.set(name, freeze(complete(cells.get(name), initial)));
      completed.add(name);
      return cells.get(name) as T;
    },
    version: ({ name }) => versions.get(name) ?? 0,
  };

  return {
    reader,
    apply(changes) {
      for (const [table, changed] of changes.tables) {
        for (const [key, row] of changed) put(table, key, row);
        touch(table.name);
      }
      for (const [{ name }, value] of changes.cells) {
        cells.set(name, value);
        completed.delete(name);
        touch(name);
      }
    },
    clear() {
      for (const name of tables.keys()) touch(name);
      for (const name of cells.keys()) touch(name);
      tables.clear();
      bytes.clear();
      cells.clear();
      completed.clear();
    },
    dump: () => ({
      tables: Object.fromEntries(
        sortedByName(tables)
          .filter(([, rows]) => rows.size > 0)
          .map(([name, rows]) => [name, [...rows.values()]]),
      ),
      cells: Object.fromEntries(sortedByName(cells)),
    }),
    onUpdate(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    notify() {
      for (const listener of listeners) listener();
    },
  };
}

function sortedByName<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
