// The delivery queue in PostgreSQL (../delivery-queue.ts explains it).
import { withTimeout } from '../../../lib/async.ts';
import { type Client, deleteInBatches } from '../../../store/postgres/database.ts';
import type { Reader } from '../../../store/state.ts';
import { type DeliveryFilter, type DeliveryPage, maxCountedDeliveries } from '../delivery-filter.ts';
import {
  type ClaimRequest,
  type Claimed,
  type Completed,
  type Completion,
  type CountRequest,
  type DeliveryQueue,
  type DeliveryRetention,
  type DeliverySummary,
  type Distribution,
  type PendingCounts,
  type Redelivered,
  type RedeliveryBatch,
  type Remembered,
  type RememberedEvent,
  maxEventTypes,
  rememberedForMs,
} from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import type { History, HistoryRequest } from '../history.ts';
import type { Counted, Redelivery } from '../redelivery.ts';
import { Claims } from './claims.ts';
import { Completing, type CompletingOptions } from './completing.ts';
import { Distributor } from './distributing.ts';
import { Emptier } from './emptying.ts';
import { mergeHistory, readHistory } from './history.ts';
import { PendingCount } from './pending-count.ts';
import { Publishing, noteStored } from './publishing.ts';
import { redeliver } from './redelivering.ts';
import { Trimmer, kindColumn } from './retention.ts';
import { type DeliveryRow, hasId, idValues, selectDelivery, toDelivery } from './rows.ts';
import { DeliverySearch, ofManyShapes, searchRedelivery } from './search.ts';
import { UnusedEvents } from './unused-events.ts';
import { TransactionDeliveries } from './writes.ts';

type DeliveriesOptions = Omit<CompletingOptions, 'pending' | 'claims' | 'trimmer' | 'unused'> & {
  readonly retention: DeliveryRetention;
  /** Logs an error of work that nobody waits for. */
  readonly onError: (error: unknown) => void;
};

/** After this time, the rest is done in the background and the update returns. */
const distributeWaitMs = 1_000;

/** How many events `eventTypes` reads. */
const newestEvents = 10_000;

export class PostgresDeliveries implements DeliveryQueue {
  readonly #options: DeliveriesOptions & CompletingOptions;
  readonly claims: Claims;
  readonly #publishing: Publishing;
  readonly #completing: Completing;
  readonly #distributor: Distributor;
  readonly trimmer: Trimmer;
  readonly unused: UnusedEvents;
  readonly #emptier: Emptier;
  readonly pendingCount = new PendingCount();
  readonly #listeners = new Set<() => void>();

  constructor(options: DeliveriesOptions) {
    this.claims = new Claims(options);
    this.unused = new UnusedEvents(options.database);
    const { claims, unused } = this;
    this.trimmer = new Trimmer({ ...options, unused });
    this.#options = { ...options, pending: this.pendingCount, claims, trimmer: this.trimmer, unused };
    this.#emptier = new Emptier(this.#options);
    this.#publishing = new Publishing(this.#options);
    this.#distributor = new Distributor(options.database, this.#publishing);
    this.#completing = new Completing(this.#options);
  }

  distributeWith(rule: Distribution): void {
    this.#distributor.rule = rule;
  }

  async publish(rule: (reader: Reader) => readonly Delivery[], remember?: Remembered): Promise<number> {
    const count = await this.#publishing.publish({ rule, remember });
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
    await deleteInBatches(
      this.#options.database,
      `delete from event_ids where id = any(array(
         select id from event_ids where published_at <= $1 order by published_at limit $2 for update skip locked))`,
      [at - rememberedForMs],
      stopping,
    );
  }

  claim(request: ClaimRequest): Promise<Claimed> {
    return this.claims.claim(request);
  }

  async complete(claimed: Delivery, rule: (reader: Reader) => Completion): Promise<Completed | undefined> {
    const completed = await this.#completing.complete(claimed, rule);
    const isRetried = completed && completed.delivery !== 'deleted' && completed.delivery.state === 'pending';
    if (isRetried) this.notify();
    return completed;
  }

  async release(claimed: readonly Delivery[]): Promise<void> {
    await this.claims.release(claimed);
    this.notify();
  }

  async find(id: string): Promise<Delivery | undefined> {
    const [row] = await this.#options.database.ask<DeliveryRow>(selectDelivery(hasId), idValues(id));
    return row && toDelivery(row);
  }

  async page(filter: DeliveryFilter, start: number, num: number): Promise<DeliveryPage> {
    const { database } = this.#options;
    const search = new DeliverySearch(filter);
    const { length } = search.values;
    const range = { start: `$${length + 1}::bigint`, num: `$${length + 2}::bigint` };
    const [rows, [counted]] = await Promise.all([
      database.ask<DeliveryRow>(search.newest(range), [...search.values, start, num], ofManyShapes),
      database.ask<{ count: number }>(search.countSome, search.values, ofManyShapes),
    ]);
    const count = counted?.count ?? 0;
    return {
      deliveries: rows.map(toDelivery),
      total: Math.min(count, maxCountedDeliveries),
      isTotalExact: count <= maxCountedDeliveries,
    };
  }

