// The writes of an update to the delivery queue, on the connection of its transaction.
import { type Client, query } from '../../../store/postgres/database.ts';
import { bytesOfPayload } from '../../event.ts';
import type { FailureWindow } from '../../sending/failure-window.ts';
import { type DeliveryWrites, LostClaim } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import { type Claims, isFree } from './claims.ts';
import { setFailureWindows } from './failure-windows.ts';
import { type RetentionGroup, type Trimmed, type Trimmer, trimStatement, trimValues } from './retention.ts';
import {
  type PendingCounts,
  completeDeliveries,
  completeValues,
  countAdded,
  pendingCountStatement,
  countsOf,
  insertDeliveries,
  insertParameters,
  insertValues,
} from './rows.ts';

type WritesOptions = { readonly claims: Claims; readonly self: string; readonly trimmer: Trimmer };

/**
 * A transaction discards or deletes at most this many pending deliveries of a webhook, because it must not take
 * long. The worker discards the others one by one: their webhook is inactive or does not exist.
 */
const maxAtOnce = 100_000;

/** Counts the rows of `gone`, which are no longer pending. */
const countGone = 'select -count(*) as count, -coalesce(sum(bytes), 0)::bigint as bytes from gone';

export class TransactionDeliveries implements DeliveryWrites {
  readonly #client: Client;
  readonly #options: WritesOptions;
  readonly #completions: Promise<void>[] = [];
  /** The deliveries whose claims end with the commit. */
  readonly ended: Delivery[] = [];
  /** The deliveries that are finished when they are added. */
  readonly missed: Delivery[] = [];
  /** How many deliveries the commit removes that could have been recovered. */
  evicted = 0;
  /** How much the commit changes the counts of pending deliveries. */
  pending: PendingCounts = { count: 0, bytes: 0 };

  constructor(client: Client, options: WritesOptions) {
    this.#client = client;
    this.#options = options;
  }

  async enqueue(deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    this.#add(countsOf(deliveries));
    for (const delivery of deliveries) if (delivery.state !== 'pending') this.missed.push(delivery);
    await query(
      this.#client,
      `with added as (${insertDeliveries()}) ${pendingCountStatement(`$${insertParameters + 1}::text`, 'update', countAdded)}`,
      [...insertValues(deliveries), this.#options.self],
    );
  }

  async markRedelivered(id: string, as: string): Promise<void> {
    const { rows } = await query<{ webhook_id: string }>(
      this.#client,
      `update deliveries set redelivered_as = $2 where id = $1 and state <> 'pending' returning webhook_id`,
      [id, as],
    );
    for (const row of rows) this.#options.trimmer.noteRedelivered(row.webhook_id, 1);
  }

  async discardPending(webhookId: string, at: number): Promise<number> {
    const group = this.#options.trimmer.recoverableOf(webhookId);
    const [evicted, discarded, { rows: left }] = await Promise.all([
      // Retention would remove these. There may be very many, and it is faster to delete them than to update them
      // first.
      this.#end(
        `delete from deliveries where ctid = any(array(
           select d.ctid from deliveries d where ${isFree} and d.webhook_id = $1 and d.priority = 2
           order by d.since desc, d.placed desc offset $2 limit ${maxAtOnce})) returning bytes`,
        [webhookId, group.keep],
      ),
      this.#end(
        `update deliveries d set state = 'discarded', ended_at = $2::bigint
         where d.ctid = any(array(
           select d.ctid from deliveries d where ${isFree} and d.webhook_id = $1 and d.priority <> 0
           order by d.priority, d.since, d.placed limit ${maxAtOnce})) and ${isFree} returning d.bytes`,
        [webhookId, at],
      ),
      // The worker will discard these.
      query<{ count: number }>(
        this.#client,
        `select count(*) from deliveries d where ${isFree} and d.webhook_id = $1 and d.priority <> 0`,
        [webhookId],
      ),
      this.#trim(group),
    ]);
    this.evicted += evicted;
    return evicted + discarded + (left[0]?.count ?? 0);
  }

  async deleteAll(webhookId: string): Promise<number> {
    const [, deleted, { rows: left }] = await Promise.all([
      // First, as when a failure is counted: otherwise the two could wait for each other.
      query(this.#client, 'delete from failure_windows where webhook_id = $1', [webhookId]),
      this.#end(
        `delete from deliveries where ctid = any(array(
           select d.ctid from deliveries d where d.webhook_id = $1 and d.state = 'pending'
           order by d.created_at, d.placed limit ${maxAtOnce})) returning bytes`,
        [webhookId],
      ),
      query<{ count: number }>(
        this.#client,
        `select count(*) from deliveries where webhook_id = $1 and state = 'pending'`,
        [webhookId],
      ),
      query(this.#client, `delete from deliveries where webhook_id = $1 and state <> 'pending'`, [webhookId]),
    ]);
    return deleted + (left[0]?.count ?? 0);
  }

  setFailures(webhookId: string, window: FailureWindow | null): Promise<void> {
    return setFailureWindows(this.#client, new Map([[webhookId, window]]));
  }

  complete(claimed: Delivery, delivery: Delivery): Promise<void> {
    const completion = this.#complete(claimed, delivery);
    this.#completions.push(completion);
    return completion;
  }

  /** Waits until it is known that no claim is lost. */
  async check(): Promise<void> {
    await Promise.all(this.#completions);
  }

  async #complete(claimed: Delivery, delivery: Delivery): Promise<void> {
    const claim = this.#options.claims.numberOf(claimed);
    if (claim === undefined) throw new LostClaim(claimed.id);
    const values = completeValues([{ delivery, claim }]);
    const { rows } = await query<{ id: string }>(this.#client, completeDeliveries(), values);
    if (rows.length === 0) throw new LostClaim(claimed.id);
    this.ended.push(claimed);
    if (delivery.state === 'pending') return;
    const bytes = bytesOfPayload(delivery.event);
    this.#add({ count: -1, bytes: -bytes });
    const count = pendingCountStatement('$1::text', 'update', 'select -1 as count, $2::bigint as bytes');
    await Promise.all([
      query(this.#client, count, [this.#options.self, -bytes]),
      this.#trim(this.#options.trimmer.groupOf(delivery)),
    ]);
  }

  async #trim(group: RetentionGroup): Promise<void> {
    const { rows } = await query<Trimmed>(this.#client, trimStatement, trimValues([group], null));
    this.evicted += rows[0]?.evicted ?? 0;
  }

  /** Runs a statement that returns the bytes of deliveries that are no longer pending. The result is their number. */
  async #end(statement: string, values: readonly unknown[]): Promise<number> {
    const { rows } = await query<PendingCounts>(
      this.#client,
      `with gone as (${statement}),
       counted as (${pendingCountStatement(`$${values.length + 1}::text`, 'update', countGone)}) ${countGone}`,
      [...values, this.#options.self],
    );
    if (rows[0]) this.#add(rows[0]);
    return -(rows[0]?.count ?? 0);
  }

  #add({ count, bytes }: PendingCounts): void {
    this.pending = { count: this.pending.count + count, bytes: this.pending.bytes + bytes };
  }
}
