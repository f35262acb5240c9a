// The delivery queue in memory: by webhook, pending deliveries in the order in which they are claimed, and finished ones
// until they are removed (`finished.ts`).
//
// Every webhook has one list of pending deliveries that are not claimed for each priority. `claim` goes round the
// webhooks: a webhook whose delivery was claimed moves to the end of the turns.
import { freeze } from '../../../store/changes.ts';
import type { Reader } from '../../../store/state.ts';
import { bytesOfPayload } from '../../event.ts';
import { webhooks } from '../../webhook.ts';
import { matchesDeliveryFilter, maxCountedDeliveries } from '../delivery-filter.ts';
import {
  type DeliveryQueue,
  type DeliveryRetention,
  type DeliverySummary,
  type DeliveryWrites,
  type Distribution,
  type Remembered,
  type RememberedEvent,
  LostClaim,
  isStillRemembered,
  maxEventTypes,
  tooManyEventIds,
} from '../delivery-queue.ts';
import {
  type Delivery,
  countPending,
  discard,
  priorityOf,
  redeliveryOf,
  waitingSince,
  withRedelivery,
} from '../delivery.ts';
import { matchesRedelivery, redeliveries } from '../redelivery.ts';
import { FinishedDeliveries } from './finished.ts';
import { DeliveryHistory, type HistoryDump } from './history.ts';
import { WaitingList } from './waiting-list.ts';

type MemoryDeliveriesOptions = {
  readonly reader: Reader;
  readonly retention: DeliveryRetention;
  readonly maxEventIds: number;
  /** Since when deliveries are counted. */
  readonly since: number;
};

type Next = { readonly at: number; readonly delivery: Delivery };

/** The deliveries of one webhook. */
type WebhookLists = {
  /** Oldest first. */
  readonly deliveries: Map<string, Delivery>;
  /** Pending deliveries that are not claimed, by priority. */
  readonly waiting: Readonly<Record<0 | 1 | 2, WaitingList>>;
  /** Pending redeliveries, claimed ones included, by id. */
  readonly repeats: Map<string, Delivery>;
};

export type DeliveryDump = {
  /** Oldest first. */
  readonly list: readonly Delivery[];
  /** Ids in the order in which the deliveries of each kind finished. */
  readonly finished: readonly string[];
  /** Webhooks in the order of their turns. */
  readonly turns: readonly string[];
  readonly events: readonly RememberedEvent[];
  readonly history: HistoryDump;
};

export class MemoryDeliveries {
  readonly #reader: Reader;
  readonly #maxEventIds: number;
  readonly #byWebhook = new Map<string, WebhookLists>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #claimed = new Set<string>();
  /** Webhooks that may have pending deliveries, in the order of their turns. */
  readonly #turns = new Set<string>();
  readonly #finished: FinishedDeliveries;
  readonly #history: DeliveryHistory;
  #pending = 0;
  #pendingBytes = 0;
  readonly #events = new Map<string, RememberedEvent>();
  readonly #listeners = new Set<() => void>();
  #hasFreed = false;
  #distribute: Distribution = () => [];

  constructor({ reader, retention, maxEventIds, since }: MemoryDeliveriesOptions) {
    this.#history = new DeliveryHistory(since);
    this.#reader = reader;
    this.#maxEventIds = maxEventIds;
    this.#finished = new FinishedDeliveries(retention);
  }

