// Claims deliveries for this process, so that no other process attempts them.
//
// A claimed delivery has the id of the process and a number in its row. The number identifies one claim: if the
// process is declared dead and another one claims the delivery, the numbers differ, and the first process finds
// that its claim is lost. peers.ts releases the claims of dead processes. A process without a valid lease claims
// nothing.
//
// Which deliveries a process gets, in two round trips:
//
// 1. Read what the last claim has left, and how many deliveries other processes have claimed.
// 2. Choose the webhooks whose turn it is: the first ones that have something due and whose receiver has room, minus the
//    claims of other processes, but no more webhooks than deliveries are asked for. So a claim costs the same however
//    many webhooks wait. Claim their due deliveries round by round: the first of every webhook, then the second, and so
//    on. Within a webhook, the priority counts first, then the time since when the delivery waits. All these webhooks go
//    to the end of the turns, also those of which nothing was claimed.
//
// The process remembers the groups that have free deliveries (free-groups.ts). A group is a webhook and a priority.
// `for update skip locked` keeps two processes from claiming the same delivery.
import { createMutex } from '../../../lib/async.ts';
import type { Runtime } from '../../../lib/runtime.ts';
import { type Client, type Database, query } from '../../../store/postgres/database.ts';
import type { Holdings } from '../../../store/postgres/peers.ts';
import type { ClaimRequest, Claimed } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import { type FreeGroup, FreeGroups } from './free-groups.ts';
import { type DeliveryRow, pendingColumns, toDelivery } from './rows.ts';

/** A receiver without a limit has infinite room, which PostgreSQL cannot read as an integer. */
const maxRoom = 1_000_000;

/** After a crash of the database, other processes reconnect and store the results of their attempts within this time. */
const newServerPauseMs = 1_000;

/** When another process was faster, this one claims again after this time. */
const claimAgainMs = 20;

/**
 * The claims of other processes by webhook, from the first claim of each process at the last count on: PostgreSQL
 * may have to keep the index entries of older ones.
 */
const countOthers = `select p.id as process, q.webhook_id, count(*), min(q.claim) as first
  from processes p left join unnest($2::text[], $3::bigint[]) k(id, first) on k.id = p.id cross join lateral (
    select q.webhook_id, q.claim from queue q
    where q.claimed_by = p.id and q.claimed_by is not null and q.claim >= coalesce(k.first, 0) offset 0) q
  where p.id <> $1 group by p.id, q.webhook_id`;

type OtherClaims = {
  readonly process: string;
  readonly webhook_id: string;
  readonly count: number;
  readonly first: number;
};

/**
 * `rank` numbers the deliveries of a webhook, `place` those of a receiver. `emptied` has the webhooks whose deliveries are
 * being discarded: until that is done, they get only pings. It also has those that were deleted: what was stored later is
 * claimed, and then deleted. `locked` checks again that a delivery is free: another process may have claimed it meanwhile.
 */
const claimDue = `with due as (
    select r.ctid, t.receiver, t.room, t.most, t.turn,
      row_number() over (partition by t.webhook_id order by r.priority, r.since, r.number) as rank
    from unnest($1::text[], $2::text[], $3::int[], $4::smallint[], $5::bigint[], $6::bigint[], $7::int[])
      with ordinality t(webhook_id, receiver, room, priority, since, until, most, turn)
    cross join lateral (
      select q.ctid, q.priority, q.since, q.number from queue q
      where q.claimed_by is null and q.webhook_id = t.webhook_id and q.priority = t.priority and q.since between t.since and t.until
        and q.number > coalesce((
          select max(e.up_to) from emptied e where e.webhook_id = t.webhook_id and e.discarded_at is null), -1)
      order by q.since, q.number limit least(t.room, t.most)) r
    where t.priority = 0 or not exists (
      select from emptied e where e.webhook_id = t.webhook_id and e.discarded_at is not null)),
  placed as (select *, row_number() over (partition by receiver order by rank, turn) as place from due where rank <= most),
  chosen as (select ctid from placed where place <= room order by rank, turn limit $8::int),
  locked as (
    select q.ctid from queue q where q.ctid = any(array(select ctid from chosen)) and coalesce(q.claimed_by, '') = ''
    and exists (select from processes p where p.id = $9 and p.alive_until > clock_timestamp())
    for update of q skip locked),
  claimed as (
    update queue q set claimed_by = $9, claim = nextval('claim_numbers') where q.ctid = any(array(select ctid from locked))
    returning q.*)
  select ${pendingColumns}, q.claim, q.priority, q.since, q.number
  from claimed q cross join lateral (select * from events e where e.number = q.event_number offset 0) e`;

type ClaimedRow = DeliveryRow & {
  readonly claim: number;
  readonly priority: number;
  readonly since: number;
  readonly number: number;
};
/** Identifies a claimed delivery in `queue`, and its claim. */
type ClaimedKey = { readonly webhookId: string; readonly number: number; readonly claim: number };

