// Claims: rows of queues that this process has in hand, taken with `for update skip locked`, so that no two processes get the same.
import type { Claim, Claimed } from '../store.ts';
import type { Queue } from '../transaction.ts';
import { createLane } from '../../lane.ts';
import { nameOf } from './columns.ts';
import { type Client, type Database, query } from './database.ts';
import { rowOf, selectionOf } from './queue-acts.ts';
import type { Secrets } from './secrets.ts';

export type Claims = {
  claim: <T>(queue: Queue<T>, claim: Claim) => Promise<Claimed<T>>;
  /** The number under which the row was claimed; undefined when it is not in hand. */
  numberOf: (claimed: object) => number | undefined;
  /** Settled, or lost. */
  forget: (claimed: object) => void;
};

type Due = { readonly owner: string; readonly due: number; readonly next: number | null };

export function createClaims(database: Database, secrets: Secrets, self: string): Claims {
  const numbers = new WeakMap<object, number>();
  const inHand = new Set<number>();
  /** By queue: owners that may have something due, whose turn it is in front. */
  const turns = new Map<string, Set<string>>();
  /** Queues of which the answer to a claim was lost. It may have been carried out: then there are rows that nobody knows to have. */
  const unsure = new Set<string>();
  const oneAtATime = createLane();

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
      `update ${nameOf(queue.name)} set claim = null, claimed_by = null
       where claimed_by = $1 and claim is not null and not claim = any($2::bigint[])`,
      [self, [...inHand]],
    );
  }

  async function take<T>(client: Client, queue: Queue<T>, asked: Claim): Promise<Claimed<T>> {
    const table = nameOf(queue.name);
    const [{ rows: owners }, { rows: others }] = await Promise.all([
      query<Due>(client, dueByOwner(table), [asked.at, asked.most]),
      query<{ owner: string; count: number }>(
        client,
        `select owner, count(*) from ${table} where claim is not null and claimed_by <> $1 group by owner`,
        [self],
      ),
    ]);
    const nexts = owners.flatMap(({ next }) => next ?? []);
    const nextAt = nexts.length > 0 ? Math.min(...nexts) : undefined;
    const sequence = share(turnsOf(queue), owners, others, asked);
    if (sequence.length === 0) return { rows: [], nextAt };

    const wanted = new Map<string, number>();
    for (const owner of sequence) wanted.set(owner, (wanted.get(owner) ?? 0) + 1);
    const { rows: records } = await query<Record<string, unknown> & Taken>(client, takeDue(queue), [
      ...[asked.at, [...wanted.keys()], [...wanted.values()], self],
    ]);
    records.sort((a, b) => Number(b.urgent) - Number(a.urgent) || a.due_at - b.due_at || a.placed - b.placed);
    const rows = sequence.flatMap((wantedOwner) => {
      const index = records.findIndex(({ owner }) => owner === wantedOwner);
      const [record] = index < 0 ? [] : records.splice(index, 1);
      if (!record) return [];
      const row = rowOf(queue, record, secrets);
      numbers.set(row as object, record.claim);
      inHand.add(record.claim);
      return [row];
    });
    return { rows, nextAt };
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

type Taken = { owner: string; claim: number; urgent: boolean; due_at: number; placed: number };

/** Whose rows are taken one after another: owners take turns, as far as there is room in their lanes. */
function share(
  turns: Set<string>,
  owners: readonly Due[],
  others: readonly { owner: string; count: number }[],
  { most, laneOf, roomIn }: Claim,
): string[] {
  const left = new Map(owners.map(({ owner, due }) => [owner, due]));
  for (const owner of left.keys()) turns.add(owner);
  const rooms = new Map<string, number>();
  const roomOf = (lane: string) => rooms.get(lane) ?? roomIn(lane);
  for (const { owner, count } of others) rooms.set(laneOf(owner), roomOf(laneOf(owner)) - count);

  const sequence: string[] = [];
  // An owner that had its turn goes to the end, where this loop comes by again.
  for (const owner of turns) {
    if (sequence.length >= most) break;
    const due = left.get(owner);
    const room = roomOf(laneOf(owner));
    if (due === undefined) turns.delete(owner);
    if (due === undefined || due === 0 || room <= 0) continue;
    left.set(owner, due - 1);
    rooms.set(laneOf(owner), room - 1);
    sequence.push(owner);
    turns.delete(owner);
    turns.add(owner);
  }
  return sequence;
}

/** For each owner with rows that wait: how many are due, as far as that matters, and when the next will be. */
function dueByOwner(table: string): string {
  const free = 'due_at is not null and claim is null';
  const due = (urgent: boolean) =>
    `(select count(*) from (select from ${table} q
       where q.owner = o.owner and q.urgent = ${urgent} and q.due_at <= $1 and ${free} limit $2) d)`;
  const next = (urgent: boolean) =>
    `(select q.due_at from ${table} q
       where q.owner = o.owner and q.urgent = ${urgent} and q.due_at > $1 and ${free} order by q.due_at limit 1)`;
  // From owner to owner along the index, however many rows each has.
  return `with recursive owners as (
    (select owner from ${table} where ${free} order by owner limit 1)
    union all
    select (select q.owner from ${table} q where q.owner > o.owner and ${free} order by q.owner limit 1)
    from owners o where o.owner is not null)
  select o.owner, ${due(true)} + ${due(false)} as due, least(${next(true)}, ${next(false)}) as next
  from owners o where o.owner is not null`;
}

function takeDue(queue: Queue<never>): string {
  const table = nameOf(queue.name);
  return `update ${table} q set claim = nextval('claims'), claimed_by = $4
  where q.key in (
    select c.key from unnest($2::text[], $3::bigint[]) t(owner, most) cross join lateral (
      select r.key from (values (true), (false)) u(urgent) cross join lateral (
        select d.key, d.urgent, d.due_at, d.placed from ${table} d
        where d.owner = t.owner and d.urgent = u.urgent and d.due_at <= $1
          and d.due_at is not null and d.claim is null
        order by d.due_at, d.placed limit t.most for update skip locked) r
      order by r.urgent desc, r.due_at, r.placed limit t.most) c)
  returning ${selectionOf(queue)}, q.claim, q.urgent, q.due_at, q.placed`;
}