  readonly queue: DeliveryQueue = {
    publish: async (rule, remember) => {
      const earlier = remember && this.#findEvent(remember.eventId, remember.at);
      if (earlier) return earlier.deliveries;
      const deliveries = rule(this.#reader);
      const count = countPending(deliveries);
      if (remember) this.#remember(remember, count);
      for (const delivery of deliveries) this.#put(freeze(delivery));
      this.notify();
      return count;
    },
    distributeWith: (rule) => {
      this.#distribute = rule;
    },
    findEvent: async (eventId, at) => this.#findEvent(eventId, at),
    forgetEvents: async (at) => {
      for (const event of this.#events.values()) {
        if (!isStillRemembered(event, at)) this.#events.delete(event.eventId);
      }
      this.#history.forget(at);
    },
    claim: async ({ at, most, retryWaitMs, receiverOf, roomFor }) => {
      const taken: Delivery[] = [];
      const rooms = new Map<string, number>();
      let nextAt: number | undefined;
      const roomOf = (webhookId: string) => {
        const receiver = receiverOf(webhookId);
        return rooms.get(receiver) ?? roomFor(receiver);
      };
      // The loop adds a webhook to the end of the set it iterates over, so it visits the webhook again.
      for (const webhookId of this.#turns) {
        const next = this.#nextOf(this.#listsOf(webhookId), at, retryWaitMs);
        if (next === undefined) {
          this.#turns.delete(webhookId);
          continue;
        }
        const isDue = next.at <= at;
        const room = isDue ? roomOf(webhookId) : Infinity;
        if (room <= 0) continue;
        if (!isDue || taken.length >= most) {
          nextAt = Math.min(nextAt ?? Infinity, next.at);
          if (isDue) break;
          continue;
        }
        this.#stopWaiting(next.delivery);
        this.#claimed.add(next.delivery.id);
        taken.push(next.delivery);
        rooms.set(receiverOf(webhookId), room - 1);
        this.#turns.delete(webhookId);
        this.#turns.add(webhookId);
      }
      return { deliveries: taken, nextAt };
    },
    complete: async (claimed, rule) => {
      if (!this.#holds(claimed)) return undefined;
      const completion = rule(this.#reader);
      if (completion.delivery === 'deleted') {
        this.#remove(claimed.id, this.#listsOf(claimed.webhookId));
        return { delivery: 'deleted', needsUpdate: false };
      }
      const delivery = freeze(completion.delivery);
      if (completion.needsUpdate) return { delivery, needsUpdate: true };
      this.#settle(claimed, delivery);
      this.notify();
      return { delivery, needsUpdate: false };
    },
    release: async (claimed) => {
      for (const delivery of claimed) if (this.#holds(delivery)) this.#settle(delivery, delivery);
      this.notify();
    },
    find: async (id) => this.#deliveries.get(id),
    page: async (filter, start, num) => {
      const deliveries: Delivery[] = [];
      let count = 0;
      for (const delivery of this.#newestFirst(filter.webhookId)) {
        if (!matchesDeliveryFilter(delivery, filter)) continue;
        if (count >= start && deliveries.length < num) deliveries.push(delivery);
        count += 1;
        if (count > maxCountedDeliveries && count >= start + num) break;
      }
      return {
        deliveries,
        total: Math.min(count, maxCountedDeliveries),
        isTotalExact: count <= maxCountedDeliveries,
      };
    },
    countMatched: async ({ webhooks: chosen, filter, requestedAt, most, withPending = false }) => {
      const counts = new Map<string, number>();
      for (const { id, endedAfter } of chosen) {
        let count = 0;
        for (const { createdAt } of (withPending && this.#byWebhook.get(id)?.repeats.values()) || []) {
          if (count >= most) break;
          if (createdAt > (endedAfter ?? -1)) count += 1;
        }
        for (const delivery of this.#finished.of(id)) {
          if (count >= most) break;
          if (matchesRedelivery(delivery, { filter, requestedAt, endedAfter })) count += 1;
        }
        if (count > 0) counts.set(id, count);
      }
      return { counts, isWhole: true };
    },
    redeliver: async ({ id, webhookId }, { most, at, newId }) => {
      const redelivery = this.#reader.get(redeliveries, id);
      const isActive = this.#reader.get(webhooks, webhookId)?.active === true;
      if (!redelivery || !isActive) return { created: 0, isDone: true };
      const matched = this.#of(webhookId).filter((one) => matchesRedelivery(one, redelivery));
      const marks = matched.slice(0, most).map((delivery) => {
        const repeated = freeze(redeliveryOf(delivery, newId(at), at));
        this.#put(repeated);
        return [delivery.id, repeated.id] as const;
      });
      this.#markRedelivered(marks);
      this.notify();
      return { created: marks.length, isDone: matched.length <= most };
    },
    newest: async (webhookIds) => {
      const found = webhookIds.map((id) => {
        const summaries = this.#of(id).map(summarise);
        return [id, summaries.sort((a, b) => a.at - b.at).at(-1)] as const;
      });
      return new Map(found.flatMap(([id, newest]) => (newest ? [[id, newest]] : [])));
    },
    eventTypes: async () => {
      const types = new Set([...this.#deliveries.values()].map(({ event }) => event.type));
      return [...types].sort().slice(0, maxEventTypes);
    },
    lastOutcomes: async (webhookIds) => {
      const outcomes = new Map<string, 'delivered' | 'failed'>();
      for (const webhookId of webhookIds) {
        const ended = this.#newestFirst(webhookId).find(
          ({ state }) => state === 'delivered' || state === 'failed',
        );
        if (ended) outcomes.set(webhookId, ended.state as 'delivered' | 'failed');
      }
      return outcomes;
    },
    history: async (request) => this.#history.read(request),
    pendingOf: async (webhookIds) => webhookIds.flatMap((id) => this.#discardable(id)).length,
    evicted: () => this.#finished.evicted,
    pending: () => {
      const deliveries = this.#deliveries;
      return {
        count: this.#pending,
        bytes: this.#pendingBytes,
        // Only the metrics need it, and it costs as much as there are deliveries.
        get oldestAt() {
          let oldest: number | undefined;
          for (const { state, createdAt } of deliveries.values())
            if (state === 'pending' && createdAt < (oldest ?? Infinity)) oldest = createdAt;
          return oldest;
        },
      };
    },
    onFree: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  readonly writes: DeliveryWrites = {
    enqueue: async (deliveries) => {
      for (const delivery of deliveries) this.#put(delivery);
    },
    announce: async (event, options) => {
      for (const delivery of this.#distribute(this.#reader, event, options)) this.#put(freeze(delivery));
    },
    markRedelivered: async (id, as) => this.#markRedelivered([[id, as]]),
    discardPending: async (webhookId, at) => {
      for (const delivery of this.#discardable(webhookId)) this.#put(freeze(discard(delivery, at)));
    },
    deleteAll: async (webhookId) => {
      const lists = this.#byWebhook.get(webhookId);
      if (lists) for (const id of lists.deliveries.keys()) this.#remove(id, lists);
      this.#byWebhook.delete(webhookId);
      this.#finished.forget(webhookId);
      this.#turns.delete(webhookId);
    },
    complete: async (claimed, delivery) => this.#settle(claimed, delivery),
  };

  requireClaim(claimed: Delivery): void {
    if (!this.#holds(claimed)) throw new LostClaim(claimed.id);
  }

  /** Calls the listeners of `onFree` if deliveries have become free. */
  notify(): void {
    if (!this.#hasFreed) return;
    this.#hasFreed = false;
    for (const listener of this.#listeners) listener();
  }

  dump(): DeliveryDump {
    const list = [...this.#deliveries.values()];
    // A webhook has no turn while all its pending deliveries are claimed. `load` frees them.
    const waiting = list.filter(({ state }) => state === 'pending').map(({ webhookId }) => webhookId);
    return {
      list,
      finished: this.#finished.ids(),
      turns: [...new Set([...this.#turns, ...waiting])],
      events: [...this.#events.values()],
      history: this.#history.dump(),
    };
  }

  /** A delivery that was claimed is free again. */
  load({ list, finished, turns, events, history }: DeliveryDump): void {
    this.#history.load(history);
    for (const delivery of list.map(freeze)) {
      const lists = this.#listsOf(delivery.webhookId);
      // A finished delivery is added below, in the order of ends. This reserves its place in the order of all
      // deliveries.
      this.#deliveries.set(delivery.id, delivery);
      lists.deliveries.set(delivery.id, delivery);
      if (delivery.state !== 'pending') continue;
      this.#add(delivery, lists);
      lists.waiting[priorityOf(delivery)].add(delivery);
    }
    for (const id of finished) {
      const delivery = this.#deliveries.get(id);
      if (delivery) this.#add(delivery, this.#listsOf(delivery.webhookId));
    }
    for (const webhookId of turns) this.#turns.add(webhookId);
    for (const event of events) this.#events.set(event.eventId, freeze(event));
  }

  #findEvent(eventId: string, at: number): RememberedEvent | undefined {
    const event = this.#events.get(eventId);
    return event && isStillRemembered(event, at) ? event : undefined;
  }

  #remember({ eventId, at }: Remembered, deliveries: number): void {
    // No id is forgotten early: a client relies on the 24 hours when it repeats a call.
    if (!this.#events.has(eventId) && this.#events.size >= this.#maxEventIds)
      throw tooManyEventIds(this.#maxEventIds);
    this.#events.set(eventId, Object.freeze({ eventId, deliveries, publishedAt: at }));
  }

  /** Whether the delivery is claimed and still the one that `claim` returned. */
  #holds(claimed: Delivery): boolean {
    return this.#claimed.has(claimed.id) && this.#deliveries.get(claimed.id) === claimed;
  }

  /** Ends the claim. */
  #settle(claimed: Delivery, delivery: Delivery): void {
    this.#claimed.delete(claimed.id);
    this.#put(delivery);
  }

  /** Links finished deliveries to those that repeat them. */
  #markRedelivered(marks: readonly (readonly [id: string, as: string])[]): void {
    const changed = new Set<string>();
    for (const [id, redeliveredAs] of marks) {
      const delivery = this.#deliveries.get(id);
      if (!delivery || delivery.state === 'pending') continue;
      const lists = this.#listsOf(delivery.webhookId);
      this.#remove(id, lists, 'keeps its place');
      this.#add(freeze(withRedelivery(delivery, redeliveredAs)), lists);
      changed.add(delivery.webhookId);
    }
    this.#finished.sortRedelivered(changed);
    for (const webhookId of changed) this.#evict(webhookId);
  }

  /** Adds the delivery, or replaces the one with the same id. */
  #put(delivery: Delivery): void {
    const lists = this.#listsOf(delivery.webhookId);
    this.#history.count(this.#deliveries.get(delivery.id), delivery);
    this.#remove(delivery.id, lists, 'keeps its place');
    this.#add(delivery, lists);
    if (delivery.state === 'pending') {
      if (!this.#claimed.has(delivery.id)) lists.waiting[priorityOf(delivery)].add(delivery);
      this.#turns.add(delivery.webhookId);
      this.#hasFreed = true;
      return;
    }
    this.#evict(delivery.webhookId);
  }

  #discardable(webhookId: string): Delivery[] {
    return this.#of(webhookId).filter(
      ({ id, state, isPing }) => state === 'pending' && !isPing && !this.#claimed.has(id),
    );
  }

  #listsOf(webhookId: string): WebhookLists {
    const lists = this.#byWebhook.get(webhookId) ?? createLists();
    this.#byWebhook.set(webhookId, lists);
    return lists;
  }

  /** The deliveries of a webhook, or all, in the order in which they were added. */
  #of(webhookId: string | undefined): Delivery[] {
    const found = webhookId === undefined ? this.#deliveries : this.#byWebhook.get(webhookId)?.deliveries;
    return [...(found?.values() ?? [])];
  }

  #newestFirst(webhookId: string | undefined): Delivery[] {
    return this.#of(webhookId)
      .reverse()
      .sort((a, b) => b.createdAt - a.createdAt);
  }

  #add(delivery: Delivery, lists: WebhookLists): void {
    const { id } = delivery;
    this.#deliveries.set(id, delivery);
    lists.deliveries.set(id, delivery);
    if (delivery.state === 'pending') {
      this.#pending += 1;
      this.#pendingBytes += bytesOfPayload(delivery.event);
      if (delivery.redeliveryOf !== null) lists.repeats.set(id, delivery);
      return;
    }
    this.#finished.add(delivery);
  }

  /** A delivery that is replaced keeps its place in the order of all deliveries. */
  #remove(id: string, lists: WebhookLists, place?: 'keeps its place'): void {
    const delivery = this.#deliveries.get(id);
    if (!delivery) return;
    if (delivery.state === 'pending') {
      this.#stopWaiting(delivery);
      lists.repeats.delete(id);
      this.#pending -= 1;
      this.#pendingBytes -= bytesOfPayload(delivery.event);
    } else this.#finished.delete(delivery);
    if (place !== undefined) return;
    this.#deliveries.delete(id);
    this.#claimed.delete(id);
    lists.deliveries.delete(id);
  }

  /** Removes finished deliveries beyond the limits of the webhook and of all webhooks. */
  #evict(webhookId: string): void {
    for (const delivery of this.#finished.takeSurplus(webhookId)) {
      this.#remove(delivery.id, this.#listsOf(delivery.webhookId));
    }
  }

  #stopWaiting(delivery: Delivery): void {
    this.#listsOf(delivery.webhookId).waiting[priorityOf(delivery)].delete(delivery.id);
  }

  /** The next delivery of the webhook: the first in the order of priorities that is due, or else the first retry. */
  #nextOf({ waiting }: WebhookLists, at: number, retryWaitMs: number): Next | undefined {
    const retry = waiting[1].first();
    const retryAt = retry ? waitingSince(retry) + retryWaitMs : Infinity;
    const due = waiting[0].first() ?? (retryAt <= at ? retry : undefined) ?? waiting[2].first();
    if (due) return { at, delivery: due };
    return retry && { at: retryAt, delivery: retry };
  }
}

function createLists(): WebhookLists {
  return {
    deliveries: new Map(),
    waiting: { 0: new WaitingList(), 1: new WaitingList(), 2: new WaitingList() },
    repeats: new Map(),
  };
}

function summarise(delivery: Delivery): DeliverySummary {
  const { state, isPing, endedAt, attempts } = delivery;
  return { state, isPing, at: endedAt ?? waitingSince(delivery), error: attempts.at(-1)?.error ?? null };
}
