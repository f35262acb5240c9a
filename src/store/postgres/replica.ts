// Keeps this process's copy of tables, cells and logs in step with the database.
//
// `seen` is the version that the copy shows. `begin` opens a transaction, compares the version in `clock` with `seen` and reads what is
// missing in the same transaction, so the copy always shows one consistent version:
//
// - The version is the same: the copy is current.
// - `changes` reaches back to `seen`: read the listed rows and cells, and the entries that were added to the listed logs.
// - `changes` does not reach back that far, or the version is lower than `seen` because a backup was restored: load everything.
//
// All reads finish before the first one is applied. Without this, a failed query would leave the copy between two versions.
import { freeze } from '../changes.ts';
import { groupBy } from '../../lib/collections.ts';
import type { Copy } from '../copy.ts';
import type { Log, Records, Table } from '../transaction.ts';
import { nameOf, namesOf, toRow } from './columns.ts';
import { type Client, query, queryAll } from './database.ts';
import type { Secrets } from './secrets.ts';

export type Replica = {
  seen: number;
  /** The unfinished rows in the queue: their number and the sum of their bytes. */
  unfinished: (queue: string) => Unfinished;
  /** Records the effect of this process's own update on a queue. */
  note: (queue: string, unfinished: Unfinished, version: number) => void;
  /** Begins a transaction and updates the copy in it. `locked` stops the updates of all other processes until the transaction ends. */
  begin: (client: Client, lock: 'locked' | 'unlocked') => Promise<void>;
};

export type Unfinished = { readonly rows: number; readonly bytes: number };

type Entry = { readonly key: string };
type Apply = () => void;

const cells = 'cells';

export function createReplica(copy: Copy, { tables, logs }: Records, secrets: Secrets): Replica {
  const tableOf = new Map(tables.map((table) => [table.name, table]));
  const logOf = new Map(logs.map((log) => [log.name, log]));
  const queueRows = new Map<string, QueueRow>();

  function noteQueue(row: QueueRow): void {
    if (queueRows.get(row.name)?.touched !== row.touched) copy.touch(row.name);
    queueRows.set(row.name, row);
  }

  async function readTable(client: Client, table: Table<never>, keys?: readonly string[]): Promise<Apply> {
    const records = await select(client, `select ${namesOf(table.shape)} from ${nameOf(table.name)}`, keys);
    const rows = records.map((record) => ({
      key: record.key,
      row: toRow(table, record, secrets),
    }));
    return () => {
      for (const key of keys ?? []) copy.setRow(table, key, undefined);
      for (const { key, row } of rows) copy.setRow(table, key, row);
    };
  }

  async function readCells(client: Client, keys?: readonly string[]): Promise<Apply> {
    const records = await select<Entry & { value: unknown }>(client, 'select key, value from cells', keys);
    return () => {
      for (const { key, value } of records) copy.setCell(key, freeze(value));
    };
  }

  async function readLog(client: Client, log: Log<unknown>, key?: string): Promise<Apply> {
    const from = `select ${namesOf(log.shape)} from ${nameOf(log.name)}`;
    const known = key === undefined ? 0 : copy.entries(log, key).length;
    const { rows: records } =
      key === undefined
        ? await query<Entry>(client, `${from} order by key, number`)
        : await query<Entry>(client, `${from} where key = $1 and number >= $2 order by number`, [key, known]);
    const entries = records.map((record) => ({
      key: record.key,
      entry: toRow(log, record, secrets),
    }));
    return () => {
      for (const { key: entryKey, entry } of entries) copy.extend(log.name, entryKey, [entry]);
    };
  }

  async function readAll(client: Client): Promise<Apply> {
    const reads: Promise<Apply>[] = [
      readCells(client),
      ...tables.map((table) => readTable(client, table)),
      ...logs.map((log) => readLog(client, log)),
    ];
    const applies = await Promise.all(reads);
    return () => {
      copy.clear();
      for (const apply of applies) apply();
    };
  }

  async function readChanged(
    client: Client,
    changed: readonly { name: string; key: string }[],
  ): Promise<Apply> {
    const keys = groupBy(changed, ({ name }) => name);
    const reads = [...keys].flatMap(([name, entries]): Promise<Apply>[] => {
      const names = entries.map(({ key }) => key);
      const table = tableOf.get(name);
      const log = logOf.get(name);
      if (table) return [readTable(client, table, names)];
      if (log) return names.map((key) => readLog(client, log, key));
      return name === cells ? [readCells(client, names)] : [];
    });
    const applies = await Promise.all(reads);
    return () => applies.forEach((apply) => apply());
  }

  const replica: Replica = {
    seen: -1,
    unfinished: (queue) => {
      const { unfinished: rows = 0, unfinished_bytes: bytes = 0 } = queueRows.get(queue) ?? {};
      return { rows, bytes };
    },
    note: (name, { rows, bytes }, version) =>
      noteQueue({ name, unfinished: rows, unfinished_bytes: bytes, touched: version }),
    async begin(client, lock) {
      const isLocked = lock === 'locked';
      const [, clock, changed, queues] = await queryAll(client, [
        isLocked ? 'begin' : 'begin isolation level repeatable read read only',
        `select version, pruned_to from clock${isLocked ? ' for update' : ''}`,
        `select distinct name, key from changes where version > ${replica.seen}`,
        'select name, unfinished, unfinished_bytes, touched from queues',
      ]);
      const { version, pruned_to: prunedTo } = clock?.rows[0] as { version: number; pruned_to: number };
      if (version !== replica.seen) {
        const mustReload = replica.seen < prunedTo || version < replica.seen;
        const apply = mustReload
          ? await readAll(client)
          : await readChanged(client, (changed?.rows ?? []) as { name: string; key: string }[]);
        apply();
        replica.seen = version;
      }
      for (const row of (queues?.rows ?? []) as QueueRow[]) noteQueue(row);
    },
  };
  return replica;
}

type QueueRow = { name: string; unfinished: number; unfinished_bytes: number; touched: number };

async function select<R extends Entry>(
  client: Client,
  from: string,
  keys: readonly string[] | undefined,
): Promise<(R & Record<string, unknown>)[]> {
  const { rows } = keys
    ? await query<R & Record<string, unknown>>(client, `${from} where key = any($1::text[])`, [keys])
    : await query<R & Record<string, unknown>>(client, `${from} order by key`);
  return rows;
}
