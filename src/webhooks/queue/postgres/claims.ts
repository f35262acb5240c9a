// Claims deliveries for this process, so that no other process attempts them.
//
// A claimed delivery has the id of the process and a number in its row. The number identifies one claim: if the
// process is declared dead and another one claims the delivery, the numbers differ, and the first process finds
// that its claim is lost. peers.ts releases the claims of dead processes. A process without a valid lease claims
// nothing.
//
// Which deliveries a process gets, in two round trips:
//
// 1. Read which webhooks have free deliveries of which priority, when the first of them is due, and how many
//    deliveries other processes have claimed.
// 2. Claim due deliveries round by round: the first of every webhook, then the second, and so on, in the order
//    of their turns. A webhook whose delivery was claimed goes to the end. A receiver gets no more than its room,
//    minus the claims of other processes. Within a webhook, the priority counts first, then the time since when the
//    delivery waits.
//
// `for update skip locked` keeps two processes from claiming the same delivery.
import { createMutex } from '../../../lib/async.ts';
import type { Runtime } from '../../../lib/runtime.ts';
import { type Client, type Database, query } from '../../../store/postgres/database.ts';
import type { Holdings } from '../../../store/postgres/peers.ts';
import type { ClaimRequest, Claimed } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import { type DeliveryRow, deliveryColumns, toDelivery } from './rows.ts';

/** SQL condition, which is the condition of the index `deliveries_free`. */
export const isFree = `d.state = 'pending' and d.claimed_by is null`;

/**
 * The same condition in a form that does not match the index: the planner must read only the chosen rows, not all
 * free ones.
 */
const isStillFree = `concat(d.state, d.claimed_by) = 'pending'`;

/** A receiver without a limit has infinite room, which PostgreSQL cannot read as an integer. */
const maxRoom = 1_000_000;

/** When another process was faster, this one looks again after this time. */
const lookAgainMs = 20;

/**
 * The first free delivery of each webhook and priority. Jumps from one to the next in the index instead of reading
 * every delivery.
 */
const selectWaiting = `with recursive w as (
    (select d.webhook_id, d.priority, d.since from deliveries d where ${isFree}
     order by d.webhook_id, d.priority, d.since limit 1)
    union all
    select n.* from w cross join lateral (
      select d.webhook_id, d.priority, d.since from deliveries d
      where ${isFree} and (d.webhook_id, d.priority) > (w.webhook_id, w.priority)
      order by d.webhook_id, d.priority, d.since limit 1) n)
  select webhook_id, priority, since from w`;

const countOthers = `select d.webhook_id, count(*) from processes p join deliveries d on d.claimed_by = p.id
  where p.id <> $1 and d.claimed_by is not null group by d.webhook_id`;

/** `rank` numbers the deliveries of a webhook, `place` those of a receiver. */
const claimDue = `with due as (
    select r.ctid, t.receiver, t.room, t.turn,
      row_number() over (partition by t.webhook_id order by r.priority, r.since, r.placed) as rank
    from unnest($1::text[], $2::text[], $3::int[], $4::smallint[], $5::bigint[])
      with ordinality t(webhook_id, receiver, room, priority, until, turn)
    cross join lateral (
      select d.ctid, d.priority, d.since, d.placed from deliveries d
      where ${isFree} and d.webhook_id = t.webhook_id and d.priority = t.priority and d.since <= t.until
      order by d.since, d.placed limit least(t.room, $6::int)) r),
  placed as (select *, row_number() over (partition by receiver order by rank, turn) as place from due where rank <= $6::int),
  chosen as (select ctid from placed where place <= room order by rank, turn limit $7::int),
  locked as (
    select d.ctid from deliveries d where d.ctid = any(array(select ctid from chosen)) and ${isStillFree}
    and exists (select from processes p where p.id = $8 and p.alive_until > clock_timestamp())
    for update of d skip locked)
  update deliveries d set claimed_by = $8, claim = nextval('claim_numbers') where d.ctid = any(array(select ctid from locked))
  returning ${deliveryColumns}, d.claim, d.priority, d.since, d.placed`;

/** The first free delivery of a webhook and priority. */
type Waiting = { readonly webhook_id: string; readonly priority: number; readonly since: number };
type ClaimedRow = DeliveryRow & {
  readonly claim: number;
  readonly priority: number;
  readonly since: number;
  readonly placed: number;
};
type Candidate = { readonly webhookId: string; readonly receiver: string; readonly room: number };
/** The deliveries of a webhook and priority that wait since `until` or longer. */
type Due = Candidate & { readonly priority: number; readonly until: number };

/**
 * One statement for many deliveries costs far less than many statements for few, so a process waits until there are
 * more.
 */
