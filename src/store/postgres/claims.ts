// Claims: rows of queues that this process has in hand, taken with `for update skip locked`, so that no two processes get the same.
import type { Claim, Claimed } from '../store.ts';
import type { Queue } from '../transaction.ts';
import { createMutex } from '../../lib/async.ts';
import { nameOf } from './columns.ts';
import { type Client, type Database, query } from './database.ts';
import { isFree, rowOf, selectionOf } from './queue-rows.ts';
import type { Secrets } from './secrets.ts';

export type Claims = {
  claim: <T>(queue: Queue<T>, claim: Claim) => Promise<Claimed<T>>;
  /** The number under which the row was claimed; undefined when it is not in hand. */
  numberOf: (claimed: object) => number | undefined;
  /** Settled, or lost. */
  forget: (claimed: object) => void;
};

/** More than anybody has slots for. */
const mostInALane = 1_000_000;

export function createClaims(database: Database, secrets: Secrets, self: string): Claims {
  const numbers = new WeakMap<object, number>();
  const inHand = new Set<number>();
  /** By queue: owners that may have something due, whose turn it is in front. */
  const turns = new Map<string, Set<string>>();
  /** Queues of which the answer to a claim was lost. It may have been carried out: then there are rows that nobody knows to have. */
  const unsure = new Set<string>();
  const oneAtATime = createMutex();

  async function claim<T>(queue: Queue<T>, asked: Claim): Promise<Claimed<T>> {
    if (asked.most <= 0) return { rows: [], nextAt: undefined };
    return oneAtATime(() =>
      database.use(async (client) => {
        if (unsure.has(queue.name)) await giveBackUnknown(client, queue);
        unsure.add(queue.name);
        const taken = await take(client, queue, asked);
        unsure.delete(queue.name);
        return taken;
      }),
    );
  }

  async function giveBackUnknown(client: Client, queue: Queue<never>): Promise<void> {
    await query(
      client,
      'delete from claims where queue = $1 and process = $2 and not number = any($3::bigint[])',
      [queue.name, self, [...inHand]],
    );
  }

  async function take<T>(client: Client, queue: Queue<T>, asked: Claim): Promise<Claimed<T>> {
    const { at, most } = asked;
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
    // Nobody gets more than a fair share before all have had theirs; what is left over then goes to whoever has more.
    for (let share = Math.ceil(most / Math.max(1, owners.length)); ; share = most) {
      const wanted = wantedOf(
        turns,
        owners,
        [...others, ...taken.map(({ owner }) => ({ owner, count: 1 }))],
        asked,
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
    // Last: what was read is in hand, so nothing may fail after it.
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
      inHand.add(number);
      return [row];
    });
  }

  function turnsOf({ name }: { name: string }): Set<string> {
    const known = turns.get(name) ?? new Set<string>();
    turns.set(name, known);
    return known;
  }

  return {
    claim,
    numberOf: (claimed) => {
      const number = numbers.get(claimed);
      return number !== undefined && inHand.has(number) ? number : undefined;
    },
    forget: (claimed) => void inHand.delete(numbers.get(claimed) ?? -1),
  };
}

type Wanted = { readonly owner: string; readonly lane: string; readonly room: number };

type Counted = { owner: string; count: number };

type Taken = { readonly key: string; readonly owner: string; readonly number: number };

/** Whose rows may be taken, in the order of their turns, and how many there is room for in their lanes. */
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

/** Those who have rows that wait: from one to the next along the index, however many rows each has. */
function ownersOf({ name }: { name: string }): string {
  const waiting = `from ${nameOf(name)} q where q.due_at is not null`;
  return `with recursive owners as (
    (select q.owner ${waiting} order by q.owner limit 1)
    union all
    select (select q.owner ${waiting} and q.owner > o.owner order by q.owner limit 1)
    from owners o where o.owner is not null)
  select owner from owners where owner is not null`;
}

/** Each owner's rows by what is urgent and due first; of all owners the first ones, then the second ones, as far as there is room. */
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
