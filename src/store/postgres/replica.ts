// This process's copy of what is in the database: loaded once, then kept up by reading whatever was changed since.
import { freeze } from '../changes.ts';
import { groupBy } from '../../lib/collections.ts';
import type { Copy } from '../copy.ts';
import type { Log, Records, Table } from '../transaction.ts';
import { nameOf, namesOf, toRow } from './columns.ts';
import { type Client, query, queryAll } from './database.ts';
import type { Secrets } from './secrets.ts';

export type Replica = {
  /** The version that the copy shows. */
  seen: number;
  /** Rows of the queue that are not finished. */
  unfinished: (queue: string) => number;
  /** What this process has itself done to a queue. */
  note: (queue: string, unfinished: number, version: number) => void;
  /** Begins a transaction and brings the copy up to date in it; with the lock, nobody else changes anything until it ends. */
  begin: (client: Client, lock: 'locked' | 'unlocked') => Promise<void>;
};

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
      for (const key of keys ?? []) copy.set('tables', table.name, key, undefined);
      for (const { key, row } of rows) copy.set('tables', table.name, key, row);
    };
  }

  async function readCells(client: Client, keys?: readonly string[]): Promise<Apply> {
    const records = await select<Entry & { value: unknown }>(client, 'select key, value from cells', keys);
    return () => {
      for (const { key, value } of records) copy.set('cells', cells, key, freeze(value));
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
      for (const { key: of, entry } of entries) copy.extend(log.name, of, [entry]);
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
    unfinished: (queue) => queueRows.get(queue)?.unfinished ?? 0,
    note: (name, unfinished, version) => noteQueue({ name, unfinished, touched: version }),
    async begin(client, lock) {
      const isLocked = lock === 'locked';
      const [, clock, changed, queues] = await queryAll(client, [
        isLocked ? 'begin' : 'begin isolation level repeatable read read only',
        `select version, pruned_to from clock${isLocked ? ' for update' : ''}`,
        `select distinct name, key from changes where version > ${replica.seen}`,
        'select name, unfinished, touched from queues',
      ]);
      const { version, pruned_to: prunedTo } = clock?.rows[0] as { version: number; pruned_to: number };
      if (version !== replica.seen) {
        // An older version than before: somebody has put back a backup.
        const isBehind = replica.seen < prunedTo || version < replica.seen;
        const apply = isBehind
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

type QueueRow = { name: string; unfinished: number; touched: number };

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
