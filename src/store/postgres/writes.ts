// Writes the changes of a transaction: rows, cells, logs and archives, and the entries in `changes` that other processes read.
import type { Changes } from '../changes.ts';
import type { Reader, Table } from '../transaction.ts';
import { type Column, byColumn, columnsOf, nameOf, namesOf, placeOf, toColumn } from './columns.ts';
import { type Client, query } from './database.ts';
import type { Secrets } from './secrets.ts';

export type WritesOptions = { readonly base: Pick<Reader, 'entries'>; readonly secrets: Secrets };

/** Writes everything but the queues. The statements are sent without waiting for one another. */
export async function writeChanges(
  client: Client,
  changes: Changes,
  version: number,
  { base, secrets }: WritesOptions,
): Promise<void> {
  const changed: { name: string; key: string }[] = [];
  const sent: Promise<unknown>[] = [];

  for (const [table, rows] of changes.tables) {
    const kept = [...rows].flatMap(([key, row]) => (row === undefined ? [] : [{ key, row }]));
    const gone = [...rows].flatMap(([key, row]) => (row === undefined ? key : []));
    if (kept.length > 0) sent.push(...put(client, table, kept, secrets));
    if (gone.length > 0)
      sent.push(query(client, `delete from ${nameOf(table.name)} where key = any($1::text[])`, [gone]));
    if (!('isArchive' in table)) for (const key of rows.keys()) changed.push({ name: table.name, key });
  }

  if (changes.cells.size > 0) {
    const { names, unnest, values } = byColumn([
      { name: 'key', type: 'text', values: [...changes.cells.keys()].map(({ name }) => name) },
      {
        name: 'value',
        type: 'json',
        values: [...changes.cells.values()].map((value) => JSON.stringify(value)),
      },
    ]);
    sent.push(
      query(
        client,
        `insert into cells (${names}) select * from ${unnest} on conflict (key) do update set value = excluded.value`,
        values,
      ),
    );
    for (const { name } of changes.cells.keys()) changed.push({ name: 'cells', key: name });
  }

  for (const [log, lists] of changes.logs) {
    const entries = [...lists].flatMap(([key, added]) => {
      const known = base.entries(log, key).length;
      return added.map((entry, index) => ({ key, entry, number: known + index }));
    });
    const { names, unnest, values } = byColumn([
      { name: 'key', type: 'text', values: entries.map(({ key }) => key) },
      { name: 'number', type: 'bigint', values: entries.map(({ number }) => number) },
      ...columnsOf(log.shape).map((column) => ({
        ...column,
        values: entries.map(({ key, entry }) => toColumn(column, entry, placeOf(log, key), secrets)),
      })),
    ]);
    sent.push(query(client, `insert into ${nameOf(log.name)} (${names}) select * from ${unnest}`, values));
    for (const key of lists.keys()) changed.push({ name: log.name, key });
  }

  if (changed.length > 0) {
    sent.push(
      query(
        client,
        'insert into changes (version, name, key) select $1, * from unnest($2::text[], $3::text[])',
        [version, changed.map(({ name }) => name), changed.map(({ key }) => key)],
      ),
    );
  }
  await Promise.all(sent);
}

type Kept = { readonly key: string; readonly row: unknown };

function put(
  client: Client,
  table: Table<never>,
  kept: readonly Kept[],
  secrets: Secrets,
): Promise<unknown>[] {
  const columns = columnsOf(table.shape);
  const valuesOf = (column: Column, rows: readonly Kept[]) =>
    rows.map(({ key, row }) => toColumn(column, row, placeOf(table, key), secrets));
  const assigned = columns.map(({ name }) => `${name} = excluded.${name}`).join(', ');
  const insert = (names: string, from: string, values: readonly unknown[]) =>
    query(
      client,
      `insert into ${nameOf(table.name)} (${names}) ${from} on conflict (key) do update set ${assigned}`,
      values,
    );
  // Rows with bytes are inserted one by one: the driver sends a single Buffer as binary, but writes Buffers in an array as text.
  if (columns.some(({ kind }) => kind === 'bytes')) {
    const placeholders = ['key', ...columns].map((_column, index) => `$${index + 1}`).join(', ');
    return kept.map((one) => {
      const values = [one.key, ...columns.flatMap((column) => valuesOf(column, [one]))];
      return insert(namesOf(table.shape), `values (${placeholders})`, values);
    });
  }
  const { names, unnest, values } = byColumn([
    { name: 'key', type: 'text', values: kept.map(({ key }) => key) },
    ...columns.map((column) => ({ ...column, values: valuesOf(column, kept) })),
  ]);
  return [insert(names, `select * from ${unnest}`, values)];
}
