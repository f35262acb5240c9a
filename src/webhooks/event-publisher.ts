// The herald takes in events: each is stored together with its deliveries, and a repeated one does nothing.
import { ServiceError } from '../errors.ts';
import type { Store } from '../store/store.ts';
import type { Reader, Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import type { World } from '../runtime.ts';
import { addDeliveries, deliveries } from './delivery.ts';
import { type News, eventOf } from './event.ts';
import { type Published, isRemembered, publications } from './idempotency.ts';

export type Herald = {
  /** For the server's own events: part of the change that they tell of, and never refused. */
  announce: (transaction: Transaction, news: News, at: number) => void;
  /** Refused while too many deliveries are pending. An id that was given is remembered: its repeat is answered as the first was. */
  publish: (news: News, eventId: string | undefined) => Promise<Published>;
  /** Whether publishing under this id would only be answered again. */
  remembers: (eventId: string) => boolean;
};

const sweepEveryMs = 600_000;

export type HeraldOptions = { store: Store; world: World; tasks: Tasks; maxPending: number };

export function createHerald({ store, world, tasks, maxPending }: HeraldOptions): Herald {
  tasks.every('publication sweep', sweepEveryMs, async () => {
    const at = world.now();
    const spentIn = (reader: Reader) =>
      [...reader.all(publications)].filter((publication) => !isRemembered(publication, at));
    if (spentIn(store).length === 0) return;
    await store.update((transaction) => {
      for (const { eventId } of spentIn(transaction)) transaction.remove(publications, eventId);
    });
  });

  return {
    remembers(eventId) {
      const earlier = store.get(publications, eventId);
      return earlier !== undefined && isRemembered(earlier, world.now());
    },
    announce: (transaction, news, at) =>
      void addDeliveries(transaction, eventOf(news, world.newId(), at), world.newId),
    publish: (news, given) => {
      const at = world.now();
      const eventId = given ?? world.newId();
      return store.update((transaction) => {
        const earlier = transaction.get(publications, eventId);
        if (earlier && isRemembered(earlier, at)) return { eventId, deliveries: earlier.deliveries };
        if (transaction.waiting(deliveries) >= maxPending) {
          throw new ServiceError('unavailable', 'Too many deliveries are pending.', { retryAfterSeconds: 5 });
        }
        const count = addDeliveries(transaction, eventOf(news, eventId, at), world.newId);
        if (given !== undefined)
          transaction.put(publications, { eventId, publishedAt: at, deliveries: count });
        return { eventId, deliveries: count };
      });
    },
  };
}
