// The audit trail in PostgreSQL. A success is inserted by the statement or transaction that makes the change.
import { groupBy } from '../lib/collections.ts';
import {
  type AuditEntry,
  type AuditFilter,
  type AuditWord,
  foldCase,
  mergeKeyOf,
  mergeWithinMs,
  maxCountedEntries,
} from '../store/audit-entry.ts';
import { Batcher } from '../store/postgres/batcher.ts';
import { type Database, deleteInBatches } from '../store/postgres/database.ts';
import { type AuditStore, readBatch } from './audit-store.ts';

const columns = 'id, at, "user", role, key, address, operation, target, outcome, code, count, changes';

/** Inserts the entries that `parameter` holds as a JSON array. `condition` completes the statement. */
export function insertEntries(parameter: string, condition = ''): string {
  return `insert into audit (${columns}) select ${columns} from json_populate_recordset(null::audit, ${parameter}) ${condition}`;
}

/** How many refusals one statement counts. */
const maxAtOnce = 500;

type Place = { readonly at: number; readonly placed: number };

type Row = AuditEntry & Place;

export class PostgresAudit implements AuditStore {
  readonly #database: Database;
  readonly #batcher: Batcher<AuditEntry, string>;

  constructor(database: Database) {
    this.#database = database;
    this.#batcher = new Batcher({ run: (refusals) => this.#countAll(refusals), maxItems: maxAtOnce });
  }

  async page(filter: AuditFilter, start: number, num: number) {
    const conditions = await this.#conditionsOf(filter);
    const { text, values } = whereOf(conditions);
    const [rows, [counted]] = await Promise.all([
      this.#select(conditions, start, num),
      this.#database.ask<{ count: number }>(
        `select count(*) from (select from audit ${text} limit ${maxCountedEntries}) counted`,
        values,
      ),
    ]);
    return { entries: rows.map(toEntry), total: counted?.count ?? 0 };
  }

  async *read(filter: AuditFilter, start: number): AsyncIterable<readonly AuditEntry[]> {
    const conditions = await this.#conditionsOf(filter);
    let rows = await this.#select(conditions, start, readBatch);
    while (rows.length > 0) {
      yield rows.map(toEntry);
      const last = rows.at(-1);
      if (!last || rows.length < readBatch) return;
      const isOlder = { text: '(at, placed) < (?, ?)', values: [last.at, last.placed] };
      rows = await this.#select([...conditions, isOlder], 0, readBatch);
    }
  }

  async add(entry: AuditEntry): Promise<void> {
    await this.#database.write(insertEntries('$1', 'on conflict (id) do nothing'), [JSON.stringify([entry])]);
  }

  count(refusal: AuditEntry): Promise<string> {
    return this.#batcher.submit(refusal);
  }

  async removeBefore(at: number, stopping?: AbortSignal): Promise<void> {
    await deleteInBatches(
      this.#database,
      `delete from audit where ctid = any(array(
         select ctid from audit where at < $1 order by at, placed limit $2 for update skip locked))`,
      [at],
      stopping,
    );
    await deleteInBatches(
      this.#database,
      `delete from refusals where key = any(array(
         select key from refusals where at < $1 limit $2 for update skip locked))`,
      [at],
      stopping,
    );
  }

  async #conditionsOf({ operation, words = [], ...filter }: AuditFilter): Promise<Condition[]> {
    const conditions = conditionsOf(filter);
    const operations = operation === undefined ? [] : [await this.#operationsWith(operation)];
    const oldest = words.length === 0 ? [] : await this.#oldestSearched(conditions);
    return [
      ...operations.map((found) => ({ text: ofOperations, values: [found] })),
      ...conditions,
      ...oldest.map(({ at, placed }) => ({ text: '(at, placed) >= (?, ?)', values: [at, placed] })),
      ...words.map(conditionOfWord),
    ];
  }

  /** Finds the operations that match, because an index can find entries by whole operations only. */
  async #operationsWith(operation: string): Promise<readonly string[]> {
    const rows = await this.#database.ask<{ operation: string }>(
      `with recursive known as (
         (select operation from audit order by operation limit 1)
         union all
         select (select a.operation from audit a where a.operation > known.operation order by a.operation limit 1)
         from known where known.operation is not null)
       select operation from known where strpos('/' || operation || '/', '/' || $1 || '/') > 0`,
      [operation],
    );
    return rows.map((row) => row.operation);
  }

  /**
   * No index finds words, so they are searched for in the newest `maxCountedEntries` entries that the filter finds
   * without them: as many as a page without words counts. Empty: there are fewer.
   */
  async #oldestSearched(conditions: readonly Condition[]): Promise<readonly Place[]> {
    const { text, values } = whereOf(conditions);
    return this.#database.ask<Place>(
      `select at, placed from audit ${text} order by at desc, placed desc offset ${maxCountedEntries - 1} limit 1`,
      values,
    );
  }

  #select(conditions: readonly Condition[], start: number, num: number): Promise<readonly Row[]> {
    const { text, values } = whereOf(conditions);
    const [first, most] = [`$${values.length + 1}::bigint`, `$${values.length + 2}::bigint`];
    const order = 'order by at desc, placed desc';
    const select = (where: string) => `select placed, ${columns} from audit ${where} ${order}`;
    const has = (condition: string) => conditions.some((one) => one.text === condition);
    // Reads the newest entries of each operation. The entries of one user are few, and have an index of their own.
    const isByOperation = has(ofOperations) && !has(ofUser);
    const ofEach = text.replace(ofOperations.replace('?', '$1'), 'operation = o.operation');
    return this.#database.ask<Row>(
      isByOperation
        ? `select e.* from unnest($1::text[]) o(operation)
           cross join lateral (${select(ofEach)} limit ${first} + ${most}) e ${order} offset ${first} limit ${most}`
        : `${select(text)} offset ${first} limit ${most}`,
      [...values, start, num],
    );
  }

  /** `refusals` has the entry that counts each kind of refusal. Its rows are locked in the order of their keys. */
  async #countAll(refusals: readonly AuditEntry[]): Promise<readonly string[]> {
    const groups = [...groupBy(refusals, mergeKeyOf)].sort(([a], [b]) => (a < b ? -1 : 1));
    const given = groups.flatMap(([mergeKey, [first, ...others]]) =>
      first ? { ...first, mergeKey, count: others.reduce((sum, { count }) => sum + count, first.count) } : [],
    );
    const counted = await this.#database.write<{ key: string; entry: string }>(
      `with given as (
         select v.*, g ->> 'mergeKey' as merge_key from json_array_elements($1) g, json_populate_record(null::audit, g) v),
       counted as (
         insert into refusals as r (key, entry, at) select merge_key, id, at from given
         on conflict (key) do update set
           entry = case when r.at > excluded.at - $2 then r.entry else excluded.entry end,
           at = case when r.at > excluded.at - $2 then r.at else excluded.at end
         returning key, entry),
       stored as (
         insert into audit as a (${columns})
         select c.entry, g.at, "user", role, g.key, address, operation, target, outcome, code, count, changes
         from given g join counted c on c.key = merge_key
         on conflict (id) do update set count = a.count + excluded.count)
       select key, entry from counted`,
      [JSON.stringify(given), mergeWithinMs],
    );
    const entryOf = new Map(counted.map(({ key, entry }) => [key, entry]));
    return refusals.map((refusal) => entryOf.get(mergeKeyOf(refusal)) ?? refusal.id);
  }
}

