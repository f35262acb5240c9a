// Runs the statements that change a queue table.
//
// Besides the columns of its shape, a queue table has the columns that claims.ts selects by: `due_at` (null: finished), `urgent`, `dull`,
// `placed` (when the row was added) and `finished` (when it finished). `bytes` is what the row adds to the bytes of unfinished rows.
// `shelves` counts the finished rows of every owner: counting them in the queue table for every trim would cost more than removing one.
//
// `settle` deletes the claims and replaces the rows without waiting for the result. If a claim was not found, another process may have
// claimed the row: it throws `Lost`, and the writer rolls the whole transaction back.
//
// `amend` and `thin` lock the table `claims` first. Without this, a row could be claimed between the query that finds it free and the
// statement that changes it.
import type { Queue } from '../transaction.ts';
import { type Column, byColumn, columnsOf, listsOf, nameOf, placeOf, toColumn } from './columns.ts';
import { type Client, query } from './database.ts';
import { isFree, rowOf, selectionOf } from './queue-rows.ts';
import type { Unfinished } from './replica.ts';
import type { Secrets } from './secrets.ts';

/** This process no longer holds the claims; the transaction must be rolled back. */
export class Lost extends Error {
  readonly claimed: readonly object[];

  constructor(claimed: readonly object[]) {
    super('The claims are lost.');
    this.name = 'Lost';
    this.claimed = claimed;
  }
}

export type Placed = { readonly row: object; readonly moment: number };
export type Settled = Placed & { readonly claimed: object };

export type StatementsOptions = {
  readonly queue: Queue<never>;
  readonly secrets: Secrets;
  /** The number of the claim. */
  readonly claimOf: (claimed: object) => number;
  /** The next value for `placed` or `finished`. */
  readonly nextMoment: () => number;
};

export type QueueStatements = {
  enqueue: (placed: readonly Placed[]) => Promise<void>;
  /** Throws `Lost` if this process does not hold all the claims. */
  settle: (settled: readonly Settled[]) => Promise<void>;
  /** Adds the finished rows among these to the count in `shelves`. */
  shelve: (rows: readonly object[]) => Promise<void>;
  amend: (owner: string | undefined, change: (row: object) => object) => Promise<void>;
  thin: (owner: string, keep: number) => Promise<void>;
  trim: (trims: ReadonlyMap<string, number>) => Promise<void>;
  drop: (owner: string) => Promise<void>;
  /** The change in the unfinished rows so far. */
  unfinished: () => Unfinished;
};

/** `amend` reads this many rows, or fewer if they have more bytes than this together. */
const amendedAtOnce = 2_000;
const amendedBytesAtOnce = 8 * 1024 ** 2;