export type Pace = {
  /**
   * After a claim that used less than half of the free slots, the next one waits this long: few deliveries are due,
   * or other processes have claimed most of what the receivers may get.
   */
  readonly claimPauseMs: number;
  /** Completed deliveries wait this long for others that complete. */
  readonly completeWaitMs: number;
};

export type ClaimsOptions = {
  readonly database: Database;
  readonly self: string;
  readonly runtime: Pick<Runtime, 'now' | 'sleep'>;
  readonly pace: Pace;
};

export class Claims {
  readonly #options: ClaimsOptions;
  readonly #numbers = new WeakMap<Delivery, number>();
  readonly #held = new Set<number>();
  /** Webhooks that may have free deliveries, in the order of their turns. */
  #turns = new Set<string>();
  /**
   * Whether the last claim failed. PostgreSQL may have committed it, so there may be claims that this process does
   * not know of. The next claim releases them first; without this, those deliveries would stay claimed for as long
   * as the process lives.
   */
  #isUncertain = false;
  #pausedUntil = 0;
  readonly #mutex = createMutex();

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  /**
   * The number of the claim; undefined if this process does not hold it. `claimed` is the object that `claim`
   * returned.
   */
  numberOf(claimed: Delivery): number | undefined {
    const number = this.#numbers.get(claimed);
    return number !== undefined && this.#held.has(number) ? number : undefined;
  }

  /** Removes a claim that has ended. */
  forget(claimed: Delivery): void {
    this.#held.delete(this.#numbers.get(claimed) ?? -1);
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    if (request.most <= 0) return { deliveries: [], nextAt: undefined };
    this.#options.database.requireWritable();
    return this.#mutex(async () => {
      const pause = this.#pausedUntil - this.#options.runtime.now();
      if (pause > 0) await this.#options.runtime.sleep(pause);
      const claimed = await this.#options.database.use((client) => this.#claim(client, request));
      const { length } = claimed.deliveries;
      if (length > 0 && length < request.most / 2)
        this.#pausedUntil = this.#options.runtime.now() + this.#options.pace.claimPauseMs;
      return claimed;
    });
  }

  async release(claimed: readonly Delivery[]): Promise<void> {
    const held = claimed.flatMap((delivery) => {
      const claim = this.numberOf(delivery);
      return claim === undefined ? [] : [{ id: delivery.id, claim }];
    });
    if (held.length === 0) return;
    await this.#options.database.write(
      `update deliveries d set claimed_by = null, claim = null from unnest($1::text[], $2::bigint[]) v(id, claim)
       where d.id = v.id and d.claim = v.claim`,
      [held.map(({ id }) => id), held.map(({ claim }) => claim)],
    );
    for (const delivery of claimed) this.forget(delivery);
  }

  async #claim(client: Client, request: ClaimRequest): Promise<Claimed> {
    if (this.#isUncertain) await this.#releaseUnknown(client);
    const { at, retryWaitMs } = request;
    const [{ rows: waiting }, { rows: others }] = await Promise.all([
      query<Waiting>(client, selectWaiting),
      query<{ webhook_id: string; count: number }>(client, countOthers, [this.#options.self]),
    ]);
    const dueTimes = firstDueTimes(waiting, retryWaitMs);
    this.#updateTurns([...dueTimes.keys()]);
    const taken = countByReceiver(request, others);
    const groups = groupByWebhook(waiting);
    const due = this.#candidates(request, taken).flatMap((candidate): Due[] =>
      (groups.get(candidate.webhookId) ?? [])
        .map(({ priority, since }) => ({
          ...candidate,
          priority,
          since,
          until: at - waitOf(priority, retryWaitMs),
        }))
        .filter(({ since, until }) => since <= until),
    );
    // What is due now has to wait until its receiver has room.
    if (due.length === 0) return { deliveries: [], nextAt: firstAfter(at, dueTimes.values()) };
    this.#isUncertain = true;
    const [, , rows] = await Promise.all([
      query(client, 'begin'),
      // The commit need not wait for the disk: a claim that a crash of the database undoes is claimed again.
      query(client, 'set local synchronous_commit to off'),
      this.#take(client, due, request),
      query(client, 'commit'),
    ]);
    this.#isUncertain = false;
    const deliveries = rows.map((row) => this.#hold(row));
    // After a claim of some deliveries, the next claim finds out when more are due. If there are none, another
    // process was faster, and its claims may not be visible yet.
    return { deliveries, nextAt: deliveries.length > 0 ? at : at + lookAgainMs };
  }

  async #releaseUnknown(client: Client): Promise<void> {
    await query(
      client,
      `update deliveries set claimed_by = null, claim = null
       where claimed_by = $1 and not claim = any($2::bigint[])`,
      [this.#options.self, [...this.#held]],
    );
    this.#isUncertain = false;
  }

  #updateTurns(webhookIds: readonly string[]): void {
    const waiting = new Set(webhookIds);
    const turns = new Set([...this.#turns].filter((id) => waiting.has(id)));
    for (const id of waiting) turns.add(id);
    this.#turns = turns;
  }

  /** The webhooks whose receivers have room, in the order of their turns. */
  #candidates(
    { receiverOf, roomFor }: ClaimRequest,
    taken: ReadonlyMap<string, number>,
  ): readonly Candidate[] {
    return [...this.#turns].flatMap((webhookId) => {
      const receiver = receiverOf(webhookId);
      const room = roomFor(receiver) - (taken.get(receiver) ?? 0);
      return room > 0 ? [{ webhookId, receiver, room: Math.min(room, maxRoom) }] : [];
    });
  }

  async #take(client: Client, due: readonly Due[], { most }: ClaimRequest): Promise<readonly ClaimedRow[]> {
    const { rows } = await query<ClaimedRow>(client, claimDue, [
      due.map(({ webhookId }) => webhookId),
      due.map(({ receiver }) => receiver),
      due.map(({ room }) => room),
      due.map(({ priority }) => priority),
      due.map(({ until }) => until),
      Math.ceil(most / new Set(due.map(({ webhookId }) => webhookId)).size),
      most,
      this.#options.self,
    ]);
    return inTurns(rows, due);
  }

  #hold(row: ClaimedRow): Delivery {
    const delivery = toDelivery(row);
    this.#numbers.set(delivery, row.claim);
    this.#held.add(row.claim);
    this.#turns.delete(delivery.webhookId);
    this.#turns.add(delivery.webhookId);
    return delivery;
  }
}

