// Maps rows to columns and back: names, types and values, derived from the shape of a table.
import { freeze } from '../changes.ts';
import type { AnyShape, Kind, RowsOf } from '../shape.ts';
import type { Secrets } from './secrets.ts';

type Columned = Exclude<Kind, 'key' | 'owner'>;

export type Column = {
  readonly field: string;
  readonly name: string;
  readonly kind: Columned;
  readonly type: string;
};

/** A list that is stored in a separate table. */
export type List = { readonly field: string; readonly table: string; readonly columns: readonly Column[] };

const sqlTypes: Readonly<Record<Columned, string>> = {
  text: 'text',
  number: 'bigint',
  flag: 'boolean',
  json: 'json',
  secret: 'text',
  bytes: 'bytea',
};

/** The quoted SQL name: `createdAt` becomes "created_at". */
export function nameOf(name: string): string {
  return `"${name.replace(/([a-z0-9])([A-Z]+)/g, '$1_$2').toLowerCase()}"`;
}

const cache = new WeakMap<AnyShape, readonly Column[]>();

export function columnsOf(shape: AnyShape): readonly Column[] {
  const columns =
    cache.get(shape) ??
    Object.entries(shape).flatMap(([field, kind]) =>
      isList(kind) || kind === 'key' || kind === 'owner'
        ? []
        : [{ field, name: nameOf(field), kind, type: sqlTypes[kind] }],
    );
  cache.set(shape, columns);
  return columns;
}

export function listsOf(shape: AnyShape): List[] {
  return Object.entries(shape).flatMap(([field, kind]) =>
    isList(kind) ? [{ field, table: nameOf(kind.table), columns: columnsOf(kind.shape) }] : [],
  );
}

function isList(kind: Kind | RowsOf): kind is RowsOf {
  return typeof kind === 'object';
}

type Fields = Readonly<Record<string, unknown>>;

/** The columns of a table, the key first. */
export function namesOf(shape: AnyShape): string {
  return ['key', ...columnsOf(shape).map(({ name }) => name)].join(', ');
}

/** Identifies a row. Secrets are encrypted for their row and column (secrets.ts). */
export function placeOf({ name }: { name: string }, key: string): string {
  return `${name} ${key}`;
}

export function toColumn(column: Column, row: unknown, context: string, secrets: Secrets): unknown {
  const value = (row as Fields)[column.field];
  if (value === null || value === undefined) return null;
  if (column.kind === 'json') return JSON.stringify(value);
  if (column.kind === 'secret') return secrets.seal(JSON.stringify(value), secretIn(column, context));
  return value;
}

export function toRow(
  of: { name: string; shape: AnyShape },
  record: Fields & { readonly key: string },
  secrets: Secrets,
): unknown {
  return toFields(of.shape, record, placeOf(of, record.key), secrets);
}

function toFields(shape: AnyShape, record: Fields, context: string, secrets: Secrets): unknown {
  const row: Record<string, unknown> = {};
  const columns = columnsOf(shape)[Symbol.iterator]();
  for (const [field, kind] of Object.entries(shape)) {
    if (kind === 'key' || kind === 'owner') row[field] = record[kind];
    else if (isList(kind)) row[field] = toEntries(kind, record[unquoted(nameOf(field))], context, secrets);
    else row[field] = toValue(columns.next().value as Column, record, context, secrets);
  }
  return freeze(row);
}

function toValue(column: Column, record: Fields, context: string, secrets: Secrets): unknown {
  const value = record[unquoted(column.name)];
  if (value === null || value === undefined) return null;
  if (column.kind !== 'secret') return value;
  return JSON.parse(secrets.open(value as string, secretIn(column, context)));
}

function toEntries(list: RowsOf, records: unknown, context: string, secrets: Secrets): unknown[] {
  return ((records ?? []) as Fields[]).map((record) => toFields(list.shape, record, context, secrets));
}

const secretIn = (column: Column, context: string) => `${context} ${column.field}`;

/** The name of a column in query results. */
export const unquoted = (name: string) => name.slice(1, -1);

/** One array of values per column, as parameters for `unnest`. */
export function byColumn(
  columns: readonly { readonly name: string; readonly type: string; readonly values: readonly unknown[] }[],
) {
  return {
    names: columns.map(({ name }) => name).join(', '),
    unnest: `unnest(${columns.map(({ type }, index) => `$${index + 1}::${type}[]`).join(', ')})`,
    values: columns.map(({ values }) => values),
  };
}
