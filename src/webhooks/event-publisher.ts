// Stores events with their deliveries, and remembers given event ids, so that publishing an id again has no effect.
import { ServiceError, tooLarge } from '../errors.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Reader, Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import { addDeliveries, deliveries, subscribersOf } from './delivery.ts';
import { type EventDraft, bytesOfPayload, eventOf } from './event.ts';
import {
  type PublishResult,
  type RememberedEvent,
  isStillRemembered,
  rememberedEvents,
} from './idempotency.ts';

const sweepEveryMs = 600_000;

/** A change of the catalog is refused only at this multiple of `maxPending`. */
const reserve = 2;

export type EventPublisherOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  limits: PublishLimits;
};

export type PublishLimits = {
  /** Pending deliveries. */
  readonly pending: number;
  /** The payloads of pending deliveries. A payload counts once for each delivery. */
  readonly pendingBytes: number;
  readonly eventIds: number;
};

export class EventPublisher {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #limits: PublishLimits;

  constructor({ store, runtime, tasks, limits }: EventPublisherOptions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#limits = limits;
    tasks.every('sweep of remembered event ids', sweepEveryMs, () => this.#sweep());
  }

  /** For events of jobs and webhooks. It has no limit, because a refusal would undo what has happened already. */
  publishWithin(transaction: Transaction, draft: EventDraft, at: number): void {
    this.#add(transaction, draft, at);
  }

  /** For changes that a caller asks for. Without a limit, a caller could fill the memory with changes. */
  publishChange(transaction: Transaction, draft: EventDraft, at: number): void {
    const added = this.#add(transaction, draft, at);
    const most = reserve * this.#limits.pending;
    if (added > 0 && transaction.waiting(deliveries) >= most)
      throw tooManyPending(`the catalog cannot change while ${most} are pending`);
  }

  #add(transaction: Transaction, draft: EventDraft, at: number): number {
    const { newId } = this.#runtime;
    const event = eventOf(draft, newId(), at);
    const subscribers = subscribersOf(transaction, event);
    addDeliveries(transaction, event, subscribers, newId);
    return subscribers.length;
  }

  publish(draft: EventDraft, givenId: string | undefined): Promise<PublishResult> {
    const { now, newId } = this.#runtime;
    const at = now();
    const eventId = givenId ?? newId();
    return this.#store.update((transaction) => {
      const earlier = transaction.get(rememberedEvents, eventId);
      if (earlier && isStillRemembered(earlier, at)) return { eventId, deliveries: earlier.deliveries };
      const event = eventOf(draft, eventId, at);
      const subscribers = subscribersOf(transaction, event);
      const count = subscribers.length;
      this.#requireRoom(transaction, count * bytesOfPayload(event));
      addDeliveries(transaction, event, subscribers, newId);
      if (givenId !== undefined) {
        transaction.put(rememberedEvents, { eventId, publishedAt: at, deliveries: count });
        this.#requireRoomForId(transaction);
      }
      return { eventId, deliveries: count };
    });
  }

  #requireRoom(reader: Reader, addedBytes: number): void {
    const { pending, pendingBytes } = this.#limits;
    if (reader.waiting(deliveries) >= pending) throw tooManyPending(`WEBHOOK_MAX_PENDING allows ${pending}`);
    if (addedBytes > pendingBytes) {
      const message = `is too large for all subscribed webhooks together: WEBHOOK_MAX_PENDING_BYTES allows ${pendingBytes} bytes.`;
      throw tooLarge({ field: 'payload', message });
    }
    if (reader.waitingBytes(deliveries) + addedBytes > pendingBytes) {
      const message = `The payloads of pending deliveries are too large: WEBHOOK_MAX_PENDING_BYTES allows ${pendingBytes} bytes.`;
      throw new ServiceError('unavailable', message, { retryAfterSeconds });
    }
  }

  /** An id that expires is forgotten at the next sweep. */
  #requireRoomForId(reader: Reader): void {
    const { eventIds } = this.#limits;
    if (reader.count(rememberedEvents) <= eventIds) return;
    const message = `Too many event ids are remembered: MAX_EVENT_IDS allows ${eventIds}.`;
    throw new ServiceError('unavailable', message, { retryAfterSeconds: sweepEveryMs / 1000 });
  }

  remembers(eventId: string): boolean {
    const earlier = this.#store.get(rememberedEvents, eventId);
    return earlier !== undefined && isStillRemembered(earlier, this.#runtime.now());
  }

  async #sweep(): Promise<void> {
    const at = this.#runtime.now();
    if (expiredIn(this.#store, at).length === 0) return;
    await this.#store.update((transaction) => {
      for (const { eventId } of expiredIn(transaction, at)) transaction.remove(rememberedEvents, eventId);
    });
  }
}

const retryAfterSeconds = 5;

function tooManyPending(limit: string): ServiceError {
  return new ServiceError('unavailable', `Too many deliveries are pending: ${limit}.`, { retryAfterSeconds });
}

function expiredIn(reader: Reader, at: number): RememberedEvent[] {
  return [...reader.all(rememberedEvents)].filter((event) => !isStillRemembered(event, at));
}