/** The first delivery of each webhook in the order of their turns, then the second of each, and so on. */
function inTurns(rows: readonly ClaimedRow[], due: readonly Candidate[]): readonly ClaimedRow[] {
  const rowsOf = new Map<string, ClaimedRow[]>(due.map(({ webhookId }) => [webhookId, []]));
  const ordered = rows.toSorted(
    (a, b) => a.priority - b.priority || a.since - b.since || a.placed - b.placed,
  );
  for (const row of ordered) rowsOf.get(row.webhook_id)?.push(row);
  const queues = [...rowsOf.values()];
  const longest = Math.max(...queues.map((queue) => queue.length));
  return Array.from({ length: longest }, (_, rank) => queues.flatMap((queue) => queue[rank] ?? [])).flat();
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}

function countByReceiver(
  { receiverOf }: ClaimRequest,
  claims: readonly { readonly webhook_id: string; readonly count: number }[],
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { webhook_id: id, count } of claims) add(counts, receiverOf(id), count);
  return counts;
}

function groupByWebhook(waiting: readonly Waiting[]): Map<string, Waiting[]> {
  const groups = new Map<string, Waiting[]>();
  for (const group of waiting) groups.set(group.webhook_id, [...(groups.get(group.webhook_id) ?? []), group]);
  return groups;
}

function firstAfter(at: number, times: Iterable<number>): number | undefined {
  const later = [...times].filter((time) => time > at);
  return later.length === 0 ? undefined : Math.min(...later);
}

/** When the first delivery of each webhook is due. */
function firstDueTimes(waiting: readonly Waiting[], retryWaitMs: number): Map<string, number> {
  const times = new Map<string, number>();
  for (const { webhook_id: id, priority, since } of waiting) {
    times.set(id, Math.min(times.get(id) ?? Infinity, since + waitOf(priority, retryWaitMs)));
  }
  return times;
}

/** How long a delivery of the priority waits until it is due. */
function waitOf(priority: number, retryWaitMs: number): number {
  return priority === 1 ? retryWaitMs : 0;
}

/** The claims of processes, and their counts of pending deliveries. */
export const claimsOfProcesses: Holdings = {
  selectGone: `select c.process from pending_counts c where c.process <> ''
      and not exists (select from processes p where p.id = c.process) union
    select d.claimed_by from deliveries d where d.claimed_by is not null
      and not exists (select from processes p where p.id = d.claimed_by)`,
  release: releaseClaims,
};

/** Also adds the counts of the processes to those of ended ones. */
async function releaseClaims(client: Client, processes: readonly string[]): Promise<boolean> {
  const [{ rowCount }] = await Promise.all([
    query(
      client,
      'update deliveries set claimed_by = null, claim = null where claimed_by = any($1::text[])',
      [processes],
    ),
    query(
      client,
      `with gone as (delete from pending_counts where process = any($1::text[]) returning count, bytes)
       insert into pending_counts as p (process, statement, count, bytes)
       select '', '', coalesce(sum(count), 0), coalesce(sum(bytes), 0) from gone
       on conflict (process, statement) do update set count = p.count + excluded.count, bytes = p.bytes + excluded.bytes`,
      [processes],
    ),
  ]);
  return (rowCount ?? 0) > 0;
}
