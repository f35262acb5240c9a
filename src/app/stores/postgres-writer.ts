// Runs updates of the replicated state in batches.
//
// Updates that arrive during a commit form the next batch. A batch is one transaction of two round trips:
//
// 1. Lock the row in `clock`, so that the updates of all processes run one after another; read the changes of
//    other processes.
// 2. Write the rows, the recorded writes and the next version, notify the other processes, and commit.
//
// The rules run one after another, each on top of the one before. They run before the first round trip, so that the
// lock is not held meanwhile, and again after it if the state has changed.
//
// If PostgreSQL aborted the transaction, the batch runs again. If a rule threw, a claim was lost or PostgreSQL refused
// a value, every update runs alone, so that only the faulty one is rejected (batcher.ts).
import { insertEntries } from '../../audit/audit-store-postgres.ts';
import type { Mutex } from '../../lib/async.ts';
import type { AuditEntry } from '../../store/audit-entry.ts';
import { createStateChanges } from '../../store/changes.ts';
import { Batcher, attempt } from '../../store/postgres/batcher.ts';
import { type Client, type Database, query } from '../../store/postgres/database.ts';
import { isAborted } from '../../store/postgres/errors.ts';
import { type Replica, cellKind } from '../../store/postgres/replica.ts';
import type { Reader } from '../../store/state.ts';
import type { Transaction, TransactionWrites } from '../../store/transaction.ts';
import { type Changes, createChanges, createTransaction, isEmpty } from './changes.ts';

type WriterOptions = {
  readonly database: Database;
  readonly replica: Replica;
  readonly reader: Reader;
  /** Protects the copy: only one holder at a time changes it. */
  readonly mutex: Mutex;
  /** Runs a transaction that may change the number of pending deliveries. */
  readonly during: <T>(transaction: () => Promise<T>) => Promise<T>;
  /** The recorded writes, performed on the connection of the transaction. */
  readonly writesOn: (client: Client) => Writes;
  readonly channel: string;
  /** The payload of notifications: a process ignores its own. */
  readonly self: string;
  readonly onCommit: () => void;
};

export type Writes = TransactionWrites & {
  /** The recorded entries of the audit trail, which the writer inserts. */
  readonly entries: readonly AuditEntry[];
  /** Performs the writes that are collected. Throws if a claim is lost. */
  readonly finish: () => Promise<void>;
  /** Called after the commit. Resolves when what the writes have left to do is done. */
  readonly committed: () => Promise<void>;
};

type Rule = (transaction: Transaction) => unknown;

/** `followUp`: what the commit has left to do, without the lock. */
type Result = { readonly value: unknown; readonly followUp?: Promise<void> };

type StateRow = { readonly kind: string; readonly key: string; readonly value: string | null };

type Plan = {
  readonly values: readonly unknown[];
  readonly changes: Changes;
  readonly rows: readonly StateRow[];
};

const upsertRows = `insert into state (kind, key, value, version)
  select *, $4 from unnest($1::text[], $2::text[], $3::json[])
  on conflict (kind, key) do update set value = excluded.value, version = excluded.version`;

const maxAtOnce = 500;
/**
 * The client encodes the rows of a statement when it sends it. With all rows of a large catalog in one, the process
 * would be silent for longer than PostgreSQL lets a transaction wait.
 */
const maxRowsPerStatement = 5_000;
const maxAborts = 10;