function toEntry({ placed: _placed, ...entry }: Row): AuditEntry {
  return entry;
}

type Condition = { readonly text: string; readonly values: readonly unknown[] };

/** This condition comes first, so that its values are $1. */
const ofOperations = 'operation = any(?::text[])';
const ofUser = 'lower("user") = lower(?)';

function conditionsOf({ user, from, to, outcome }: AuditFilter): Condition[] {
  // The second part shows the planner that the index of errors has all these entries.
  const ofOutcome = outcome === 'success' ? 'outcome = ?' : `outcome = ? and outcome <> 'success'`;
  const all: readonly (readonly [string, unknown])[] = [
    [ofUser, user],
    ['at >= ?', from],
    ['at <= ?', to],
    [ofOutcome, outcome],
  ];
  return all.flatMap(([text, value]) => (value === undefined ? [] : [{ text, values: [value] }]));
}

/** What costs least comes first. The fields are read only if the JSON of the changes contains the word. */
function conditionOfWord({ text, operations, targets }: AuditWord): Condition {
  const contains = (column: string) => `strpos(lower(${column} collate "C"), ?) > 0`;
  const conditions: readonly Condition[] = [
    { text: 'operation = any(?::text[])', values: [operations] },
    { text: contains('operation'), values: [text] },
    { text: contains('"user"'), values: [text] },
    { text: contains('key'), values: [text] },
    { text: 'target = any(?::text[])', values: [targets] },
    { text: contains('target'), values: [text] },
    {
      text: `${contains('changes::text')} and exists (
        select from json_array_elements(changes) change where ${contains(`(change ->> 'field')`)})`,
      values: [foldCase(JSON.stringify(text).slice(1, -1)), text],
    },
  ];
  // Null, for an entry without a user, a key or a target, counts as false.
  return {
    text: `(${conditions.map((condition) => condition.text).join(' or ')})`,
    values: conditions.flatMap(({ values }) => values),
  };
}

function whereOf(conditions: readonly Condition[]): Condition {
  let number = 0;
  const numbered = conditions.map(({ text }) => text.replaceAll('?', () => `$${(number += 1)}`));
  return {
    text: numbered.length === 0 ? '' : `where ${numbered.join(' and ')}`,
    values: conditions.flatMap(({ values }) => values),
  };
}
