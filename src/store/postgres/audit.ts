// The audit trail in PostgreSQL. A success is inserted by the statement or transaction that makes the change.
import { type AuditEntry, type AuditFilter, mergeKeyOf, mergeWithinMs } from '../../audit/entry.ts';
import { groupBy } from '../../lib/collections.ts';
import type { AuditStore } from '../audit-store.ts';
import type { AuditWrites } from '../transaction.ts';
import { Batcher } from './batcher.ts';
import { type Client, type Database, query } from './database.ts';
import { deleteInPortions } from './portions.ts';

const columns = 'id, at, "user", role, address, operation, target, outcome, code, count, changes';

/** Inserts the entry that `parameter` holds as JSON. `condition` completes the statement. */
export function insertEntry(parameter: string, condition = ''): string {
  return `insert into audit (${columns}) select ${columns} from json_populate_record(null::audit, ${parameter}) ${condition}`;
}

/** How many entries one statement of an export reads. */
const portion = 1_000;
/** How many refusals one statement counts. */
const mostAtOnce = 500;

type Row = AuditEntry & { readonly placed: number };

export class PostgresAudit implements AuditStore {
  readonly #database: Database;
  readonly #batcher: Batcher<AuditEntry, string>;

  constructor(database: Database) {
    this.#database = database;
    this.#batcher = new Batcher({ run: (refusals) => this.#countAll(refusals), mostItems: mostAtOnce });
  }

  async page(
    filter: AuditFilter,
    start: number,
    num: number,
  ): Promise<{ readonly entries: readonly AuditEntry[]; readonly total: number }> {
    const where = new Where(filter);
    const [rows, [counted]] = await Promise.all([
      this.#select(where, start, num),
      this.#database.ask<{ count: number }>(`select count(*) from audit ${where.text}`, where.values),
    ]);
    return { entries: rows.map(toEntry), total: counted?.count ?? 0 };
  }

  async *read(filter: AuditFilter, start: number): AsyncIterable<readonly AuditEntry[]> {
    const where = new Where(filter);
    let rows = await this.#select(where, start, portion);
    while (rows.length > 0) {
      yield rows.map(toEntry);
      const last = rows.at(-1);
      if (!last || rows.length < portion) return;
      rows = await this.#select(where.and('(at, placed) < (?, ?)', last.at, last.placed), 0, portion);
    }
  }

  async add(entry: AuditEntry): Promise<void> {
    await this.#database.write(insertEntry('$1', 'on conflict (id) do nothing'), [JSON.stringify(entry)]);
  }

  count(refusal: AuditEntry): Promise<string> {
    return this.#batcher.submit(refusal);
  }

  async removeBefore(at: number, stopping?: AbortSignal): Promise<void> {
    await deleteInPortions(
      this.#database,
      `delete from audit where ctid = any(array(
         select ctid from audit where at < $1 order by at, placed limit $2 for update skip locked))`,
      [at],
      stopping,
    );
    await deleteInPortions(
      this.#database,
      `delete from refusals where key = any(array(
         select key from refusals where at < $1 limit $2 for update skip locked))`,
      [at],
      stopping,
    );
  }

  writesOn(client: Client): AuditWrites {
    return {
      record: async (entry) => {
        await query(client, insertEntry('$1'), [JSON.stringify(entry)]);
      },
    };
  }

  #select({ text, values }: Where, start: number, num: number): Promise<readonly Row[]> {
    return this.#database.ask<Row>(
      `select placed, ${columns} from audit ${text} order by at desc, placed desc
       offset $${values.length + 1} limit $${values.length + 2}`,
      [...values, start, num],
    );
  }

  /** `refusals` has the entry that counts each kind of refusal. Its rows are locked in the order of their keys. */
  async #countAll(refusals: readonly AuditEntry[]): Promise<readonly string[]> {
    const groups = [...groupBy(refusals, mergeKeyOf)].sort(([a], [b]) => (a < b ? -1 : 1));
    const given = groups.flatMap(([key, [first, ...others]]) =>
      first ? { ...first, key, count: others.reduce((sum, { count }) => sum + count, first.count) } : [],
    );
    const counted = await this.#database.write<{ key: string; entry: string }>(
      `with given as (
         select v.*, g ->> 'key' as key from json_array_elements($1) g, json_populate_record(null::audit, g) v),
       counted as (
         insert into refusals as r (key, entry, at) select key, id, at from given
         on conflict (key) do update set
           entry = case when r.at > excluded.at - $2 then r.entry else excluded.entry end,
           at = case when r.at > excluded.at - $2 then r.at else excluded.at end
         returning key, entry),
       stored as (
         insert into audit as a (${columns})
         select c.entry, at, "user", role, address, operation, target, outcome, code, count, changes
         from given join counted c using (key)
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

/** The conditions of a filter, with their values. */
class Where {
  readonly #conditions: readonly string[];
  readonly values: readonly unknown[];

  constructor(filter: AuditFilter, conditions: readonly string[] = [], values: readonly unknown[] = []) {
    const { from, to, user, operation, outcome } = filter;
    const given = (
      [
        ['at >= ?', from],
        ['at <= ?', to],
        ['lower("user") = lower(?)', user],
        [`strpos('/' || operation || '/', '/' || ? || '/') > 0`, operation],
        ['outcome = ?', outcome],
      ] as const
    ).filter(([, value]) => value !== undefined);
    this.#conditions = [...conditions, ...given.map(([condition]) => condition)];
    this.values = [...values, ...given.map(([, value]) => value)];
  }

  and(condition: string, ...values: readonly unknown[]): Where {
    return new Where({}, [...this.#conditions, condition], [...this.values, ...values]);
  }

  get text(): string {
    let number = 0;
    const numbered = this.#conditions.map((condition) =>
      condition.replaceAll('?', () => `$${(number += 1)}`),
    );
    return numbered.length === 0 ? '' : `where ${numbered.join(' and ')}`;
  }
}
