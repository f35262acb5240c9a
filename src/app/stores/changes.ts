// Collects the writes of a transaction to the ports of the features until the store commits them.
//
// They are recorded as a list of calls. What the transaction reads of those ports shows the recorded writes. Both
// stores share this part; only the commit differs.
import { type StateChanges, changedRows, freeze, readThrough, rowsIn } from '../../store/changes.ts';
import type { Reader } from '../../store/state.ts';
import type { Count, Transaction, TransactionFacts, TransactionWrites } from '../../store/transaction.ts';
import type { Delivery } from '../../webhooks/queue/delivery.ts';
import type { FailureWindow } from '../../webhooks/sending/failure-window.ts';

export type Changes = StateChanges & {
  /** Writes to the ports, in the order of the calls. */
  writes: RecordedWrite[];
  /** The claimed deliveries that `writes` completes, by id. */
  completed: Map<string, Delivery>;
  /** A delivery that `writes` completes after it has completed or deleted it: the update must fail. */
  lostClaim: string | undefined;
  /** The webhooks whose deliveries `writes` deletes. */
  emptied: Set<string>;
  /** The failure windows that `writes` sets, by webhook. */
  failures: Map<string, FailureWindow | null>;
  /** The uploads that `writes` deletes. */
  deletedUploads: Set<string>;
  /** Whether the update has a count, which the store may set after the commit. */
  hasCount: boolean;
};

type RecordedWrite = (writes: TransactionWrites) => Promise<unknown>;

export function createChanges(): Changes {
  return {
    tables: new Map(),
    cells: new Map(),
    writes: [],
    completed: new Map(),
    lostClaim: undefined,
    emptied: new Set(),
    failures: new Map(),
    deletedUploads: new Set(),
    hasCount: false,
  };
}

/** Replaces the maps instead of clearing them: a map that is cleared again and again keeps its memory. */
export function clear(changes: Changes): void {
  if (changes.tables.size > 0) changes.tables = new Map();
  if (changes.cells.size > 0) changes.cells = new Map();
  if (changes.writes.length > 0) changes.writes = [];
  if (changes.completed.size > 0) changes.completed = new Map();
  changes.lostClaim = undefined;
  if (changes.emptied.size > 0) changes.emptied = new Set();
  if (changes.failures.size > 0) changes.failures = new Map();
  if (changes.deletedUploads.size > 0) changes.deletedUploads = new Set();
  changes.hasCount = false;
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
  for (const [id, claimed] of later.completed) into.completed.set(id, claimed);
  for (const webhookId of later.emptied) into.emptied.add(webhookId);
  for (const [webhookId, window] of later.failures) into.failures.set(webhookId, window);
  for (const id of later.deletedUploads) into.deletedUploads.add(id);
}

/** Shows `facts` with the changes applied. */
export function factsThrough(facts: TransactionFacts, changes: Changes): TransactionFacts {
  return {
    upload: (id) => (changes.deletedUploads.has(id) ? undefined : facts.upload(id)),
    failures: (webhookId) => {
      const changed = changes.failures.get(webhookId);
      return changed === undefined ? facts.failures(webhookId) : changed;
    },
  };
}

/** A transaction that records its writes in `changes` and reads through them. */
export function createTransaction(base: Reader, changes: Changes, facts: TransactionFacts): Transaction {
  const record = (write: RecordedWrite) => void changes.writes.push(write);
  const recordCount = (write: (writes: TransactionWrites, count: Count) => Promise<void>): Count => {
    const count = { value: 0 };
    changes.hasCount = true;
    record((writes) => write(writes, count));
    return count;
  };
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
        recordCount((writes, count) => writes.deliveries.discardPending(webhookId, at, count)),
      deleteAll: (webhookId) => {
        changes.failures.set(webhookId, null);
        changes.emptied.add(webhookId);
        return recordCount((writes, count) => writes.deliveries.deleteAll(webhookId, count));
      },
      setFailures: (webhookId, window) => {
        changes.failures.set(webhookId, freeze(window));
        record((writes) => writes.deliveries.setFailures(webhookId, window));
      },
      complete: (claimed, delivery) => {
        const { id, webhookId } = claimed;
        if (changes.completed.has(id) || changes.emptied.has(webhookId)) changes.lostClaim = id;
        changes.completed.set(id, claimed);
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
    uploads: {
      delete: (id) => {
        changes.deletedUploads.add(id);
        record((writes) => writes.uploads.delete(id));
      },
    },
  };
}
