// What a transaction does to a queue, as statements: what can be done together is, and the order makes no difference to the result.
import type { Act } from '../changes.ts';
import type { Queue } from '../transaction.ts';
import { type Column, byColumn, columnsOf, listsOf, nameOf, toColumn, toRow } from './columns.ts';
import { type Client, query } from './database.ts';
import type { Secrets } from './secrets.ts';

/** Claims that are no longer this process's: nothing of the transaction may take effect. */
export class Lost extends Error {
  readonly claimed: readonly object[];

  constructor(claimed: readonly object[]) {
    super('claims are lost');
    this.name = 'Lost';
    this.claimed = claimed;
  }
}

type Placed = { readonly row: object; readonly moment: number };
type Settled = Placed & { readonly claimed: object };
type Wave = { enqueued: Placed[]; settled: Settled[]; trims: Map<string, number> };

export type ActsOptions = {
  readonly queue: Queue<never>;
  readonly secrets: Secrets;
  /** The number under which the row was claimed. */
  readonly claimOf: (claimed: object) => number;
  /** Numbers the moments of the transaction. */
  readonly nextMoment: () => number;
};

const amendedAtOnce = 500;

/** Answers by how much the number of unfinished rows has changed. */
export async function performActs(
  client: Client,
  acts: readonly Act[],
  options: ActsOptions,
): Promise<number> {
  const { secrets, claimOf, nextMoment } = options;
  const queue = options.queue as unknown as Queue<object>;
  const table = nameOf(queue.name);
  const columns = columnsOf(queue.shape);
  const lists = listsOf(queue.shape);
  const isUnfinished = (row: object) => queue.dueAt(row) !== null;
  let unfinished = 0;

  const placeOf = (row: object) => `${queue.name} ${queue.keyOf(row)}`;
  const field = (column: Column, rows: readonly object[]) => ({
    ...column,
    values: rows.map((row) => toColumn(column, row, placeOf(row), secrets)),
  });
  /** What the queue itself needs to know of each row. */
  const marks = (placed: readonly Placed[]) => [
    { name: 'due_at', type: 'bigint', values: placed.map(({ row }) => queue.dueAt(row)) },
    { name: 'urgent', type: 'boolean', values: placed.map(({ row }) => queue.isUrgent(row)) },
    { name: 'dull', type: 'boolean', values: placed.map(({ row }) => queue.isDull(row)) },
    {
      ...{ name: 'finished', type: 'bigint' },
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
      ...marks(placed),
      ...columns.map((column) => field(column, rows)),
    ]);
    unfinished += rows.filter(isUnfinished).length;
    const insert = query(client, `insert into ${table} (${names}) select * from ${unnest}`, values);
    await Promise.all([insert, extend(rows.map((row) => ({ row, known: undefined })))]);
  }

  /** Adds what is new in the lists of rows. */
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
            values: added.map(({ row, entry }) => toColumn(column, entry, placeOf(row), secrets)),
          })),
        ]);
        await query(client, `insert into ${list.table} (${names}) select * from ${unnest}`, values);
      }),
    );
  }

  /** Replaces rows; only those columns are written in which one of them differs. Answers the keys it found. */
  async function replace(
    replaced: readonly Settled[],
    claims: readonly number[] | null,
  ): Promise<Set<string>> {
    const rows = replaced.map(({ row }) => row);
    const differs = ({ field: name }: Column) =>
      replaced.some(({ row, claimed }) => row[name as never] !== claimed[name as never]);
    const set = [...marks(replaced), ...columns.filter(differs).map((column) => field(column, rows))];
    const claim = claims === null ? [] : [{ name: 'held', type: 'bigint', values: claims }];
    const { names, unnest, values } = byColumn([keys(rows), ...claim, ...set]);
    const assigned = set.map(({ name }) => `${name} = v.${name}`).join(', ');
    const holds = claims === null ? 'q.claim is null' : 'q.claim = v.held';
    const updated = query<{ key: string }>(
      client,
      `update ${table} q set claim = null, claimed_by = null, ${assigned}
       from ${unnest} v(${names}) where q.key = v.key and ${holds} returning q.key`,
      values,
    );
    const extended = extend(replaced.map(({ row, claimed }) => ({ row, known: claimed })));
    const [{ rows: found }] = await Promise.all([updated, extended]);
    unfinished -= rows.filter((row) => !isUnfinished(row)).length;
    return new Set(found.map(({ key }) => key));
  }

  async function settle(settled: readonly Settled[]): Promise<void> {
    const found = await replace(
      settled,
      settled.map(({ claimed }) => claimOf(claimed)),
    );
    const lost = settled.filter(({ row }) => !found.has(queue.keyOf(row)));
    if (lost.length > 0) throw new Lost(lost.map(({ claimed }) => claimed));
  }

  async function amend(owner: string | undefined, change: (row: object) => object): Promise<void> {
    const ofOwner = owner === undefined ? '' : 'and q.owner = $2';
    for (let after = -1; ;) {
      const { rows: records } = await query<Record<string, unknown> & { placed: number }>(
        client,
        `select ${selectionOf(queue)}, q.placed from ${table} q
         where q.due_at is not null and q.claim is null and q.placed > $1 ${ofOwner}
         order by q.placed limit ${amendedAtOnce} for update of q`,
        [after, ...(owner === undefined ? [] : [owner])],
      );
      const amended = records.flatMap((record) => {
        const claimed = rowOf(queue, record, secrets);
        const row = change(claimed);
        return row === claimed ? [] : [{ row, claimed, moment: nextMoment() }];
      });
      if (amended.length > 0) await replace(amended, null);
      after = records.at(-1)?.placed ?? after;
      if (records.length < amendedAtOnce) return;
    }
  }

  function trim(trims: ReadonlyMap<string, number>): Promise<unknown> {
    return query(
      client,
      `delete from ${table} where key in (
         select d.key from unnest($1::text[], $2::bigint[]) t(owner, keep) cross join lateral (
           select q.key from ${table} q where q.owner = t.owner and q.due_at is null
           order by q.dull, q.finished desc offset t.keep) d)`,
      [[...trims.keys()], [...trims.values()]],
    );
  }

  async function drop(owner: string): Promise<void> {
    const { rows } = await query<{ unfinished: number }>(
      client,
      `with gone as (delete from ${table} where owner = $1 returning due_at)
       select count(due_at) as unfinished from gone`,
      [owner],
    );
    unfinished -= rows[0]?.unfinished ?? 0;
  }

  async function perform({ enqueued, settled, trims }: Wave): Promise<void> {
    // Sent in this order, and together.
    await Promise.all([
      enqueued.length > 0 && enqueue(enqueued),
      settled.length > 0 && settle(settled),
      trims.size > 0 && trim(trims),
    ]);
  }

  let wave: Wave = { enqueued: [], settled: [], trims: new Map() };
  async function endWave(): Promise<void> {
    const ended = wave;
    wave = { enqueued: [], settled: [], trims: new Map() };
    await perform(ended);
  }
  const dropped = new Set<string>();
  for (const [index, act] of acts.entries()) {
    if (act.kind === 'drop') dropped.add(act.owner);
    // Of what the same change has dropped nothing is left to settle.
    if (act.kind === 'settle' && dropped.has(queue.ownerOf(act.claimed))) continue;
    if (act.kind === 'amend' || act.kind === 'drop') {
      await endWave();
      if (act.kind === 'drop') await drop(act.owner);
      else await amend(act.owner, act.change as unknown as (row: object) => object);
    } else if (act.kind === 'trim') {
      if (wave.trims.get(act.owner) !== act.keep && wave.trims.has(act.owner)) await endWave();
      wave.trims.set(act.owner, act.keep);
    } else {
      const row = act.row as object;
      if (!mayGoBefore(wave.trims, queue, row, acts.slice(index + 1))) await endWave();
      if (act.kind === 'enqueue') wave.enqueued.push({ row, moment: nextMoment() });
      else wave.settled.push({ row, claimed: act.claimed, moment: nextMoment() });
    }
  }
  await endWave();
  return unfinished;
}

