// The writes of an update to the delivery queue, on the connection of its transaction.
//
// An update holds the lock that all updates wait for, so it must not change many rows. It only notes that the
// deliveries of a webhook are discarded or deleted, or that an event is announced. After the commit, emptying.ts and
// distributing.ts do the rest.
import { type Client, query } from '../../../store/postgres/database.ts';
import type { WebhookEvent } from '../../event.ts';
import { type DeliveryWrites, LostClaim } from '../delivery-queue.ts';
import type { AnnounceOptions, Delivery } from '../delivery.ts';
import type { Claims } from './claims.ts';
import {
  completeDeliveries,
  completeValues,
  hasId,
  idValues,
  insertDeliveries,
  insertValues,
} from './rows.ts';

const enqueueStatement = `with ${insertDeliveries('true', 'update')} select from chosen`;
const completeStatement = `with ${completeDeliveries('true', 'update')} select number from done`;
const announceStatement = `insert into events (number, id, type, at, service, data, announced)
  values (nextval('delivery_numbers'), $1, $2, $3, $4, $5, $6)`;
/** Deliveries that are added later belong to the time after the update. */
const noteStatement = `insert into emptied (webhook_id, up_to, discarded_at)
  select $1, case when is_called then last_value else 0 end, $2::bigint from delivery_numbers
  on conflict (webhook_id, up_to) do update set discarded_at = case when excluded.discarded_at is not null then emptied.discarded_at end`;
const done = Promise.resolve();

export class TransactionDeliveries implements DeliveryWrites {
  readonly #client: Client;
  readonly #claims: Claims;
  /** The deliveries that the commit adds. */
  readonly added: Delivery[] = [];
  /** The claimed deliveries that the commit completes, and what becomes of them. */
  readonly completed: { readonly claimed: Delivery; readonly delivery: Delivery }[] = [];
  readonly redelivered: string[] = [];
  /** The webhooks that must be emptied after the commit, and those of them that are deleted. */
  readonly emptied: string[] = [];
  readonly deleted: string[] = [];
  hasAnnounced = false;

  constructor(client: Client, claims: Claims) {
    this.#client = client;
    this.#claims = claims;
  }

  async enqueue(deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    this.added.push(...deliveries);
    await query(this.#client, enqueueStatement, insertValues(deliveries));
  }

  async announce(
    { id, type, timestamp, service, data }: WebhookEvent,
    options: AnnounceOptions,
  ): Promise<void> {
    this.hasAnnounced = true;
    await query(this.#client, announceStatement, [id, type, timestamp, service, data, options]);
  }

  async markRedelivered(id: string, as: string): Promise<void> {
    const { rows } = await query<{ webhook_id: string }>(
      this.#client,
      `update finished t set redelivered_as = $4 where ${hasId} returning t.webhook_id`,
      [...idValues(id), as],
    );
    this.redelivered.push(...rows.map((row) => row.webhook_id));
  }

  discardPending(webhookId: string, at: number): Promise<void> {
    return this.#note(webhookId, at);
  }

  deleteAll(webhookId: string): Promise<void> {
    this.deleted.push(webhookId);
    return this.#note(webhookId, null);
  }

  complete(claimed: Delivery, delivery: Delivery): Promise<void> {
    this.completed.push({ claimed, delivery });
    return done;
  }

  /** Completes the deliveries. Throws if a claim is lost. */
  async finish(): Promise<void> {
    if (this.completed.length === 0) return;
    const held = this.completed.map(({ claimed, delivery }) => {
      const row = this.#claims.rowOf(claimed);
      if (row === undefined) throw new LostClaim(claimed.id);
      return { claimed, delivery, ...row };
    });
    const { rows } = await query<{ number: number }>(this.#client, completeStatement, completeValues(held));
    const numbers = new Set(rows.map(({ number }) => number));
    const lost = held.find(({ number }) => !numbers.has(number));
    if (lost) throw new LostClaim(lost.claimed.id);
  }

  async #note(webhookId: string, discardedAt: number | null): Promise<void> {
    this.emptied.push(webhookId);
    await query(this.#client, noteStatement, [webhookId, discardedAt]);
  }
}