export class Writer {
  readonly #options: WriterOptions;
  readonly #batcher: Batcher<Rule, Result>;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#batcher = new Batcher({
      run: (rules) => options.mutex(() => options.during(() => this.#run(rules))),
      maxItems: maxAtOnce,
    });
  }

  async update<T>(rule: (transaction: Transaction) => T): Promise<T> {
    const { value, followUp } = await this.#batcher.submit(rule);
    await followUp;
    return value as T;
  }

  async #run(rules: readonly Rule[]): Promise<readonly Result[]> {
    const { database, onCommit } = this.#options;
    for (let aborts = 0; ; aborts += 1) {
      try {
        const results = await database.use((client) => this.#commit(client, rules));
        if (results instanceof Error) throw results;
        onCommit();
        return results;
      } catch (error) {
        if (!isAborted((error as Error).cause) || aborts === maxAborts) throw error;
      }
    }
  }

  /** Returns what a rule throws: the connection is fine. */
  async #commit(client: Client, rules: readonly Rule[]): Promise<readonly Result[] | Error> {
    const { database, replica, writesOn } = this.#options;
    const early = attempt(() => this.#plan(rules));
    const [, , hasChanged] = await Promise.all([
      query(client, 'begin'),
      query(client, 'select from clock for update'),
      replica.follow(client),
    ]);
    database.requireWritable();
    const plan = hasChanged ? attempt(() => this.#plan(rules)) : early;
    if (plan instanceof Error || isEmpty(plan.changes)) {
      await query(client, 'rollback');
      return plan instanceof Error ? plan : plan.values.map((value) => ({ value }));
    }
    const { values, changes, rows } = plan;
    const writes = writesOn(client);
    const performed = Promise.all(changes.writes.map((write) => write(writes)));
    // `await performed` below reports it, unless `finish` fails first.
    performed.catch(() => undefined);
    // The commit must not be sent before it is known that no claim is lost.
    await writes.finish();
    const version = rows.length > 0 ? replica.seen + 1 : replica.seen;
    await Promise.all([
      performed,
      ...(rows.length > 0
        ? this.#writeState(client, rows, version, writes.entries)
        : writeEntries(client, writes.entries)),
      query(client, 'commit'),
    ]);
    if (rows.length > 0) replica.applyOwn(changes, version);
    // The update has succeeded, whatever becomes of the rest.
    const followUp = writes.committed().catch(() => undefined);
    return values.map((value) => ({ value, followUp }));
  }

  /** Throws what a rule throws. */
  #plan(rules: readonly Rule[]): Plan {
    const changes = createChanges();
    const transaction = createTransaction(this.#options.reader, changes);
    const values = rules.map((rule) => {
      changes.before = createStateChanges();
      return rule(transaction);
    });
    return { values, changes, rows: this.#encode(changes) };
  }

  #encode(changes: Changes): readonly StateRow[] {
    const rows = [...changes.tables].flatMap(([table, changed]) =>
      [...changed].map(([key, row]) => ({
        kind: table.name,
        key,
        value: this.#options.replica.encode(table, key, row),
      })),
    );
    for (const [{ name }, value] of changes.cells)
      rows.push({ kind: cellKind, key: name, value: JSON.stringify(value) });
    return rows;
  }

  /**
   * Writes the rows, and the entries of the audit trail in the same statement: one of their own would cost more
   * than twice as much.
   */
  #writeState(
    client: Client,
    rows: readonly StateRow[],
    version: number,
    entries: readonly AuditEntry[],
  ): Promise<unknown>[] {
    const { channel, self } = this.#options;
    const [first = [], ...others] = slices(rows, maxRowsPerStatement).map((slice) => [
      slice.map(({ kind }) => kind),
      slice.map(({ key }) => key),
      slice.map(({ value }) => value),
      version,
    ]);
    return [
      entries.length > 0
        ? query(client, `with audited as (${insertEntries('$5')}) ${upsertRows}`, [
            ...first,
            JSON.stringify(entries),
          ])
        : query(client, upsertRows, first),
      ...others.map((values) => query(client, upsertRows, values)),
      query(client, 'update clock set version = $1', [version]),
      query(client, 'select pg_notify($1, $2)', [channel, self]),
    ];
  }
}

function writeEntries(client: Client, entries: readonly AuditEntry[]): Promise<unknown>[] {
  return entries.length > 0 ? [query(client, insertEntries('$1'), [JSON.stringify(entries)])] : [];
}

function slices<T>(all: readonly T[], length: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / length) }, (_, n) =>
    all.slice(n * length, (n + 1) * length),
  );
}