export function createStatements(client: Client, options: StatementsOptions): QueueStatements {
  const { secrets, claimOf, nextMoment } = options;
  const queue = options.queue as unknown as Queue<object>;
  const table = nameOf(queue.name);
  const columns = columnsOf(queue.shape);
  const lists = listsOf(queue.shape);
  const isUnfinished = (row: object) => queue.dueAt(row) !== null;
  let unfinished: Unfinished = { rows: 0, bytes: 0 };
  const addUnfinished = (rows: number, bytes: number) => {
    unfinished = { rows: unfinished.rows + rows, bytes: unfinished.bytes + bytes };
  };
  const bytesOfAll = (rows: readonly object[]) => rows.reduce((sum, row) => sum + queue.bytesOf(row), 0);

  const contextOf = (row: object) => placeOf(queue, queue.keyOf(row));
  const field = (column: Column, rows: readonly object[]) => ({
    ...column,
    values: rows.map((row) => toColumn(column, row, contextOf(row), secrets)),
  });
  /** The columns that every queue table has. */
  const marks = (placed: readonly Placed[]) => [
    { name: 'due_at', type: 'bigint', values: placed.map(({ row }) => queue.dueAt(row)) },
    { name: 'urgent', type: 'boolean', values: placed.map(({ row }) => queue.isUrgent(row)) },
    { name: 'dull', type: 'boolean', values: placed.map(({ row }) => queue.isDull(row)) },
    {
      name: 'finished',
      type: 'bigint',
      values: placed.map(({ row, moment }) => (isUnfinished(row) ? null : moment)),
    },
  ];
  const keys = (rows: readonly object[]) => ({ name: 'key', type: 'text', values: rows.map(queue.keyOf) });

  async function enqueue(placed: readonly Placed[]): Promise<void> {
    const rows = placed.map(({ row }) => row);
    const { names, unnest, values } = byColumn([
      keys(rows),
      { name: 'owner', type: 'text', values: rows.map(queue.ownerOf) },
      { name: 'placed', type: 'bigint', values: placed.map(({ moment }) => moment) },
      { name: 'bytes', type: 'bigint', values: rows.map(queue.bytesOf) },
      ...marks(placed),
      ...columns.map((column) => field(column, rows)),
    ]);
    const added = rows.filter(isUnfinished);
    addUnfinished(added.length, bytesOfAll(added));
    const insert = query(client, `insert into ${table} (${names}) select * from ${unnest}`, values);
    await Promise.all([insert, extend(rows.map((row) => ({ row, known: undefined })))]);
  }

  /** Inserts the entries that were added to the lists of the rows. */
  async function extend(rows: readonly { row: object; known: object | undefined }[]): Promise<void> {
    type Entries = Record<string, readonly object[]>;
    await Promise.all(
      lists.map(async (list) => {
        const added = rows.flatMap(({ row, known }) => {
          const before = (known as Entries | undefined)?.[list.field]?.length ?? 0;
          const entries = (row as Entries)[list.field] ?? [];
          return entries.slice(before).map((entry, index) => ({ row, entry, number: before + index }));
        });
        if (added.length === 0) return;
        const { names, unnest, values } = byColumn([
          keys(added.map(({ row }) => row)),
          { name: 'number', type: 'bigint', values: added.map(({ number }) => number) },
          ...list.columns.map((column) => ({
            ...column,
            values: added.map(({ row, entry }) => toColumn(column, entry, contextOf(row), secrets)),
          })),
        ]);
        // Skips rows that are gone or that another process has settled. Their claims are lost, so the transaction is rolled back with
        // `Lost`; without the conditions it would fail with a constraint violation instead.
        await query(
          client,
          `insert into ${list.table} (${names}) select * from ${unnest} v(${names})
           where exists (select from ${table} q where q.key = v.key) on conflict do nothing`,
          values,
        );
      }),
    );
  }

  /** Writes only the columns in which at least one row has changed. */
  async function replace(replaced: readonly Settled[]): Promise<void> {
    const rows = replaced.map(({ row }) => row);
    const differs = ({ field: name }: Column) =>
      replaced.some(({ row, claimed }) => row[name as never] !== claimed[name as never]);
    const set = [...marks(replaced), ...columns.filter(differs).map((column) => field(column, rows))];
    const { names, unnest, values } = byColumn([keys(rows), ...set]);
    const assigned = set.map(({ name }) => `${name} = v.${name}`).join(', ');
    const ended = rows.filter((row) => !isUnfinished(row));
    addUnfinished(-ended.length, -bytesOfAll(ended));
    await Promise.all([
      query(
        client,
        `update ${table} q set ${assigned} from ${unnest} v(${names}) where q.key = v.key`,
        values,
      ),
      extend(replaced.map(({ row, claimed }) => ({ row, known: claimed }))),
    ]);
  }

  async function settle(settled: readonly Settled[]): Promise<void> {
    const released = query<{ key: string }>(
      client,
      `delete from claims c using unnest($2::text[], $3::bigint[]) v(key, number)
       where c.queue = $1 and c.key = v.key and c.number = v.number returning c.key`,
      [
        queue.name,
        settled.map(({ row }) => queue.keyOf(row)),
        settled.map(({ claimed }) => claimOf(claimed)),
      ],
    );
    const [{ rows: found }] = await Promise.all([released, replace(settled)]);
    const held = new Set(found.map(({ key }) => key));
    const lost = settled.filter(({ row }) => !held.has(queue.keyOf(row)));
    if (lost.length > 0) throw new Lost(lost.map(({ claimed }) => claimed));
  }

  const lockClaims = () => query(client, 'lock table claims in share row exclusive mode');

  async function thin(owner: string, keep: number): Promise<void> {
    await lockClaims();
    const { rows } = await query<{ count: number; bytes: number }>(
      client,
      `with gone as (
         delete from ${table} where key in (
           select q.key from ${table} q where q.owner = $2 and q.due_at is not null and not q.urgent and ${isFree}
           order by q.placed desc offset $3)
         returning bytes)
       select count(*), coalesce(sum(bytes), 0)::bigint as bytes from gone`,
      [queue.name, owner, keep],
    );
    addUnfinished(-(rows[0]?.count ?? 0), -(rows[0]?.bytes ?? 0));
  }

  async function amend(owner: string | undefined, change: (row: object) => object): Promise<void> {
    const ofOwner = owner === undefined ? '' : 'and q.owner = $3';
    await lockClaims();
    for (let after = -1; ;) {
      const { rows: records } = await query<Record<string, unknown> & { key: string; placed: number }>(
        client,
        `with next as (
           select q.key, q.placed, q.bytes from ${table} q
           where q.due_at is not null and q.placed > $2 ${ofOwner} and ${isFree}
           order by q.placed limit ${amendedAtOnce}),
         summed as (select key, sum(bytes) over (order by placed) - bytes as before from next)
         select ${selectionOf(queue)}, q.placed from ${table} q
         where q.key in (select key from summed where before <= ${amendedBytesAtOnce}) order by q.placed`,
        [queue.name, after, ...(owner === undefined ? [] : [owner])],
      );
      const amended = records.flatMap((record) => {
        const claimed = rowOf(queue, record, secrets);
        const row = change(claimed);
        return row === claimed ? [] : [{ row, claimed, moment: nextMoment() }];
      });
      if (amended.length > 0) await replace(amended);
      await shelve(amended.map(({ row }) => row));
      after = records.at(-1)?.placed ?? after;
      if (records.length === 0) return;
    }
  }

  async function shelve(rows: readonly object[]): Promise<void> {
    const counts = new Map<string, number>();
    for (const row of rows.filter((some) => !isUnfinished(some))) {
      counts.set(queue.ownerOf(row), (counts.get(queue.ownerOf(row)) ?? 0) + 1);
    }
    if (counts.size === 0) return;
    await query(
      client,
      `insert into shelves as s (queue, owner, finished) select $1, * from unnest($2::text[], $3::bigint[])
       on conflict (queue, owner) do update set finished = s.finished + excluded.finished`,
      [queue.name, [...counts.keys()], [...counts.values()]],
    );
  }

  async function trim(trims: ReadonlyMap<string, number>): Promise<void> {
    const kept = [queue.name, [...trims.keys()], [...trims.values()]];
    const tooMany = `from unnest($2::text[], $3::bigint[]) t(owner, keep)`;
    const isTooMany = 's.queue = $1 and s.owner = t.owner and s.finished > t.keep';
    await Promise.all([
      query(
        client,
        `delete from ${table} where key in (
           select d.key ${tooMany} join shelves s on ${isTooMany} cross join lateral (
             select q.key from ${table} q where q.owner = t.owner and q.due_at is null
             order by q.dull desc, q.finished limit s.finished - t.keep) d)`,
        kept,
      ),
      query(client, `update shelves s set finished = t.keep ${tooMany} where ${isTooMany}`, kept),
    ]);
  }

  async function drop(owner: string): Promise<void> {
    const [{ rows }] = await Promise.all([
      query<{ count: number; bytes: number }>(
        client,
        `with gone as (delete from ${table} where owner = $1 returning due_at, bytes)
         select count(*), coalesce(sum(bytes), 0)::bigint as bytes from gone where due_at is not null`,
        [owner],
      ),
      query(client, 'delete from claims where queue = $1 and owner = $2', [queue.name, owner]),
      query(client, 'delete from shelves where queue = $1 and owner = $2', [queue.name, owner]),
    ]);
    addUnfinished(-(rows[0]?.count ?? 0), -(rows[0]?.bytes ?? 0));
  }

  return { enqueue, settle, shelve, amend, thin, trim, drop, unfinished: () => unfinished };
}
