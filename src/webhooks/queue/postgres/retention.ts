// Removes the finished deliveries of a webhook beyond those that it keeps, the ones that finished first before others.
import { isUnavailable } from '../../../lib/errors.ts';
import { type Database, isAborted } from '../../../store/postgres/database.ts';
import type { DeliveryRetention } from '../delivery-queue.ts';
import { type Delivery, isRecoverable } from '../delivery.ts';

/** The finished deliveries of a webhook of one kind, and how many of them it keeps. */
type RetentionGroup = {
  readonly webhookId: string;
  readonly isRecoverable: boolean;
  readonly keep: number;
};

/** A transaction deletes at most this many deliveries, so that no other write waits for long. */
const batch = 1_000;

/** SQL of `isRecoverable`, in the form of the index `finished_retained`. */
const recoverable = `(f.state in ('failed', 'missed', 'discarded') and not f.is_ping and f.redelivered_as is null)`;

/**
 * Deletes at most $4 deliveries. The result is how many it has deleted, and how many of those could have been
 * recovered.
 */
const trimStatement = `with deleted as (
    delete from finished f where f.ctid = any(array(
      select r.ctid from unnest($1::text[], $2::boolean[], $3::bigint[]) t(webhook_id, recoverable, keep) cross join lateral (
        select f.ctid from finished f where f.webhook_id = t.webhook_id and ${recoverable} = t.recoverable
        order by f.ended_at desc, f.number desc offset t.keep) r
      limit $4)) returning f.id, ${recoverable} as recoverable),
  content as (delete from deliveries d where d.id = any(array(select id from deleted)))
  select count(*), count(*) filter (where recoverable) as evicted from deleted`;

type Trimmed = { readonly count: number; readonly evicted: number };

export class Trimmer {
  readonly #database: Database;
  readonly #retention: DeliveryRetention;
  /** Deliveries that finished since their group was trimmed last. */
  readonly #finished = new Map<string, { readonly group: RetentionGroup; count: number }>();
  #evicted = 0;

  constructor(database: Database, retention: DeliveryRetention) {
    this.#database = database;
    this.#retention = retention;
  }

  /** How many deliveries this process has removed that could have been recovered. */
  get evicted(): number {
    return this.#evicted;
  }

  noteEvicted(count: number): void {
    this.#evicted += count;
  }

  noteFinished(delivery: Delivery): void {
    if (delivery.state !== 'pending') this.#note(this.#groupOf(delivery), 1);
  }

  noteDiscarded(webhookId: string, count: number): void {
    this.#note({ webhookId, isRecoverable: true, keep: this.#retention.recoverable }, count);
  }

  /** Notes that deliveries of a webhook were redelivered. */
  noteRedelivered(webhookId: string, count: number): void {
    this.#note({ webhookId, isRecoverable: false, keep: this.#retention.history }, count);
  }

  #note(group: RetentionGroup, count: number): void {
    const key = `${group.isRecoverable} ${group.webhookId}`;
    const noted = this.#finished.get(key) ?? { group, count: 0 };
    noted.count += count;
    this.#finished.set(key, noted);
  }

  #groupOf(delivery: Delivery): RetentionGroup {
    const { webhookId } = delivery;
    return isRecoverable(delivery)
      ? { webhookId, isRecoverable: true, keep: this.#retention.recoverable }
      : { webhookId, isRecoverable: false, keep: this.#retention.history };
  }

  /** Trims the groups with enough new deliveries: finding the surplus costs as much as the kept ones are many. */
  async trim(): Promise<void> {
    await this.#trim(({ group, count }) => count > Math.floor(group.keep / 5));
  }

  async trimAll(): Promise<void> {
    await this.#trim(() => true);
  }

  async #trim(
    isChosen: (noted: { readonly group: RetentionGroup; readonly count: number }) => boolean,
  ): Promise<void> {
    const chosen = [...this.#finished].filter(([, noted]) => isChosen(noted));
    if (chosen.length === 0) return;
    for (const [key] of chosen) this.#finished.delete(key);
    const groups = chosen.map(([, { group }]) => group);
    try {
      for (let count = batch; count === batch;) {
        const [trimmed] = await this.#database.write<Trimmed>(trimStatement, [
          groups.map(({ webhookId }) => webhookId),
          groups.map((group) => group.isRecoverable),
          groups.map(({ keep }) => keep),
          batch,
        ]);
        this.#evicted += trimmed?.evicted ?? 0;
        count = trimmed?.count ?? 0;
      }
    } catch (error) {
      // The deliveries that finish next are trimmed together with these.
      if (!isUnavailable(error) && !isAborted(error)) throw error;
    }
  }
}
