// Builds the SQL that creates the tables of given records, in the way of src/store/postgres/migrations.
import { type Column, columnsOf, listsOf, nameOf } from '../../src/store/postgres/columns.ts';
import type { AnyShape } from '../../src/store/shape.ts';
import type { Records } from '../../src/store/transaction.ts';

const queueColumns = [
  'owner text not null',
  'due_at bigint',
  'urgent boolean not null',
  'dull boolean not null',
  'placed bigint not null',
  'finished bigint',
  'bytes bigint not null',
];

function createTable(table: string, columns: readonly string[]): string {
  return `create table ${table} (\n  ${columns.join(',\n  ')}\n);\n`;
}

function typed(columns: readonly Column[]): string[] {
  return columns.map(({ name, type }) => `${name} ${type}`);
}

/** The tables for the lists in the shape. */
function createLists(name: string, shape: AnyShape): string[] {
  const key = `key text references ${nameOf(name)} (key) on delete cascade`;
  return listsOf(shape).map(({ table, columns }) =>
    createTable(table, [key, ...numbered, ...typed(columns)]),
  );
}

const key = 'key text primary key';
const numbered = ['number bigint', 'primary key (key, number)'];

export function createTables({ tables, archives, logs, queues }: Records): string {
  return [
    ...[...tables, ...archives].map(({ name, shape }) =>
      createTable(nameOf(name), [key, ...typed(columnsOf(shape))]),
    ),
    ...logs.map(({ name, shape }) =>
      createTable(nameOf(name), ['key text', ...numbered, ...typed(columnsOf(shape))]),
    ),
    ...queues.flatMap(({ name, shape }) => [
      createTable(nameOf(name), [key, ...queueColumns, ...typed(columnsOf(shape))]),
      ...createLists(name, shape),
    ]),
  ].join('\n');
}
