// The writes of an update to the delivery queue, on the connection of its transaction.
//
// An update holds the lock that all updates wait for, so it must not change many rows. It only notes that the
// deliveries of a webhook are discarded or deleted. After the commit, when the webhook is inactive or gone, emptying.ts
// does so in batches.
import { type Client, query } from '../../../store/postgres/database.ts';
import { type DeliveryWrites, LostClaim } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import type { Claims } from './claims.ts';
import type { Emptying } from './emptying.ts';
import { completeDeliveries, completeValues, insertDeliveries, insertValues } from './rows.ts';

const enqueueStatement = `with ${insertDeliveries()} select from chosen`;
const completeStatement = `with ${completeDeliveries()} select number from done`;
const done = Promise.resolve();

export class TransactionDeliveries implements DeliveryWrites {
  readonly #client: Client;
  readonly #claims: Claims;
  /** The deliveries that the commit adds. */
  readonly added: Delivery[] = [];
  /** The claimed deliveries that the commit completes, and what becomes of them. */
  readonly completed: { readonly claimed: Delivery; readonly delivery: Delivery }[] = [];
  readonly redelivered: string[] = [];
  /** What remains to be done after the commit. */
  readonly emptied: Emptying[] = [];

  constructor(client: Client, claims: Claims) {
    this.#client = client;
    this.#claims = claims;
  }

  async enqueue(deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    this.added.push(...deliveries);
    await query(this.#client, enqueueStatement, insertValues(deliveries));
  }

  async markRedelivered(id: string, as: string): Promise<void> {
    const { rows } = await query<{ webhook_id: string }>(
      this.#client,
      `update finished f set redelivered_as = $2 from deliveries d where d.id = $1 and f.number = d.number returning f.webhook_id`,
      [id, as],
    );
    this.redelivered.push(...rows.map((row) => row.webhook_id));
  }

  async discardPending(webhookId: string, at: number): Promise<void> {
    this.emptied.push({ webhookId, upTo: await this.#lastNumber(), discardedAt: at });
  }

  async deleteAll(webhookId: string): Promise<void> {
    this.emptied.push({ webhookId, upTo: await this.#lastNumber(), discardedAt: undefined });
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

  /** Deliveries that are added later belong to the time after the update. */
  async #lastNumber(): Promise<number> {
    // The last value of a new sequence is the first that it will return.
    const { rows } = await query<{ last: number }>(
      this.#client,
      'select case when is_called then last_value else 0 end as last from delivery_numbers',
    );
    return rows[0]?.last ?? 0;
  }
}
