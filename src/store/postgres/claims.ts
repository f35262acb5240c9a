// Reserves rows of queues for this process, so that no other process works on them.
//
// A claim is a row in `claims` with the key of the queue row, the id of the process and a number. A queue row with a claim is not free, so no
// other process claims it. The number identifies one claim of a row: if the process is declared dead and another process claims the same
// row, the numbers differ, and `settle` of the first process finds that its claim is lost (queue-statements.ts). peers.ts deletes the claims
// of dead processes.
//
// Which rows a process gets:
//
// 1. Read the owners with pending rows and put them in the order of their turns. An owner whose row was claimed goes to the end.
// 2. Compute the free slots of each lane: the limit minus the claims of other processes.
// 3. Claim due rows round by round: the first row of every owner, then the second, and so on. Within an owner, urgent rows come first, then
//    the row that is due first. The first pass gives no owner more than an equal share; a second pass gives the remaining slots to the
//    owners that have more rows.
//
// `for update skip locked` and the primary key of `claims` keep two processes from claiming the same row.
import type { Claim, Claimed } from '../store.ts';
import type { Queue } from '../transaction.ts';
import { createMutex } from '../../lib/async.ts';
import { nameOf } from './columns.ts';
import { type Client, type Database, query } from './database.ts';
import { isFree, rowOf, selectionOf } from './queue-rows.ts';
import type { Secrets } from './secrets.ts';

export type Claims = {
  claim: <T>(queue: Queue<T>, claim: Claim) => Promise<Claimed<T>>;
  /** The number of the claim; undefined if this process does not hold one. `claimed` is the object that `claim` returned. */
  numberOf: (claimed: object) => number | undefined;
  /** Removes a claim that is settled or lost. */
  forget: (claimed: object) => void;
};

/** A lane without a limit has infinite room, which PostgreSQL cannot read as an integer. */
const mostInALane = 1_000_000;

export function createClaims(database: Database, secrets: Secrets, self: string): Claims {
  const numbers = new WeakMap<object, number>();
  const held = new Set<number>();
  /** By queue: owners that may have pending rows, in the order of their turns. */
  const turns = new Map<string, Set<string>>();
  /**
   * Queues whose last claim failed. PostgreSQL may have committed it, so there may be claims that this process does not know of. The next
   * claim deletes them first; without this, those rows would stay claimed for as long as the process lives.
   */
  const uncertain = new Set<string>();
  const mutex = createMutex();

  async function claim<T>(queue: Queue<T>, request: Claim): Promise<Claimed<T>> {
    if (request.most <= 0) return { rows: [], nextAt: undefined };
    return mutex(() =>
      database.use(async (client) => {
        if (uncertain.has(queue.name)) await releaseUnknown(client, queue);
        uncertain.add(queue.name);
        const taken = await take(client, queue, request);
        uncertain.delete(queue.name);
        return taken;
      }),
    );
  }

  async function releaseUnknown(client: Client, queue: Queue<never>): Promise<void> {
    await query(
      client,
      'delete from claims where queue = $1 and process = $2 and not number = any($3::bigint[])',
      [queue.name, self, [...held]],
    );
  }

  async function take<T>(client: Client, queue: Queue<T>, request: Claim): Promise<Claimed<T>> {
    const { at, most } = request;
    const [{ rows: owners }, { rows: others }] = await Promise.all([
      query<{ owner: string }>(client, ownersOf(queue)),
      query<Counted>(
        client,
        `select owner, count(*) from claims
         where queue = $1 and process in (select id from processes where id <> $2) group by owner`,
        [queue.name, self],
      ),
    ]);
    const turns = turnsOf(queue);
    const taken: Taken[] = [];
    for (let share = Math.ceil(most / Math.max(1, owners.length)); ; share = most) {
      const wanted = wantedOf(
        turns,
        owners,
        [...others, ...taken.map(({ owner }) => ({ owner, count: 1 }))],
        request,
      );
      const found = await takeShare(client, queue, wanted, { at, most: most - taken.length, share });
      taken.push(...found);
      for (const { owner } of found) {
        turns.delete(owner);
        turns.add(owner);
      }
      if (taken.length === most || share === most) break;
    }
    const nextAt = taken.length < most ? await nextDue(client, queue, owners, at) : undefined;
    // `read` comes last: it marks the rows as held, so a failure after it would leave rows claimed that the caller never got.
    const rows = taken.length > 0 ? await read(client, queue, taken) : [];
    return { rows, nextAt };
  }

  async function takeShare(
    client: Client,
    queue: Queue<never>,
    wanted: readonly Wanted[],
    { at, most, share }: { at: number; most: number; share: number },
  ): Promise<Taken[]> {
    if (wanted.length === 0) return [];
    const { rows } = await query<Taken>(client, takeDue(queue), [
      queue.name,
      at,
      most,
      self,
      share,
      wanted.map(({ owner }) => owner),
      wanted.map(({ lane }) => lane),
      wanted.map(({ room }) => room),
    ]);
    return rows;
  }

  async function read<T>(client: Client, queue: Queue<T>, taken: readonly Taken[]): Promise<T[]> {
    const { rows: records } = await query<Record<string, unknown> & { key: string }>(
      client,
      `select ${selectionOf(queue)} from ${nameOf(queue.name)} q where q.key = any($1::text[])`,
      [taken.map(({ key }) => key)],
    );
    const byKey = new Map(records.map((record) => [record.key, record]));
    return taken.flatMap(({ key, number }) => {
      const record = byKey.get(key);
      if (!record) return [];
      const row = rowOf(queue, record, secrets);
      numbers.set(row as object, number);
      held.add(number);
      return [row];
    });
  }

  function turnsOf({ name }: { name: string }): Set<string> {
    const ofQueue = turns.get(name) ?? new Set<string>();
    turns.set(name, ofQueue);
    return ofQueue;
  }

  return {
    claim,
    numberOf: (claimed) => {
      const number = numbers.get(claimed);
      return number !== undefined && held.has(number) ? number : undefined;
    },
    forget: (claimed) => void held.delete(numbers.get(claimed) ?? -1),
  };
}