/** Whether the row may come before what is trimmed already: when just the same is trimmed again after it. */
function mayGoBefore(
  trims: ReadonlyMap<string, number>,
  queue: Queue<object>,
  row: object,
  later: readonly Act[],
): boolean {
  const owner = queue.ownerOf(row);
  if (queue.dueAt(row) !== null || !trims.has(owner)) return true;
  const next = later.find((act) => act.kind === 'amend' || ('owner' in act && act.owner === owner));
  return next?.kind === 'trim' && next.keep === trims.get(owner);
}

/** The columns of a row with its lists, from the table as `q`. */
export function selectionOf(queue: Queue<never>): string {
  const lists = listsOf(queue.shape).map(({ field, table, columns }) => {
    const pairs = columns.map(({ name }) => `'${name.slice(1, -1)}', l.${name}`).join(', ');
    return `(select json_agg(json_build_object(${pairs}) order by l.number)
       from ${table} l where l.key = q.key) as ${nameOf(field)}`;
  });
  const columns = columnsOf(queue.shape).map(({ name }) => `q.${name}`);
  return ['q.key', 'q.owner', ...columns, ...lists].join(', ');
}

export function rowOf<T>(queue: Queue<T>, record: Record<string, unknown>, secrets: Secrets): T {
  return toRow(queue.shape, record, `${queue.name} ${String(record.key)}`, secrets) as T;
}
