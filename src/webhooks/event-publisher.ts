// Stores events with their deliveries, and remembers given event ids, so that publishing an id again has no effect.
import { ServiceError } from '../errors.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Reader, Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import { addDeliveries, deliveries } from './delivery.ts';
import { type EventDraft, eventOf } from './event.ts';
import {
  type PublishResult,
  type RememberedEvent,
  isStillRemembered,
  rememberedEvents,
} from './idempotency.ts';

const sweepEveryMs = 600_000;

export type EventPublisherOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  maxPending: number;
};

export class EventPublisher {
  readonly #store: Store;
  readonly #runtime: Runtime;
  readonly #maxPending: number;

  constructor({ store, runtime, tasks, maxPending }: EventPublisherOptions) {
    this.#store = store;
    this.#runtime = runtime;
    this.#maxPending = maxPending;
    tasks.every('sweep of remembered event ids', sweepEveryMs, () => this.#sweep());
  }

  /** For events of the server itself. It has no limit, because a refusal would undo the change that causes the event. */
  publishWithin(transaction: Transaction, draft: EventDraft, at: number): void {
    const { newId } = this.#runtime;
    addDeliveries(transaction, eventOf(draft, newId(), at), newId);
  }

  publish(draft: EventDraft, givenId: string | undefined): Promise<PublishResult> {
    const { now, newId } = this.#runtime;
    const at = now();
    const eventId = givenId ?? newId();
    return this.#store.update((transaction) => {
      const earlier = transaction.get(rememberedEvents, eventId);
      if (earlier && isStillRemembered(earlier, at)) return { eventId, deliveries: earlier.deliveries };
      if (transaction.waiting(deliveries) >= this.#maxPending) {
        throw new ServiceError('unavailable', 'Too many deliveries are pending.', { retryAfterSeconds: 5 });
      }
      const count = addDeliveries(transaction, eventOf(draft, eventId, at), newId);
      if (givenId !== undefined)
        transaction.put(rememberedEvents, { eventId, publishedAt: at, deliveries: count });
      return { eventId, deliveries: count };
    });
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

function expiredIn(reader: Reader, at: number): RememberedEvent[] {
  return [...reader.all(rememberedEvents)].filter((event) => !isStillRemembered(event, at));
}
