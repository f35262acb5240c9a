// The SQL that makes the tables of given records, as src/migrations makes those of the real ones.
import type { AnyShape, Kind } from '../../src/store/shape.ts';
import type { Records } from '../../src/store/transaction.ts';

const types: Readonly<Record<Exclude<Kind, 'key' | 'owner'>, string>> = {
  text: 'text',
  number: 'bigint',
  flag: 'boolean',
  json: 'json',
  secret: 'text',
  bytes: 'bytea',
};

const queueColumns = [
  ...['owner text not null', 'due_at bigint', 'urgent boolean not null', 'dull boolean not null'],
  ...['placed bigint not null', 'finished bigint'],
];

/** `otherErrands` is "other_errands", `itemID` is "item_id". */
export function nameOf(name: string): string {
  return `"${name.replaceAll(/(?<=[a-z0-9])[A-Z]/g, '_$&').toLowerCase()}"`;
}

function createTable(name: string, columns: readonly string[]): string {
  return `create table ${nameOf(name)} (\n  ${columns.join(',\n  ')}\n);\n`;
}

function columnsOf(shape: AnyShape): string[] {
  return Object.entries(shape).flatMap(([field, kind]) =>
    typeof kind === 'object' || kind === 'key' || kind === 'owner' ? [] : `${nameOf(field)} ${types[kind]}`,
  );
}

/** The tables of the shape's lists. */
function listsOf(name: string, shape: AnyShape): string[] {
  return Object.values(shape).flatMap((kind) => {
    if (typeof kind !== 'object') return [];
    const key = `key text references ${nameOf(name)} (key) on delete cascade`;
    return createTable(kind.table, [key, ...numbered, ...columnsOf(kind.shape)]);
  });
}

const key = 'key text primary key';
const numbered = ['number bigint', 'primary key (key, number)'];

export function createTables({ tables, archives, logs, queues }: Records): string {
  return [
    ...[...tables, ...archives].map(({ name, shape }) => createTable(name, [key, ...columnsOf(shape)])),
    ...logs.map(({ name, shape }) => createTable(name, ['key text', ...numbered, ...columnsOf(shape)])),
    ...queues.flatMap(({ name, shape }) => [
      createTable(name, [key, ...queueColumns, ...columnsOf(shape)]),
      ...listsOf(name, shape),
    ]),
  ].join('\n');
}
