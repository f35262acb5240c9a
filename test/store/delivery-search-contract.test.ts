// Contract of finding deliveries by filter; every store runs this suite.
import { describe, expect } from 'vitest';
import { type DeliveryFilter, matchesDeliveryFilter } from '../../src/webhooks/queue/delivery-filter.ts';
import type { Delivery } from '../../src/webhooks/queue/delivery.ts';
import { backends, onStore } from './backends.ts';
import { attempted, claim, claimed, complete, delivery, discard, end, publish, retry } from './deliveries.ts';

/** A delivery of an event of its own type. */
const typed = (id: string, createdAt: number, type: string, eventId = `event of ${id}`): Delivery => {
  const plain = delivery(id, createdAt);
  return { ...plain, event: { ...plain.event, id: eventId, type } };
};

const missed = (id: string, createdAt: number, type: string): Delivery => ({
  ...typed(id, createdAt, type),
  state: 'missed',
  endedAt: createdAt,
});

describe.each(backends)('deliveries of the %s store', (_name, open) => {
  const it = onStore(open);

  const filters: DeliveryFilter[] = [
    {},
    { webhookId: 'a' },
    { webhookId: 'c' },
    { states: ['pending'] },
    { states: ['failed', 'discarded', 'missed'] },
    { states: ['delivered', 'pending'], webhookId: 'b' },
    { changeType: 'Opened' },
    { changeType: 'opened' },
    { changeType: 'Closed', webhookId: 'a' },
    { eventId: 'shared' },
    { eventId: 'shared', states: ['missed'], webhookId: 'c' },
    { status: 500 },
    { status: 5 },
    { status: 2, webhookId: 'a' },
    { status: null },
    { status: null, changeType: 'Opened', states: ['discarded', 'missed'] },
    { status: 204, webhookId: 'a' },
    { from: 3 },
    { to: 3 },
    { from: 3, to: 4, changeType: 'Opened' },
    { from: 4, to: 3 },
  ];

  it('are found by every filter, newest first', async ({ store }) => {
    await publish(store, typed('a1', 1, 'Opened', 'shared'), typed('b1', 1, 'Opened', 'shared'));
    await publish(store, typed('a2', 2, 'Closed'), typed('b2', 2, 'Closed'), typed('a3', 2, 'Opened'));
    await claim(store, 2);
    await end(store, 'a1', 3);
    await complete(store, 'a2', {
      delivery: { ...attempted(claimed(store, 'a2'), 4), state: 'failed', endedAt: 4 },
    });
    await retry(store, 'b1', 4);
    const answered = { when: 4, durationMs: 1, status: 204, error: null, response: '' };
    await complete(store, 'a3', {
      delivery: { ...claimed(store, 'a3'), state: 'delivered', endedAt: 5, attempts: [answered] },
    });
    await publish(store, typed('b3', 3, 'Opened'), missed('c1', 4, 'Opened'), missed('c2', 3, 'Closed'));
    await discard(store, 'b', 6);
    await publish(store, typed('b4', 4, 'Opened'), {
      ...missed('c3', 4, 'Opened'),
      event: typed('c3', 4, 'Opened', 'shared').event,
    });
    const ids = ['a1', 'b1', 'a2', 'b2', 'a3', 'b3', 'c1', 'c2', 'b4', 'c3'];
    const stored = (await Promise.all(ids.map((id) => store.deliveries.find(id)))) as Delivery[];
    const newestFirst = stored.reverse().sort((one, other) => other.createdAt - one.createdAt);
    for (const filter of filters) {
      const expected = newestFirst.filter((one) => matchesDeliveryFilter(one, filter));
      const counted = { total: expected.length, isTotalExact: true };
      expect(await store.deliveries.page(filter, 0, 100), JSON.stringify(filter)).toEqual({
        deliveries: expected,
        ...counted,
      });
      expect(await store.deliveries.page(filter, 1, 2)).toEqual({
        deliveries: expected.slice(1, 3),
        ...counted,
      });
    }
  });

  it('are counted up to 10,000', async ({ store }) => {
    const all = Array.from({ length: 10_001 }, (_, n) => delivery(`a${n}`, n));
    for (let first = 0; first < all.length; first += 2_500)
      await publish(store, ...all.slice(first, first + 2_500));
    const page = async (filter: DeliveryFilter, start: number) => {
      const { deliveries, ...counted } = await store.deliveries.page(filter, start, 2);
      return { ...counted, ids: deliveries.map(({ id }) => id) };
    };
    expect(await page({ from: 1 }, 0)).toEqual({
      total: 10_000,
      isTotalExact: true,
      ids: ['a10000', 'a9999'],
    });
    expect(await page({}, 10_000)).toEqual({ total: 10_000, isTotalExact: false, ids: ['a0'] });
  });
});
