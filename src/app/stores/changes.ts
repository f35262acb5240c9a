// Collects the writes of a transaction to the ports of the features until the store commits them.
//
// They are recorded as a list of calls. Both stores share this part; only the commit differs.
import {
  type StateChanges,
  changedRows,
  createStateChanges,
  freeze,
  readThrough,
  rowsIn,
} from '../../store/changes.ts';
import type { Reader, Table } from '../../store/state.ts';
import type { Transaction, TransactionWrites } from '../../store/transaction.ts';
import { LostClaim } from '../../webhooks/queue/delivery-queue.ts';
import type { Delivery } from '../../webhooks/queue/delivery.ts';

export type Changes = StateChanges & {
  /** The values that the present rule has replaced. Rules of one batch share all other changes. */
  before: StateChanges;
  /** Writes to the ports, in the order of the calls. */
  writes: RecordedWrite[];
  /** The claimed deliveries that `writes` completes, by id. */
  completed: Map<string, Delivery>;
};

type RecordedWrite = (writes: TransactionWrites) => Promise<unknown>;

export function createChanges(): Changes {
  return {
    ...createStateChanges(),
    before: createStateChanges(),
    writes: [],
    completed: new Map(),
  };
}

export function clear(changes: Changes): void {
  changes.tables = emptied(changes.tables);
  changes.cells = emptied(changes.cells);
  changes.before = { tables: emptied(changes.before.tables), cells: emptied(changes.before.cells) };
  if (changes.writes.length > 0) changes.writes = [];
  changes.completed = emptied(changes.completed);
}

/** Replaces the map instead of clearing it: a map that is cleared again and again keeps its memory. */
function emptied<K, V>(map: Map<K, V>): Map<K, V> {
  return map.size > 0 ? new Map<K, V>() : map;
}

export function isEmpty({ tables, cells, writes }: Changes): boolean {
  return tables.size === 0 && cells.size === 0 && writes.length === 0;
}

/** A transaction that records its writes in `changes` and reads through them. */
export function createTransaction(base: Reader, changes: Changes): Transaction {
  const record = (write: RecordedWrite) => void changes.writes.push(write);
  const reader = readThrough(base, changes);
  const replace = (table: Table<never>, key: string, row: unknown) => {
    const before = rowsIn(changes.before, table);
    if (!before.has(key)) before.set(key, reader.get(table, key));
    rowsIn(changes, table).set(key, row);
  };
  return {
    ...reader,
    put: (table, row) => replace(table, table.keyOf(row), freeze(row)),
    remove: (table, key) => replace(table, key, undefined),
    write: (cell, value) => {
      const { cells } = changes.before;
      if (!cells.has(cell)) cells.set(cell, reader.read(cell));
      changes.cells.set(cell, freeze(value));
    },
    changed: () => changedRows(changes.before, changes),
    audit: {
      record: (entry) => record((writes) => writes.audit.record(entry)),
    },
    deliveries: {
      enqueue: (deliveries) => {
        const added = deliveries.map(freeze);
        record((writes) => writes.deliveries.enqueue(added));
      },
      announce: (event, options) => record((writes) => writes.deliveries.announce(freeze(event), options)),
      markRedelivered: (id, as) => record((writes) => writes.deliveries.markRedelivered(id, as)),
      discardPending: (webhookId, at) => record((writes) => writes.deliveries.discardPending(webhookId, at)),
      deleteAll: (webhookId) => record((writes) => writes.deliveries.deleteAll(webhookId)),
      complete: (claimed, delivery) => {
        // Another update of the same batch may have completed it.
        if (changes.completed.has(claimed.id)) throw new LostClaim(claimed.id);
        changes.completed.set(claimed.id, claimed);
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
  };
}
