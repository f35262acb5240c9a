// The delivery queue in PostgreSQL (../delivery-queue.ts explains it).
import type { Delivery } from '../../webhooks/delivery.ts';
import type { FailureWindow } from '../../webhooks/failure-window.ts';
import { type RememberedEvent, rememberedForMs } from '../../webhooks/idempotency.ts';
import type {
  ClaimRequest,
  Claimed,
  Completed,
  Completion,
  DeliveryQueue,
  Remembered,
} from '../delivery-queue.ts';
import type { Reader } from '../state.ts';
import { Claims } from './claims.ts';
import { Completing, type CompletingOptions } from './completing.ts';
import type { Client } from './database.ts';
import { type Counts, type DeliveryRow, deliveryColumns, toDelivery } from './delivery-rows.ts';
import { TransactionDeliveries } from './delivery-writes.ts';
import { readFailureWindows } from './failure-windows.ts';
import { PendingCount } from './pending-count.ts';
import { deleteInPortions } from './portions.ts';
import { Publishing } from './publishing.ts';

export type DeliveriesOptions = Omit<CompletingOptions, 'pending' | 'claims'>;

export class PostgresDeliveries implements DeliveryQueue {
  readonly #options: DeliveriesOptions;
  readonly #claims: Claims;
  readonly #publishing: Publishing;
  readonly #completing: Completing;
  readonly #pending: PendingCount;
  readonly #listeners = new Set<() => void>();

  constructor(options: DeliveriesOptions) {
    this.#options = options;
    this.#pending = new PendingCount(options.self);
    this.#claims = new Claims(options);
    const shared = { ...options, pending: this.#pending, claims: this.#claims };
    this.#publishing = new Publishing(shared);
    this.#completing = new Completing(shared);
  }

  async publish(rule: (reader: Reader) => readonly Delivery[], remember?: Remembered): Promise<number> {
    const count = await this.#publishing.publish(rule, remember);
    this.notify();
    return count;
  }

  async findEvent(eventId: string, at: number): Promise<RememberedEvent | undefined> {
    const [row] = await this.#options.database.ask<{ deliveries: number; published_at: number }>(
      'select deliveries, published_at from event_ids where id = $1 and published_at > $2',
      [eventId, at - rememberedForMs],
    );
    return row && { eventId, deliveries: row.deliveries, publishedAt: row.published_at };
  }

  async forgetEvents(at: number, stopping?: AbortSignal): Promise<void> {
    await deleteInPortions(
      this.#options.database,
      `delete from event_ids where id = any(array(
         select id from event_ids where published_at <= $1 order by published_at limit $2 for update skip locked))`,
      [at - rememberedForMs],
      stopping,
    );
  }

  claim(request: ClaimRequest): Promise<Claimed> {
    return this.#claims.claim(request);
  }

  async complete(claimed: Delivery, rule: (reader: Reader) => Completion): Promise<Completed | undefined> {
    const completed = await this.#completing.complete(claimed, rule);
    const isRetried = completed && completed.delivery !== 'deleted' && completed.delivery.state === 'pending';
    if (isRetried) this.notify();
    return completed;
  }

  async release(claimed: readonly Delivery[]): Promise<void> {
    await this.#claims.release(claimed);
    this.notify();
  }

  async find(id: string): Promise<Delivery | undefined> {
    const [row] = await this.#options.database.ask<DeliveryRow>(
      `select ${deliveryColumns} from deliveries d where d.id = $1`,
      [id],
    );
    return row && toDelivery(row);
  }

  async page(
    webhookId: string,
    start: number,
    num: number,
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly total: number }> {
    const { database } = this.#options;
    const [rows, [counted]] = await Promise.all([
      database.ask<DeliveryRow>(
        `select ${deliveryColumns} from deliveries d where d.webhook_id = $1 order by d.placed desc offset $2 limit $3`,
        [webhookId, start, num],
      ),
      database.ask<{ count: number }>('select count(*) from deliveries where webhook_id = $1', [webhookId]),
    ]);
    return { deliveries: rows.map(toDelivery), total: counted?.count ?? 0 };
  }

  async oldestPendingAt(): Promise<number | undefined> {
    const [row] = await this.#options.database.ask<{ created_at: number }>(
      `select created_at from deliveries where state = 'pending' order by placed limit 1`,
    );
    return row?.created_at;
  }

  pending(): Counts {
    return this.#pending.value;
  }

  failureWindows(): Promise<ReadonlyMap<string, FailureWindow>> {
    return this.#options.database.use((client) => readFailureWindows(client));
  }

  async failureWindow(webhookId: string): Promise<FailureWindow | null> {
    const windows = await this.#options.database.use((client) => readFailureWindows(client, webhookId));
    return windows.get(webhookId) ?? null;
  }

  onFree(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  notify(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Reads how many deliveries are pending, and wakes the worker if there are any: another process may have added them. */
  async look(client: Client): Promise<void> {
    await this.#pending.look(client);
    if (this.#pending.value.count > 0) this.notify();
  }

  during<T>(transaction: () => Promise<T>): Promise<T> {
    return this.#pending.during(transaction);
  }

  writesOn(client: Client): TransactionDeliveries {
    const { self, keep } = this.#options;
    return new TransactionDeliveries(client, { claims: this.#claims, self, keep });
  }

  /** Called after the commit of a transaction with these writes. */
  noteCommit({ ended, pending }: TransactionDeliveries): void {
    for (const claimed of ended) this.#claims.forget(claimed);
    this.#pending.add(pending);
    if (pending.count > 0 || ended.length > 0) this.notify();
  }
}
