// The default store: everything in this process's memory, gone when it ends.
import { type MemoryQueue, createMemoryQueue } from './memory-queue.ts';
import type { Store } from './store.ts';
import type { Cell, Log, Queue, Reader, Table, Transaction } from './transaction.ts';

type Rows = Map<string, unknown>;

const noRows: Rows = new Map();

export function createMemoryStore(): Store {
  const tables = new Map<string, Rows>();
  const cells: Rows = new Map();
  const logs = new Map<string, unknown[]>();
  const queues = new Map<string, unknown>();
  const listeners = new Set<() => void>();
  const versions = new Map<string, number>();

  function queueOf<T>(queue: Queue<T>): MemoryQueue<T> {
    const known = queues.get(queue.name) as MemoryQueue<T> | undefined;
    const found = known ?? createMemoryQueue(queue);
    queues.set(queue.name, found);
    return found;
  }

  const reader: Reader = {
    get: <T>(table: Table<T>, key: string) => tables.get(table.name)?.get(key) as T | undefined,
    all: <T>(table: Table<T>) => (tables.get(table.name) ?? noRows).values() as Iterable<T>,
    read: <T>(cell: Cell<T>) => (cells.has(cell.name) ? cells.get(cell.name) : cell.initial) as T,
    entries: <T>(log: Log<T>, key: string) => (logs.get(keyOfLog(log, key)) ?? []) as readonly T[],
    waiting: (queue) => queueOf(queue).waiting(),
  };

  // One for all updates, which come one after another: there are many, and they are short.
  const changes = createChanges();
  const transaction = createTransaction(reader, queueOf, changes);

  function commit(): void {
    for (const [name, changed] of changes.tables) {
      const rows = tables.get(name) ?? new Map<string, unknown>();
      tables.set(name, rows);
      for (const [key, row] of changed) {
        if (row === undefined) rows.delete(key);
        else rows.set(key, row);
      }
    }
    for (const [name, value] of changes.cells) cells.set(name, value);
    for (const [key, entries] of changes.logs) {
      const log = logs.get(key) ?? [];
      logs.set(key, log);
      for (const entry of entries) log.push(entry);
    }
    for (const act of changes.acts) act();
    for (const name of [...changes.tables.keys(), ...changes.cells.keys(), ...changes.queues]) {
      versions.set(name, (versions.get(name) ?? 0) + 1);
    }
  }

  return {
    ...reader,
    update: (change) =>
      new Promise((resolve) => {
        try {
          const result = change(transaction);
          commit();
          resolve(result);
        } finally {
          changes.clear();
        }
        for (const listener of listeners) listener();
      }),
    claim: (queue, claim) => Promise.resolve(queueOf(queue).claim(claim)),
    find: (queue, key) => Promise.resolve(queueOf(queue).find(key)),
    page: (queue, owner, start, num) => Promise.resolve(queueOf(queue).page(owner, start, num)),
    version: (of) => versions.get(of.name) ?? 0,
    onUpdate(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    problems: () => [],
    close: () => Promise.resolve(),
  };
}

/** What a transaction has written so far; a removed row is there as `undefined`. */
type Changes = {
  tables: Map<string, Rows>;
  cells: Rows;
  logs: Map<string, unknown[]>;
  /** The names of the queues that are touched. */
  queues: Set<string>;
  /** What is done to them when the transaction takes effect. */
  acts: (() => void)[];
  clear: () => void;
};

function createChanges(): Changes {
  const changes: Changes = {
    ...{ tables: new Map(), cells: new Map(), logs: new Map(), queues: new Set<string>(), acts: [] },
    // New ones, because a map that is emptied again and again holds on to memory.
    clear() {
      if (changes.tables.size > 0) changes.tables = new Map();
      if (changes.cells.size > 0) changes.cells = new Map();
      if (changes.logs.size > 0) changes.logs = new Map();
      if (changes.queues.size > 0) changes.queues = new Set();
      if (changes.acts.length > 0) changes.acts = [];
    },
  };
  return changes;
}

function keyOfLog({ name }: { name: string }, key: string): string {
  return `${name} ${key}`;
}

function createTransaction(
  base: Reader,
  queueOf: <T>(queue: Queue<T>) => MemoryQueue<T>,
  changes: Changes,
): Transaction {
  function later<T>(queue: Queue<T>, act: (queue: MemoryQueue<T>) => void): void {
    changes.queues.add(queue.name);
    changes.acts.push(() => act(queueOf(queue)));
  }

  function changedRows(name: string): Rows {
    const rows = changes.tables.get(name) ?? new Map<string, unknown>();
    changes.tables.set(name, rows);
    return rows;
  }

  return {
    get: <T>(table: Table<T>, key: string) => {
      const changed = changes.tables.get(table.name);
      return changed?.has(key) ? (changed.get(key) as T | undefined) : base.get(table, key);
    },
    all: <T>(table: Table<T>) => {
      const changed = changes.tables.get(table.name);
      return changed ? merge(table, base.all(table), changed) : base.all(table);
    },
    read: <T>(cell: Cell<T>) =>
      changes.cells.has(cell.name) ? (changes.cells.get(cell.name) as T) : base.read(cell),
    entries: (log, key) => base.entries(log, key),
    waiting: (queue) => base.waiting(queue),
    append: (log, key, entries) => {
      const earlier = changes.logs.get(keyOfLog(log, key)) ?? [];
      changes.logs.set(keyOfLog(log, key), [...earlier, ...entries.map(freeze)]);
    },
    put: (table, row) => void changedRows(table.name).set(table.keyOf(row), freeze(row)),
    remove: (table, key) => void changedRows(table.name).set(key, undefined),
    write: (cell, value) => void changes.cells.set(cell.name, freeze(value)),
    enqueue: (queue, row) => later(queue, ({ put }) => put(freeze(row))),
    settle: (queue, row) => later(queue, ({ settle }) => settle(freeze(row))),
    amend: (queue, owner, change) => {
      for (const row of queueOf(queue).unclaimed(owner)) {
        const changed = freeze(change(row));
        if (changed === row) continue;
        later(queue, ({ find, put }) => {
          if (find(queue.keyOf(row)) !== undefined) put(changed);
        });
      }
    },
    trim: (queue, owner, keep) => later(queue, ({ trim }) => trim(owner, keep)),
    drop: (queue, owner) => later(queue, ({ drop }) => drop(owner)),
  };
}

function* merge<T>(table: Table<T>, rows: Iterable<T>, changed: Rows): Iterable<T> {
  for (const row of rows) if (!changed.has(table.keyOf(row))) yield row;
  for (const row of changed.values()) if (row !== undefined) yield row as T;
}

/** Values are handed out without copying, so nobody may change them. */
function freeze<T>(value: T): T {
  // Bytes cannot be frozen; whoever puts them in gives them away.
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || ArrayBuffer.isView(value))
    return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