  async countMatched(request: CountRequest): Promise<Counted> {
    const search = searchRedelivery(request);
    const statement = search.countByWebhook(request);
    const rows = await this.#options.database.ask<{ id: string; count: number; is_emptied: boolean }>(
      statement,
      search.values,
      ofManyShapes,
    );
    const counted = rows.filter(({ count }) => count > 0);
    return {
      counts: new Map(counted.map(({ id, count }) => [id, count])),
      isWhole: !rows.some((row) => row.is_emptied),
    };
  }

  async redeliver(redelivery: Redelivery, batch: RedeliveryBatch): Promise<Redelivered> {
    const redelivered = await redeliver(this.#options, redelivery, batch);
    if (redelivered.created > 0) this.notify();
    return redelivered;
  }

  /** Each part reads one row of an index, except that all claimed deliveries are read: they are few. */
  async newest(webhookIds: readonly string[]): Promise<ReadonlyMap<string, DeliverySummary>> {
    const pending = `q.webhook_id, 'pending' as state, q.priority = 0 as is_ping, q.since as at, q.number, q.attempts`;
    const rows = await this.#options.database.ask<DeliverySummary & { webhookId: string }>(
      `select distinct on (webhook_id) webhook_id as "webhookId", state, is_ping as "isPing", at,
         attempts -> -1 ->> 'error' as error
       from (
         select n.* from unnest($1::text[]) w(id) cross join generate_series(0, 2) p(priority) cross join lateral (
           select ${pending} from queue q where q.claimed_by is null and q.webhook_id = w.id and q.priority = p.priority
           order by q.since desc, q.number desc limit 1) n
         union all
         select ${pending} from processes p join queue q on q.claimed_by = p.id
         where q.claimed_by is not null and q.webhook_id = any($1)
         union all
         select n.* from unnest($1::text[]) w(id) cross join generate_series(0, 2) k(kind) cross join lateral (
           select f.webhook_id, f.state, f.is_ping, f.ended_at, f.number, f.attempts from finished f
           where f.webhook_id = w.id and ${kindColumn} = k.kind
           order by f.ended_at desc, f.number desc limit 1) n) d
       order by webhook_id, at desc, number desc`,
      [webhookIds],
    );
    return new Map(rows.map(({ webhookId, ...delivery }) => [webhookId, delivery]));
  }

  /** One probe of an index for each type of what was not delivered, and those of the newest events. */
  async eventTypes(): Promise<readonly string[]> {
    const next = (after: string) =>
      `(select event_type from finished where state <> 'delivered' ${after} order by event_type limit 1)`;
    const rows = await this.#options.database.ask<{ type: string }>(
      `with recursive found as (
         ${next('')} union all
         select ${next('and event_type > f.event_type')} from found f where f.event_type is not null),
       newest as (select type from events where announced is null order by number desc limit ${newestEvents})
       select event_type as type from found where event_type is not null union select type from newest
       order by type limit ${maxEventTypes}`,
    );
    return rows.map(({ type }) => type);
  }

  async lastOutcomes(webhookIds: readonly string[]): Promise<ReadonlyMap<string, 'delivered' | 'failed'>> {
    const newestOf = (state: string) => `(select f.state, f.created_at, f.number from finished f
      where f.webhook_id = w.id and f.state = '${state}' order by f.created_at desc, f.number desc limit 1)`;
    const rows = await this.#options.database.ask<{ id: string; state: 'delivered' | 'failed' }>(
      `select w.id, n.state from unnest($1::text[]) w(id) cross join lateral (
         select * from (${newestOf('delivered')} union all ${newestOf('failed')}) s
         order by s.created_at desc, s.number desc limit 1) n`,
      [webhookIds],
    );
    return new Map(rows.map(({ id, state }) => [id, state]));
  }

  async pendingOf(webhookIds: readonly string[]): Promise<number> {
    const [row] = await this.#options.database.ask<{ count: number }>(
      'select count(*) from queue where claimed_by is null and webhook_id = any($1::text[]) and priority <> 0',
      [webhookIds],
    );
    return row?.count ?? 0;
  }

  evicted(): number {
    return this.trimmer.evicted;
  }

  history(request: HistoryRequest): Promise<History> {
    return readHistory(this.#options.database, request);
  }

  mergeHistory(at: number, stopping: AbortSignal): Promise<void> {
    return mergeHistory(this.#options.database, at, stopping);
  }

  pending(): PendingCounts {
    return this.pendingCount.value;
  }

  onFree(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  notify(): void {
    for (const listener of this.#listeners) listener();
  }

  /** Other processes may have added or released deliveries. */
  noteChanges(): void {
    this.claims.noteChanges();
    this.notify();
  }

  writesOn(client: Client): TransactionDeliveries {
    return new TransactionDeliveries(client, this.claims);
  }

  /** Called after the commit of a transaction with these writes. Resolves when the rest is done, or after a second. */
  async noteCommit(writes: TransactionDeliveries): Promise<void> {
    const { added, completed, redelivered, emptied, deleted, hasAnnounced } = writes;
    noteStored(this.#options, added, completed);
    for (const webhookId of redelivered) this.trimmer.noteRedelivered(webhookId, 1);
    if (added.length > 0 || completed.length > 0) this.notify();
    for (const webhookId of deleted) this.claims.forgetWebhook(webhookId);
    if (hasAnnounced) await this.#distributeSoon();
    if (emptied.length > 0) await this.#emptier.empty();
    for (const webhookId of emptied) this.claims.noteEmptied(webhookId);
  }

  async #distributeSoon(): Promise<void> {
    const { runtime, onError } = this.#options;
    const distributed = this.#distribute().catch(onError);
    await withTimeout(runtime, () => distributed, { ms: distributeWaitMs, message: '' }).catch(
      () => undefined,
    );
  }

  async #distribute(): Promise<void> {
    await this.#distributor.distribute();
    this.notify();
  }

  /** Does what updates of other processes have left to do. */
  async finishRest(stopping: AbortSignal): Promise<void> {
    await this.#distribute();
    await this.#emptier.emptyRest(stopping);
    await this.unused.deleteNoted();
  }
}