/** The due deliveries of a group: those that wait since a moment from `since` to `until`. */
type Due = FreeGroup & {
  readonly receiver: string;
  readonly room: number;
  readonly until: number;
  /** How many deliveries of the webhook may be claimed. */
  readonly most: number;
};

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
  readonly #rows = new WeakMap<Delivery, ClaimedKey>();
  /** The claims that this process holds. Their numbers may occur again after a failover. */
  readonly #held = new Set<ClaimedKey>();
  /** The first claim of each other process, by process, at the last count. */
  #firstClaims = new Map<string, number>();
  readonly #groups = new FreeGroups();
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

  /** The row of a claimed delivery; undefined if this process does not hold it. `claimed` is what `claim` returned. */
  rowOf(claimed: Delivery): ClaimedKey | undefined {
    const row = this.#rows.get(claimed);
    return row && this.#held.has(row) ? row : undefined;
  }

  /** Removes a claim that has ended. */
  forget(claimed: Delivery): void {
    const row = this.#rows.get(claimed);
    if (row) this.#held.delete(row);
  }

  /** Removes the claims of a webhook that was deleted. */
  forgetWebhook(webhookId: string): void {
    for (const key of this.#held) if (key.webhookId === webhookId) this.#held.delete(key);
  }

  /** Notes pending deliveries that this process has added, or that are retried. */
  noteFree(deliveries: readonly Delivery[]): void {
    this.#groups.add(deliveries);
  }

  /** Notes that first attempts were added to the webhook at this moment. */
  noteAdded(webhookId: string, at: number): void {
    this.#groups.merge({ webhookId, priority: 2, since: at });
  }

  /** Notes that deliveries of the webhook were discarded or deleted. */
  noteEmptied(webhookId: string): void {
    this.#groups.doubt(webhookId);
  }

  /** Other processes may have added or released deliveries: the next claim reads which groups have free ones. */
  noteChanges(): void {
    this.#groups.expire();
  }

  async claim(request: ClaimRequest): Promise<Claimed> {
    if (request.most <= 0) return { deliveries: [], nextAt: undefined };
    this.#options.database.requireWritable();
    return this.#mutex(async () => {
      const pause = this.#pausedUntil - this.#options.runtime.now();
      if (pause > 0) await this.#options.runtime.sleep(pause);
      const claimed = await this.#options.database.use((client) => this.#claim(client, request));
      const { length } = claimed.deliveries;
      if (length > 0 && length < request.most / 2) this.#pauseFor(this.#options.pace.claimPauseMs);
      return claimed;
    });
  }

  async release(claimed: readonly Delivery[]): Promise<void> {
    const held = claimed.flatMap((delivery) => this.rowOf(delivery)?.claim ?? []);
    if (held.length === 0) return;
    await this.#options.database.write(
      `update queue set claimed_by = null, claim = null where claimed_by = $1 and claim = any($2::bigint[])`,
      [this.#options.self, held],
    );
    for (const delivery of claimed) this.forget(delivery);
    this.noteFree(claimed);
  }

  async #claim(client: Client, request: ClaimRequest, isRepeated = false): Promise<Claimed> {
    if (this.#isUncertain) await this.#releaseUnknown(client);
    const { at, retryWaitMs } = request;
    const [, others] = await Promise.all([
      this.#groups.read(client, this.#options.database.probeMs),
      this.#countOthers(client),
    ]);
    // Pings and first attempts are always due.
    const until = ({ priority }: FreeGroup) => (priority === 1 ? at - retryWaitMs : Number.MAX_SAFE_INTEGER);
    const due = this.#choose(request, countByReceiver(request, others), until);
    // What is due now has to wait until its receiver has room.
    if (due.length === 0) return { deliveries: [], nextAt: this.#nextAt(retryWaitMs, until) };
    for (const { webhookId } of due) this.#groups.use(webhookId);
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
    // What this process knew of may have ended. The second time, it knows what is there.
    if (deliveries.length === 0 && !isRepeated) return this.#claim(client, request, true);
    // After a claim of some deliveries, the next claim finds out when more are due. If there are none, another
    // process was faster, and its claims may not be visible yet.
    return { deliveries, nextAt: deliveries.length > 0 ? at : at + claimAgainMs };
  }

  async #countOthers(client: Client): Promise<readonly OtherClaims[]> {
    const known = [...this.#firstClaims];
    const { rows } = await query<OtherClaims>(client, countOthers, [
      this.#options.self,
      known.map(([process]) => process),
      known.map(([, first]) => first),
    ]);
    const firsts = new Map<string, number>();
    for (const { process, first } of rows)
      firsts.set(process, Math.min(first, firsts.get(process) ?? Infinity));
    for (const [process, first] of firsts) this.#firstClaims.set(process, first);
    return rows;
  }

  /**
   * Forgets what belongs to another database server. A crash may have undone the claims of other processes, which are
   * attempting these deliveries, so this process claims nothing for a moment.
   */
  forgetServer(): void {
    this.#firstClaims = new Map();
    this.#groups.expire();
    this.#pauseFor(newServerPauseMs);
  }

  #pauseFor(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#options.runtime.now() + ms);
  }

  async #releaseUnknown(client: Client): Promise<void> {
    await query(
      client,
      `update queue set claimed_by = null, claim = null where claimed_by = $1 and not claim = any($2::bigint[])`,
      [this.#options.self, [...this.#held].map(({ claim }) => claim)],
    );
    this.noteChanges();
    this.#isUncertain = false;
  }

  /** What is due of the first webhooks in turn whose receivers have room. */
  #choose(
    { most, receiverOf, roomFor }: ClaimRequest,
    taken: ReadonlyMap<string, number>,
    until: (group: FreeGroup) => number,
  ): readonly Due[] {
    const due: Omit<Due, 'most'>[] = [];
    const crowded = new Set<string>();
    const left = new Map<string, number>();
    let chosen = 0;
    for (const [webhookId, groups] of this.#groups.inTurns()) {
      if (chosen >= most) break;
      const dueGroups = groups.filter((group) => group.since <= until(group));
      if (dueGroups.length === 0) continue;
      const receiver = receiverOf(webhookId);
      const room = Math.min(maxRoom, roomFor(receiver) - (taken.get(receiver) ?? 0));
      const rest = left.get(receiver) ?? room;
      if (rest <= 0) {
        if (room > 0) crowded.add(receiver);
        continue;
      }
      left.set(receiver, rest - 1);
      chosen += 1;
      for (const group of dueGroups) due.push({ ...group, receiver, room, until: until(group) });
    }
    // Nobody gets a second delivery while another webhook of the receiver waits for its first one.
    const each = Math.ceil(most / chosen);
    return due.map((one) => ({ ...one, most: crowded.has(one.receiver) ? 1 : each }));
  }

  /** When the first retry is due that is not due yet. */
  #nextAt(retryWaitMs: number, until: (group: FreeGroup) => number): number | undefined {
    let first: number | undefined;
    for (const [, groups] of this.#groups.inTurns())
      for (const group of groups)
        if (group.since > until(group)) first = Math.min(group.since, first ?? Infinity);
    return first === undefined ? undefined : first + retryWaitMs;
  }

  async #take(client: Client, due: readonly Due[], { most }: ClaimRequest): Promise<readonly ClaimedRow[]> {
    const { rows } = await query<ClaimedRow>(client, claimDue, [
      due.map(({ webhookId }) => webhookId),
      due.map(({ receiver }) => receiver),
      due.map(({ room }) => room),
      due.map(({ priority }) => priority),
      due.map(({ since }) => since),
      due.map(({ until }) => until),
      due.map((one) => one.most),
      most,
      this.#options.self,
    ]);
    return inTurns(rows, due);
  }

  #hold(row: ClaimedRow): Delivery {
    const delivery = toDelivery(row);
    const key = { webhookId: delivery.webhookId, number: row.number, claim: row.claim };
    this.#rows.set(delivery, key);
    this.#held.add(key);
    this.#groups.use(delivery.webhookId);
    return delivery;
  }
}

