// The eventPublisher takes in events: each is stored together with its deliveries, and a repeated one does nothing.
import { ServiceError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import type { Reader, Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import type { Runtime } from '../runtime.ts';
import { addDeliveries, deliveries } from './delivery.ts';
import { type EventDraft, eventOf } from './event.ts';
import { type PublishResult, isStillRemembered, rememberedEvents } from './idempotency.ts';

export type EventPublisher = {
  /** For the server's own events: part of the change that they tell of, and never refused. */
  publishWithin: (transaction: Transaction, news: EventDraft, at: number) => void;
  /** Refused while too many deliveries are pending. An id that was given is remembered: its repeat is answered as the first was. */
  publish: (news: EventDraft, eventId: string | undefined) => Promise<PublishResult>;
  /** Whether publishing under this id would only be answered again. */
  remembers: (eventId: string) => boolean;
};

const sweepEveryMs = 600_000;

export type EventPublisherOptions = { store: Store; runtime: Runtime; tasks: Tasks; maxPending: number };

export function createEventPublisher({
  store,
  runtime,
  tasks,
  maxPending,
}: EventPublisherOptions): EventPublisher {
  tasks.every('publication sweep', sweepEveryMs, async () => {
    const at = runtime.now();
    const spentIn = (reader: Reader) =>
      [...reader.all(rememberedEvents)].filter((publication) => !isStillRemembered(publication, at));
    if (spentIn(store).length === 0) return;
    await store.update((transaction) => {
      for (const { eventId } of spentIn(transaction)) transaction.remove(rememberedEvents, eventId);
    });
  });

  return {
    remembers(eventId) {
      const earlier = store.get(rememberedEvents, eventId);
      return earlier !== undefined && isStillRemembered(earlier, runtime.now());
    },
    publishWithin: (transaction, news, at) =>
      void addDeliveries(transaction, eventOf(news, runtime.newId(), at), runtime.newId),
    publish: (news, given) => {
      const at = runtime.now();
      const eventId = given ?? runtime.newId();
      return store.update((transaction) => {
        const earlier = transaction.get(rememberedEvents, eventId);
        if (earlier && isStillRemembered(earlier, at)) return { eventId, deliveries: earlier.deliveries };
        if (transaction.waiting(deliveries) >= maxPending) {
          throw new ServiceError('unavailable', 'Too many deliveries are pending.', { retryAfterSeconds: 5 });
        }
        const count = addDeliveries(transaction, eventOf(news, eventId, at), runtime.newId);
        if (given !== undefined)
          transaction.put(rememberedEvents, { eventId, publishedAt: at, deliveries: count });
        return { eventId, deliveries: count };
      });
    },
  };
}
