// Collects the writes of a transaction until the store commits them.
//
// A transaction never writes to the store directly. Writes to tables and cells are recorded as final values and are visible to the
// transaction itself; writes to the other ports are recorded as a list of calls. The store then either performs the whole record or drops
// it. Every store shares this part; only the commit differs.
import type { FailureWindow } from '../webhooks/failure-window.ts';
import type { AnyCell, Cell, ChangedRow, Reader, Table } from './state.ts';
import type { KeptToken, Transaction, TransactionWrites } from './transaction.ts';

export type Rows = Map<string, unknown>;

export type Changes = {
  /** Rows by table and key; `undefined` marks a removed row. */
  tables: Map<Table<never>, Rows>;
  cells: Map<AnyCell, unknown>;
  /** Writes to the other ports, in call order. */
  writes: RecordedWrite[];
  /** The failure windows that `writes` sets, by webhook. */
  failures: Map<string, FailureWindow | null>;
  /** The users, in lower case, whose tokens `writes` ends, and the token that each of them keeps. */
  endedUsers: Map<string, KeptToken | undefined>;
  /** The hashes of other tokens that `writes` ends. */
  endedTokens: Set<string>;
  /** The uploads that `writes` deletes. */
  deletedUploads: Set<string>;
};

export type RecordedWrite = (writes: TransactionWrites) => Promise<unknown>;

/** The rows of other ports that the transaction reads (`Needs`). */
export type Facts = Pick<Transaction, 'token' | 'upload' | 'failures'>;

export function createChanges(): Changes {
  return {
    tables: new Map(),
    cells: new Map(),
    writes: [],
    failures: new Map(),
    endedUsers: new Map(),
    endedTokens: new Set(),
    deletedUploads: new Set(),
  };
}

/** Replaces the maps instead of clearing them: a map that is cleared again and again keeps its memory. */
export function clear(changes: Changes): void {
  if (changes.tables.size > 0) changes.tables = new Map();
  if (changes.cells.size > 0) changes.cells = new Map();
  if (changes.writes.length > 0) changes.writes = [];
  if (changes.failures.size > 0) changes.failures = new Map();
  if (changes.endedUsers.size > 0) changes.endedUsers = new Map();
  if (changes.endedTokens.size > 0) changes.endedTokens = new Set();
  if (changes.deletedUploads.size > 0) changes.deletedUploads = new Set();
}

export function isEmpty({ tables, cells, writes }: Changes): boolean {
  return tables.size === 0 && cells.size === 0 && writes.length === 0;
}

/** Adds `later` to `into`; later values win. */
export function merge(into: Changes, later: Changes): void {
  for (const [table, rows] of later.tables) {
    const known = rowsIn(into, table);
    for (const [key, row] of rows) known.set(key, row);
  }
  for (const [cell, value] of later.cells) into.cells.set(cell, value);
  for (const write of later.writes) into.writes.push(write);
  for (const [webhookId, window] of later.failures) into.failures.set(webhookId, window);
  for (const [username, kept] of later.endedUsers) into.endedUsers.set(username, kept);
  for (const hash of later.endedTokens) into.endedTokens.add(hash);
  for (const id of later.deletedUploads) into.deletedUploads.add(id);
}

/** A reader that shows `base` with the changes applied. */
export function readThrough(base: Reader, changes: Changes): Reader {
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
  };
}

/** Shows `facts` with the changes applied. */
export function factsThrough(facts: Facts, changes: Changes): Facts {
  return {
    token: (hash) => {
      const token = facts.token(hash);
      if (!token || changes.endedTokens.has(hash)) return undefined;
      const username = token.username.toLowerCase();
      if (!changes.endedUsers.has(username)) return token;
      const kept = changes.endedUsers.get(username);
      return kept?.hash === hash ? { ...token, credentialId: kept.credentialId } : undefined;
    },
    upload: (id) => (changes.deletedUploads.has(id) ? undefined : facts.upload(id)),
    failures: (webhookId) => {
      const changed = changes.failures.get(webhookId);
      return changed === undefined ? facts.failures(webhookId) : changed;
    },
  };
}

/** A transaction that records its writes in `changes` and reads through them. */
export function createTransaction(base: Reader, changes: Changes, facts: Facts): Transaction {
  const record = (write: RecordedWrite) => void changes.writes.push(write);
  const recordCount = (write: (writes: TransactionWrites) => Promise<number>) =>
    new Promise<number>((resolve) => {
      record(async (writes) => resolve(await write(writes)));
    });
  return {
    ...readThrough(base, changes),
    put: (table, row) => void rowsIn(changes, table).set(table.keyOf(row), freeze(row)),
    remove: (table, key) => void rowsIn(changes, table).set(key, undefined),
    write: (cell, value) => void changes.cells.set(cell, freeze(value)),
    changed: () => changedRows(base, changes),
    ...factsThrough(facts, changes),
    audit: {
      record: (entry) => record((writes) => writes.audit.record(entry)),
    },
    deliveries: {
      enqueue: (deliveries) => {
        const added = deliveries.map(freeze);
        record((writes) => writes.deliveries.enqueue(added));
      },
      markRedelivered: (id, as) => record((writes) => writes.deliveries.markRedelivered(id, as)),
      discardPending: (webhookId, at) =>
        recordCount((writes) => writes.deliveries.discardPending(webhookId, at)),
      deleteAll: (webhookId) => {
        changes.failures.set(webhookId, null);
        return recordCount((writes) => writes.deliveries.deleteAll(webhookId));
      },
      setFailures: (webhookId, window) => {
        changes.failures.set(webhookId, freeze(window));
        record((writes) => writes.deliveries.setFailures(webhookId, window));
      },
      complete: (claimed, delivery) => {
        freeze(delivery);
        record((writes) => writes.deliveries.complete(claimed, delivery));
      },
    },
    jobs: {
      savePlan: (plan) => {
        freeze(plan);
        record((writes) => writes.jobs.savePlan(plan));
      },
      deletePlan: (jobId) => record((writes) => writes.jobs.deletePlan(jobId)),
      appendMessages: (jobId, from, messages) => {
        const added = messages.map(freeze);
        record((writes) => writes.jobs.appendMessages(jobId, from, added));
      },
      archive: (job) => {
        freeze(job);
        record((writes) => writes.jobs.archive(job));
      },
    },
    tokens: {
      endAll: (username, except) => {
        changes.endedUsers.set(username.toLowerCase(), except);
        record((writes) => writes.tokens.endAll(username, except));
      },
      end: (hash) => {
        changes.endedTokens.add(hash);
        record((writes) => writes.tokens.end(hash));
      },
    },
    uploads: {
      delete: (id) => {
        changes.deletedUploads.add(id);
        record((writes) => writes.uploads.delete(id));
      },
    },
  };
}

export function rowsIn(changes: Changes, table: Table<never>): Rows {
  const rows = changes.tables.get(table) ?? new Map<string, unknown>();
  changes.tables.set(table, rows);
  return rows;
}

function changedRows(base: Reader, { tables, cells }: Changes): ChangedRow[] {
  const rows: ChangedRow[] = [];
  for (const [table, changed] of tables)
    for (const [key, after] of changed) rows.push({ of: table, key, before: base.get(table, key), after });
  for (const [cell, after] of cells)
    rows.push({ of: cell, key: null, before: base.read(cell as Cell<unknown>), after });
  return rows;
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
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