/** The first delivery of each webhook in the order of their turns, then the second of each, and so on. */
function inTurns(rows: readonly ClaimedRow[], due: readonly Due[]): readonly ClaimedRow[] {
  const rowsOf = new Map<string, ClaimedRow[]>(due.map(({ webhookId }) => [webhookId, []]));
  const ordered = rows.toSorted(
    (a, b) => a.priority - b.priority || a.since - b.since || a.number - b.number,
  );
  for (const row of ordered) rowsOf.get(row.webhook_id)?.push(row);
  const queues = [...rowsOf.values()];
  const longest = Math.max(...queues.map((queue) => queue.length));
  return Array.from({ length: longest }, (_, rank) => queues.flatMap((queue) => queue[rank] ?? [])).flat();
}

function countByReceiver({ receiverOf }: ClaimRequest, claims: readonly OtherClaims[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { webhook_id: id, count } of claims) {
    const receiver = receiverOf(id);
    counts.set(receiver, (counts.get(receiver) ?? 0) + count);
  }
  return counts;
}

/** The claims of processes. */
export const claimsOfProcesses: Holdings = {
  selectGone: `select distinct q.claimed_by as id from queue q where q.claimed_by is not null
    and not exists (select from processes p where p.id = q.claimed_by)`,
  async release(client, processes) {
    const { rowCount } = await query(
      client,
      'update queue set claimed_by = null, claim = null where claimed_by = any($1::text[])',
      [processes],
    );
    return (rowCount ?? 0) > 0;
  },
};
