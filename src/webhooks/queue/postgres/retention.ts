// Removes the finished deliveries of a webhook beyond those that it keeps, the ones that finished first before others.
import { isUnavailable } from '../../../lib/errors.ts';
import type { Database } from '../../../store/postgres/database.ts';
import { type DeliveryRetention, keptOf } from '../delivery-queue.ts';
import { type Delivery, type FinishedKind, finishedKinds, kindOf } from '../delivery.ts';
import type { UnusedEvents } from './unused-events.ts';

/** The finished deliveries of a webhook of one kind, and how many of them it keeps. */
type RetentionGroup = {
  readonly webhookId: string;
  readonly kind: FinishedKind;
  readonly keep: number;
};

/** How many deliveries of a group finished since it was trimmed last. */
type Noted = { readonly group: RetentionGroup; readonly count: number };

/** A transaction deletes at most this many deliveries, so that no other write waits for long. */
const batch = 1_000;

/** SQL of `kindOf`, as the place in `finishedKinds`, in the form of the index `finished_retained`. */
export const kindColumn = `(case when f.state = 'delivered' or f.is_ping then 0 when f.redelivered_as is null then 1 else 2 end)`;

/**
 * Deletes at most $5 deliveries beyond those that a group keeps, of those that ended at `since` or later. The result is
 * how many it has deleted of each group, and when the last of them ended.
 */
const trimStatement = `with deleted as (
    delete from finished f where f.ctid = any(array(
      select r.ctid from unnest($1::text[], $2::int[], $3::bigint[], $4::bigint[]) t(webhook_id, kind, keep, since)
      cross join lateral (
        select f.ctid from finished f
        where f.webhook_id = t.webhook_id and ${kindColumn} = t.kind and f.ended_at >= t.since
        order by f.ended_at desc, f.number desc offset t.keep) r
      limit $5)) returning f.event_number, f.webhook_id, f.ended_at, ${kindColumn} as kind)
  select webhook_id, kind, count(*), max(ended_at) as last, array_agg(distinct event_number::float8) as events
  from deleted group by webhook_id, kind`;

type Trimmed = {
  readonly webhook_id: string;
  readonly kind: number;
  readonly count: number;
  readonly last: number;
  readonly events: readonly number[];
};

/** Finding the surplus reads what a group keeps, so a statement must not have many groups. */
const groupsAtOnce = 50;

type TrimmerOptions = {
  readonly database: Database;
  readonly retention: DeliveryRetention;
  readonly unused: UnusedEvents;
  /** Logs an error of work that nobody waits for. */
  readonly onError: (error: unknown) => void;
};

export class Trimmer {
  readonly #options: TrimmerOptions;
  readonly #finished = new Map<string, Noted>();
  /**
   * When the last delivery ended that was trimmed, by group. Those before it are deleted, but PostgreSQL cannot remove
   * their index entries while a backup may still read them.
   */
  readonly #trimmedTo = new Map<string, number>();
  #evicted = 0;
  #isTrimming = false;

  constructor(options: TrimmerOptions) {
    this.#options = options;
  }

  /** How many deliveries this process has removed that could have been recovered. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Notes webhooks that may keep more than they should: the limits were higher, or a process was killed. */
  noteAll(webhookIds: Iterable<string>): void {
    for (const webhookId of webhookIds) for (const kind of finishedKinds) this.#note(webhookId, kind, 0);
  }

  noteFinished(delivery: Delivery): void {
    if (delivery.state !== 'pending') this.#note(delivery.webhookId, kindOf(delivery), 1);
  }

  noteDiscarded(webhookId: string, count: number): void {
    this.#note(webhookId, 'recoverable', count);
  }

  /** Notes that deliveries of a webhook were redelivered. */
  noteRedelivered(webhookId: string, count: number): void {
    // They ended earlier than others that are kept.
    this.#trimmedTo.delete(keyOf(webhookId, 'redelivered'));
    this.#note(webhookId, 'redelivered', count);
  }

  #note(webhookId: string, kind: FinishedKind, count: number): void {
    const key = keyOf(webhookId, kind);
    const group = { webhookId, kind, keep: keptOf(kind, this.#options.retention) };
    const noted = { group, count: count + (this.#finished.get(key)?.count ?? 0) };
    this.#finished.set(key, noted);
    if (isEnough(noted) && !this.#isTrimming) void this.#trimSoon();
  }

  /** Nothing waits for it, and nothing fails if it does. */
  async #trimSoon(): Promise<void> {
    this.#isTrimming = true;
    try {
      // The groups that are noted at the same moment are trimmed together.
      await Promise.resolve();
      while ([...this.#finished.values()].some(isEnough)) await this.#trim(isEnough);
    } catch (error) {
      this.#options.onError(error);
    } finally {
      this.#isTrimming = false;
    }
  }

  /** Also finds deliveries that ended before others that were trimmed, for example by a clock that is behind. */
  async trimAll(): Promise<void> {
    this.#trimmedTo.clear();
    await this.#trim(() => true);
  }

  async #trim(isChosen: (noted: Noted) => boolean): Promise<void> {
    const chosen = [...this.#finished].filter(([, noted]) => isChosen(noted));
    if (chosen.length === 0) return;
    for (const [key] of chosen) this.#finished.delete(key);
    const rest = chosen.map(([, { group }]) => group);
    try {
      while (rest.length > 0) {
        const groups = rest.splice(0, groupsAtOnce);
        const lasts = new Map<string, number>();
        for (let count = batch; count === batch;) count = await this.#deleteSome(groups, lasts);
        for (const [key, last] of lasts) this.#trimmedTo.set(key, last);
      }
    } catch (error) {
      // The deliveries that finish next are trimmed together with these.
      if (!isUnavailable(error)) throw error;
    }
  }

  /** Deletes a batch, those that ended last first, and notes in `lasts` when the last of each group ended. */
  async #deleteSome(groups: readonly RetentionGroup[], lasts: Map<string, number>): Promise<number> {
    const trimmed = await this.#options.database.write<Trimmed>(trimStatement, [
      groups.map(({ webhookId }) => webhookId),
      groups.map(({ kind }) => finishedKinds.indexOf(kind)),
      groups.map(({ keep }) => keep),
      groups.map((group) => this.#trimmedTo.get(keyOf(group.webhookId, group.kind)) ?? 0),
      batch,
    ]);
    let deleted = 0;
    for (const { webhook_id: id, kind: place, count, last, events } of trimmed) {
      const kind = finishedKinds[place] ?? 'history';
      this.#options.unused.note(events);
      deleted += count;
      if (kind === 'recoverable') this.#evicted += count;
      const key = keyOf(id, kind);
      lasts.set(key, Math.max(last, lasts.get(key) ?? 0));
    }
    return deleted;
  }
}

/** Finding the surplus costs as much as the kept ones are many. */
function isEnough({ group, count }: Noted): boolean {
  return count > Math.floor(group.keep / 5);
}

function keyOf(webhookId: string, kind: FinishedKind): string {
  return `${kind} ${webhookId}`;
}
