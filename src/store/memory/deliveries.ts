// The delivery queue in memory.
import type { Delivery } from '../../webhooks/delivery.ts';
import type { FailureWindow } from '../../webhooks/failure-window.ts';
import { type RememberedEvent, isStillRemembered, tooManyEventIds } from '../../webhooks/idempotency.ts';
import { freeze } from '../changes.ts';
import type { Completed, Completion, DeliveryQueue, Remembered } from '../delivery-queue.ts';
import type { Reader } from '../state.ts';
import { type DeliveryWrites, LostClaim } from '../transaction.ts';
import { DeliveryLists } from './delivery-lists.ts';
import { done, run } from './run.ts';

export type MemoryDeliveriesOptions = {
  readonly reader: Reader;
  /** Finished deliveries of each webhook. */
  readonly keep: number;
  readonly maxEventIds: number;
};

export class MemoryDeliveries {
  readonly #reader: Reader;
  readonly #maxEventIds: number;
  readonly #lists: DeliveryLists;
  readonly #events = new Map<string, RememberedEvent>();
  readonly #windows = new Map<string, FailureWindow>();
  readonly #listeners = new Set<() => void>();
  #hasFreed = false;

  constructor({ reader, keep, maxEventIds }: MemoryDeliveriesOptions) {
    this.#reader = reader;
    this.#maxEventIds = maxEventIds;
    this.#lists = new DeliveryLists(keep);
  }

  readonly queue: DeliveryQueue = {
    publish: (rule, remember) => run(() => this.#publish(rule, remember)),
    findEvent: (eventId, at) => run(() => this.#findEvent(eventId, at)),
    forgetEvents: (at) => run(() => this.#forgetEvents(at)),
    claim: (request) => run(() => this.#lists.claim(request)),
    complete: (claimed, rule) => run(() => this.#complete(claimed, rule)),
    release: (claimed) => run(() => this.#release(claimed)),
    find: (id) => run(() => this.#lists.find(id)),
    page: (webhookId, start, num) => run(() => this.#lists.page(webhookId, start, num)),
    oldestPendingAt: () => run(() => this.#lists.oldestPendingAt()),
    pending: () => this.#lists.pending(),
    failureWindows: () => run(() => new Map(this.#windows)),
    failureWindow: (webhookId) => run(() => this.failures(webhookId)),
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
    discardPending: (webhookId, at) => {
      this.#lists.discardPending(webhookId, at);
      return done;
    },
    deleteAll: (webhookId) => {
      this.#lists.delete(webhookId);
      this.#windows.delete(webhookId);
      return done;
    },
    setFailures: (webhookId, window) => {
      this.#setFailures(webhookId, window);
      return done;
    },
    complete: (claimed, delivery) => {
      this.#settle(claimed, delivery);
      return done;
    },
  };

  /** Writes that change nothing and throw `LostClaim` where a claim would be lost after the writes before. */
  createChecks(): DeliveryWrites & { begin: () => void } {
    const ended = new Set<string>();
    return {
      begin: () => ended.clear(),
      enqueue: () => done,
      discardPending: () => done,
      deleteAll: (webhookId) => {
        ended.add(webhookId);
        return done;
      },
      setFailures: () => done,
      complete: (claimed) => {
        const { id, webhookId } = claimed;
        if (!this.#lists.holds(claimed) || ended.has(id) || ended.has(webhookId)) throw new LostClaim(id);
        ended.add(id);
        return done;
      },
    };
  }

  failures(webhookId: string): FailureWindow | null {
    return this.#windows.get(webhookId) ?? null;
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

  #setFailures(webhookId: string, window: FailureWindow | null): void {
    if (window === null) this.#windows.delete(webhookId);
    else this.#windows.set(webhookId, window);
  }

  #publish(rule: (reader: Reader) => readonly Delivery[], remember: Remembered | undefined): number {
    const earlier = remember && this.#findEvent(remember.eventId, remember.at);
    if (earlier) return earlier.deliveries;
    const deliveries = rule(this.#reader);
    if (remember) this.#remember(remember, deliveries.length);
    for (const delivery of deliveries) this.#put(freeze(delivery));
    this.notify();
    return deliveries.length;
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
    const counted = completion.count?.(this.failures(delivery.webhookId));
    if (completion.needsUpdate || counted?.needsUpdate) return { delivery, needsUpdate: true };
    if (counted) this.#setFailures(delivery.webhookId, freeze(counted.window));
    this.#settle(claimed, delivery);
    this.notify();
    return { delivery, needsUpdate: false };
  }

  #release(claimed: readonly Delivery[]): void {
    for (const delivery of claimed) if (this.#lists.holds(delivery)) this.#settle(delivery, delivery);
    this.notify();
  }
}