type Wanted = { readonly owner: string; readonly lane: string; readonly room: number };

type Counted = { owner: string; count: number };

type Taken = { readonly key: string; readonly owner: string; readonly number: number };

/** The owners with free slots in their lanes, in the order of their turns. */
function wantedOf(
  turns: Set<string>,
  owners: readonly { owner: string }[],
  others: readonly Counted[],
  { laneOf, roomIn }: Claim,
): Wanted[] {
  const waiting = new Set(owners.map(({ owner }) => owner));
  for (const owner of turns) if (!waiting.has(owner)) turns.delete(owner);
  for (const owner of waiting) turns.add(owner);
  const taken = new Map<string, number>();
  for (const { owner, count } of others) taken.set(laneOf(owner), (taken.get(laneOf(owner)) ?? 0) + count);
  return [...turns].flatMap((owner) => {
    const lane = laneOf(owner);
    const room = roomIn(lane) - (taken.get(lane) ?? 0);
    return room > 0 ? [{ owner, lane, room: Math.min(room, mostInALane) }] : [];
  });
}

/** Selects the owners with pending rows. It jumps from owner to owner in the index instead of reading every row. */
function ownersOf({ name }: { name: string }): string {
  const waiting = `from ${nameOf(name)} q where q.due_at is not null`;
  return `with recursive owners as (
    (select q.owner ${waiting} order by q.owner limit 1)
    union all
    select (select q.owner ${waiting} and q.owner > o.owner order by q.owner limit 1)
    from owners o where o.owner is not null)
  select owner from owners where owner is not null`;
}

/** Claims due rows; step 3 at the top of this file. `rank` numbers the rows of an owner, `place` the rows of a lane. */
function takeDue(queue: Queue<never>): string {
  const table = nameOf(queue.name);
  return `with due as (
    select r.*, t.lane, t.room, t.turn,
      row_number() over (partition by t.owner order by r.urgent desc, r.due_at, r.placed) as rank
    from unnest($6::text[], $7::text[], $8::bigint[]) with ordinality t(owner, lane, room, turn)
    cross join (values (true), (false)) u(urgent)
    cross join lateral (
      select q.key, q.owner, q.urgent, q.due_at, q.placed from ${table} q
      where q.owner = t.owner and q.urgent = u.urgent and q.due_at is not null and q.due_at <= $2 and ${isFree}
      order by q.due_at, q.placed limit least(t.room, $3, $5)) r),
  placed as (
    select *, row_number() over (partition by lane order by rank, turn) as place from due where rank <= $5),
  chosen as (select key, rank, turn from placed where place <= room order by rank, turn limit $3),
  locked as (
    select q.key, q.owner from ${table} q where q.key in (select key from chosen) and q.due_at <= $2
    for update skip locked),
  taken as (
    insert into claims (queue, key, owner, process) select $1, key, owner, $4 from locked
    on conflict do nothing returning key, owner, number)
  select taken.key, taken.owner, taken.number from taken join chosen using (key) order by rank, turn`;
}

async function nextDue(
  client: Client,
  queue: Queue<never>,
  owners: readonly { owner: string }[],
  at: number,
): Promise<number | undefined> {
  const { rows } = await query<{ next: number | null }>(
    client,
    `select min(r.due_at) as next from unnest($3::text[]) t(owner)
     cross join (values (true), (false)) u(urgent)
     cross join lateral (
       select q.due_at from ${nameOf(queue.name)} q
       where q.owner = t.owner and q.urgent = u.urgent and q.due_at is not null and q.due_at > $2 and ${isFree}
       order by q.due_at limit 1) r`,
    [queue.name, at, owners.map(({ owner }) => owner)],
  );
  return rows[0]?.next ?? undefined;
}
