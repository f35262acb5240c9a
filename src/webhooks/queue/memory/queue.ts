// The delivery queue in memory.
import { freeze } from '../../../store/changes.ts';
import { done, runNow } from '../../../store/memory/run.ts';
import type { Reader } from '../../../store/state.ts';
import { webhooks } from '../../webhook.ts';
import {
  type Completed,
  type Completion,
  type DeliveryQueue,
  type DeliveryRetention,
  type DeliveryWrites,
  type Redelivered,
  type RedeliveryBatch,
  type Remembered,
  LostClaim,
} from '../delivery-queue.ts';
import { type Delivery, countPending } from '../delivery.ts';
import { type RememberedEvent, isStillRemembered, tooManyEventIds } from '../idempotency.ts';
import { type Redelivery, redeliveries } from '../redelivery.ts';
import { type DeliveryListDump, DeliveryLists } from './lists.ts';

type MemoryDeliveriesOptions = {
  readonly reader: Reader;
  readonly retention: DeliveryRetention;
  readonly maxEventIds: number;
};

export type DeliveryDump = DeliveryListDump & { readonly events: readonly RememberedEvent[] };

export class MemoryDeliveries {
  readonly #reader: Reader;
  readonly #maxEventIds: number;
  readonly #lists: DeliveryLists;
  readonly #events = new Map<string, RememberedEvent>();
  readonly #listeners = new Set<() => void>();
  #hasFreed = false;

  constructor({ reader, retention, maxEventIds }: MemoryDeliveriesOptions) {
    this.#reader = reader;
    this.#maxEventIds = maxEventIds;
    this.#lists = new DeliveryLists(retention);
  }

  readonly queue: DeliveryQueue = {
    publish: (rule, remember) => runNow(() => this.#publish(rule, remember)),
    findEvent: (eventId, at) => runNow(() => this.#findEvent(eventId, at)),
    forgetEvents: (at) => runNow(() => this.#forgetEvents(at)),
    claim: (request) => runNow(() => this.#lists.claim(request)),
    complete: (claimed, rule) => runNow(() => this.#complete(claimed, rule)),
    release: (claimed) => runNow(() => this.#release(claimed)),
    find: (id) => runNow(() => this.#lists.find(id)),
    page: (filter, start, num) => runNow(() => this.#lists.page(filter, start, num)),
    countMatched: (filter, at) => runNow(() => this.#lists.countMatched(filter, at)),
    redeliver: (redelivery, batch) => runNow(() => this.#redeliver(redelivery, batch)),
    newest: (webhookIds, num) => runNow(() => this.#lists.newest(webhookIds, num)),
    lastOutcomes: (webhookIds) => runNow(() => this.#lists.lastOutcomes(webhookIds)),
    pendingOf: (webhookId) => runNow(() => this.#lists.pendingOf(webhookId)),
    evicted: () => this.#lists.evicted,
    oldestPendingAt: () => runNow(() => this.#lists.oldestPendingAt()),
    pending: () => this.#lists.pending(),
    onFree: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  readonly writes: DeliveryWrites = {
    enqueue: (deliveries) => {
      for (const delivery of deliveries) this.#put(delivery);
      return done;
    },
    markRedelivered: (id, as) => {
      this.#lists.markRedelivered([[id, as]]);
      return done;
    },
    discardPending: (webhookId, at) => {
      this.#lists.discardPending(webhookId, at);
      return done;
    },
    deleteAll: (webhookId) => {
      this.#lists.delete(webhookId);
      return done;
    },
    complete: (claimed, delivery) => {
      this.#settle(claimed, delivery);
      return done;
    },
  };

  requireClaim(claimed: Delivery): void {
    if (!this.#lists.holds(claimed)) throw new LostClaim(claimed.id);
  }

  dump(): DeliveryDump {
    return { ...this.#lists.dump(), events: [...this.#events.values()] };
  }

  load(dump: DeliveryDump): void {
    this.#lists.load(dump);
    for (const event of dump.events) this.#events.set(event.eventId, freeze(event));
  }

  /** Calls the listeners of `onFree` if deliveries have become free. */
  notify(): void {
    if (!this.#hasFreed) return;
    this.#hasFreed = false;
    for (const listener of this.#listeners) listener();
  }

  #put(delivery: Delivery): void {
    this.#lists.put(delivery);
    if (delivery.state === 'pending') this.#hasFreed = true;
  }

  #settle(claimed: Delivery, delivery: Delivery): void {
    this.#lists.complete(claimed, delivery);
    if (delivery.state === 'pending') this.#hasFreed = true;
  }

  #publish(rule: (reader: Reader) => readonly Delivery[], remember: Remembered | undefined): number {
    const earlier = remember && this.#findEvent(remember.eventId, remember.at);
    if (earlier) return earlier.deliveries;
    const deliveries = rule(this.#reader);
    const count = countPending(deliveries);
    if (remember) this.#remember(remember, count);
    for (const delivery of deliveries) this.#put(freeze(delivery));
    this.notify();
    return count;
  }

  #remember({ eventId, at }: Remembered, deliveries: number): void {
    if (!this.#events.has(eventId) && this.#events.size >= this.#maxEventIds)
      throw tooManyEventIds(this.#maxEventIds);
    this.#events.set(eventId, Object.freeze({ eventId, deliveries, publishedAt: at }));
  }

  #findEvent(eventId: string, at: number): RememberedEvent | undefined {
    const event = this.#events.get(eventId);
    return event && isStillRemembered(event, at) ? event : undefined;
  }

  #forgetEvents(at: number): void {
    for (const event of this.#events.values()) {
      if (!isStillRemembered(event, at)) this.#events.delete(event.eventId);
    }
  }

  #complete(claimed: Delivery, rule: (reader: Reader) => Completion): Completed | undefined {
    if (!this.#lists.holds(claimed)) return undefined;
    const completion = rule(this.#reader);
    if (completion.delivery === 'deleted') {
      this.#lists.complete(claimed, undefined);
      return { delivery: 'deleted', needsUpdate: false };
    }
    const delivery = freeze(completion.delivery);
    if (completion.needsUpdate) return { delivery, needsUpdate: true };
    this.#settle(claimed, delivery);
    this.notify();
    return { delivery, needsUpdate: false };
  }

  #redeliver({ id, webhookId }: Redelivery, batch: RedeliveryBatch): Redelivered {
    const redelivery = this.#reader.get(redeliveries, id);
    const isActive = this.#reader.get(webhooks, webhookId)?.active === true;
    if (!redelivery || !isActive) return { created: 0, isDone: true };
    const redelivered = this.#lists.redeliver(redelivery, batch);
    if (redelivered.created > 0) this.#hasFreed = true;
    this.notify();
    return redelivered;
  }

  #release(claimed: readonly Delivery[]): void {
    for (const delivery of claimed) if (this.#lists.holds(delivery)) this.#settle(delivery, delivery);
    this.notify();
  }
}
