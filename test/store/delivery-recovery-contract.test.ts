// Contract of missed deliveries, redeliveries and their retention; every store runs this suite.
import { describe, expect } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import type { DeliveryFilter } from '../../src/webhooks/queue/delivery-filter.ts';
import type { CountRequest } from '../../src/webhooks/queue/delivery-queue.ts';
import { type Delivery, newDelivery, redeliveryOf } from '../../src/webhooks/queue/delivery.ts';
import { type Redelivery, redeliveries } from '../../src/webhooks/queue/redelivery.ts';
import { webhooks } from '../../src/webhooks/webhook.ts';
import { backends, onStore, keeping, openElsewhere } from './backends.ts';
import { webhook } from './definitions.ts';
import {
  bytesOf,
  claim,
  deleteAll,
  delivery,
  discard,
  end,
  enqueue,
  list,
  ping,
  publish,
} from './deliveries.ts';

/** A store may remove finished deliveries some time after they have finished. */
const eventually = { interval: 20 };

const missed = (id: string, createdAt: number): Delivery =>
  delivery(id, createdAt, { state: 'missed', endedAt: createdAt });

let ids = 0;
const portion = (most = 100, at = 50) => ({ most, at, newId: () => `new ${(ids += 1)}` });

async function request(
  store: Store,
  filter: DeliveryFilter = { states: ['failed', 'discarded', 'missed'] },
  requestedAt = 40,
): Promise<Redelivery> {
  const redelivery: Redelivery = { id: 'r', webhookId: 'a', filter, requestedAt };
  await store.update((transaction) => {
    transaction.put(webhooks, webhook('a'));
    transaction.put(redeliveries, redelivery);
  });
  return redelivery;
}

const countMatched = (store: Store, of: string[], given: Partial<CountRequest> = {}) =>
  store.deliveries.countMatched({
    webhooks: of.map((id) => ({ id })),
    filter: { states: ['failed', 'discarded', 'missed'] },
    requestedAt: 40,
    most: 9,
    ...given,
  });

const count = async (store: Store, of: string[], given: Partial<CountRequest> = {}) =>
  Object.fromEntries((await countMatched(store, of, given)).counts);

const linksOf = async (store: Store, ...of: string[]) => {
  const found = await Promise.all(of.map((id) => store.deliveries.find(id)));
  return found.map((one) => one?.redeliveredAs);
};

describe.each(backends)('the delivery queue of the %s store', (_name, open) => {
  const it = onStore(open);

  describe('a missed delivery', () => {
    it('is stored, is not pending, and is never claimed', async ({ store }) => {
      const pending = delivery('a1', 1);
      const added = () => [pending, missed('b1', 1)];
      expect(await store.deliveries.publish(added, { eventId: 'e', at: 1 })).toBe(1);
      expect(await store.deliveries.publish(added, { eventId: 'e', at: 2 })).toBe(1);
      await enqueue(store, missed('b2', 2));
      expect(store.deliveries.pending()).toMatchObject({ count: 1, bytes: bytesOf(pending) });
      expect(await store.deliveries.find('b1')).toEqual(missed('b1', 1));
      expect(await (await openElsewhere(store)).deliveries.find('b2')).toEqual(missed('b2', 2));
      expect((await claim(store, 9)).ids).toEqual(['a1']);
    });
  });

  describe('redeliver', () => {
    it('repeats what matches, in portions, and links the two deliveries', async ({ store }) => {
      await publish(store, delivery('a1', 1), delivery('a2', 2), delivery('a3', 3), ping('a4', 4));
      await claim(store, 9);
      await end(store, 'a1', 10, 'failed');
      await end(store, 'a2', 10);
      // These two end after the request.
      await publish(store, missed('a5', 41), missed('a6', 12), missed('b1', 5));
      await end(store, 'a3', 41, 'failed');
      await end(store, 'a4', 11, 'failed');
      const redelivery = await request(store);
      expect(await count(store, ['a', 'b', 'c'])).toEqual({ a: 2, b: 1 });
      const first = await store.deliveries.redeliver(redelivery, portion(1));
      expect(first).toEqual({ created: 1, isDone: false });
      const rest = await store.deliveries.redeliver(redelivery, portion());
      expect(rest).toEqual({ created: 1, isDone: true });
      expect(await store.deliveries.redeliver(redelivery, portion())).toEqual({ created: 0, isDone: true });
      const [as] = await linksOf(store, 'a1');
      const original = await store.deliveries.find('a1');
      const repeated = await store.deliveries.find(as ?? '');
      expect(repeated).toEqual({
        ...newDelivery({ ...delivery('a1', 1), id: as ?? '' }, 50),
        redeliveryOf: 'a1',
      });
      expect(original).toMatchObject({ state: 'failed', redeliveredAs: as });
      expect(await linksOf(store, 'a2', 'a3', 'a4', 'a5', 'b1')).toEqual([null, null, null, null, null]);
      expect(store.deliveries.pending()).toMatchObject({
        count: 2,
        bytes: bytesOf(delivery('a1', 1), missed('a6', 2)),
      });
      expect((await claim(store, 50)).ids).toHaveLength(2);
    });

    it('repeats what every kind of filter matches', async ({ store }) => {
      await publish(store, ...['a1', 'a2', 'a3', 'a4', 'a5'].map((id, n) => missed(id, n + 1)));
      await claim(store, 9);
      const filters: [DeliveryFilter, number][] = [
        [{ eventId: 'event of a1' }, 1],
        [{ states: ['missed'], from: 2, to: 2 }, 1],
        [{ states: ['failed', 'delivered'] }, 0],
        [{ status: 200, changeType: 'Tested' }, 0],
        [{ status: null, changeType: 'Tested' }, 3],
      ];
      for (const [filter, created] of filters) {
        const redelivered = await store.deliveries.redeliver(await request(store, filter), portion());
        expect(redelivered, JSON.stringify(filter)).toEqual({ created, isDone: true });
      }
    });

    it('repeats a redelivery that failed, but not within the same moment', async ({ store }) => {
      await publish(
        store,
        { ...missed('a1', 30), redeliveryOf: 'a0' },
        { ...missed('a2', 40), redeliveryOf: 'a0' },
      );
      const redelivery = await request(store);
      expect(await store.deliveries.redeliver(redelivery, portion())).toEqual({ created: 1, isDone: true });
      expect(await linksOf(store, 'a2')).toEqual([null]);
    });

    it('repeats only what ended after the given moment', async ({ store }) => {
      await publish(store, missed('a1', 1), missed('a2', 2), missed('a3', 3));
      const redelivery = { ...(await request(store)), endedAfter: 2 };
      await store.update((transaction) => transaction.put(redeliveries, redelivery));
      expect(await store.deliveries.redeliver(redelivery, portion())).toEqual({ created: 1, isDone: true });
      expect(await linksOf(store, 'a1', 'a2')).toEqual([null, null]);
    });

    it('creates nothing for an inactive webhook, or after the redelivery has ended', async ({ store }) => {
      await publish(store, missed('a1', 1));
      const redelivery = await request(store);
      await store.update((transaction) => transaction.put(webhooks, webhook('a', { active: false })));
      expect(await store.deliveries.redeliver(redelivery, portion())).toEqual({ created: 0, isDone: true });
      const elsewhere = await openElsewhere(store);
      await elsewhere.update((transaction) => transaction.put(webhooks, webhook('a')));
      await elsewhere.update((transaction) => {
        transaction.remove(redeliveries, 'r');
        transaction.put(webhooks, webhook('a', { updatedAt: 9 }));
      });
      expect(await store.deliveries.redeliver(redelivery, portion())).toEqual({ created: 0, isDone: true });
      expect(await linksOf(store, 'a1')).toEqual([null]);
    });

    it('repeats each delivery once, if several processes do it at the same moment', async ({ store }) => {
      await publish(store, ...Array.from({ length: 40 }, (_, n) => missed(`a${n}`, n)));
      const redelivery = await request(store);
      const elsewhere = await openElsewhere(store);
      const redeliverAll = async ({ deliveries }: Store) => {
        for (;;) if ((await deliveries.redeliver(redelivery, portion(3))).isDone) return;
      };
      await Promise.all([redeliverAll(store), redeliverAll(elsewhere), redeliverAll(store)]);
      const { deliveries, total } = await store.deliveries.page({ states: ['pending'] }, 0, 100);
      expect(total).toBe(40);
      expect(new Set(deliveries.map((one) => one.redeliveryOf)).size).toBe(40);
    });
  });

  describe('countMatched', () => {
    it('counts what a redelivery repeats: nothing pending, delivered, redelivered, and no ping', async ({
      store,
    }) => {
      await publish(store, ...['a1', 'a2', 'a3', 'a4', 'a5'].map((id) => delivery(id, 1)), ping('a6', 1));
      await claim(store, 9, 9);
      expect(await count(store, ['a'])).toEqual({});
      for (const id of ['a1', 'a2', 'a3', 'a6']) await end(store, id, 10, 'failed');
      await end(store, 'a4', 10);
      await enqueue(store, missed('b1', 5), { ...missed('b2', 40), redeliveryOf: 'b1' });
      expect(await count(store, ['a', 'b', 'c'])).toEqual({ a: 3, b: 1 });
      await store.update(({ deliveries }) => deliveries.markRedelivered('a1', 'a7'));
      expect(await count(store, ['a'])).toEqual({ a: 2 });
      expect(await count(store, ['a'], { filter: { states: ['delivered'] } })).toEqual({ a: 1 });
      expect(await count(store, ['a'], { filter: { states: ['missed'] } })).toEqual({});
      expect(await count(store, ['a'], { filter: { states: ['pending'] } })).toEqual({});
      expect(await count(store, ['a', 'b'], { filter: { eventId: 'event of a2' } })).toEqual({ a: 1 });
      expect(await count(store, ['a'], { requestedAt: 9 })).toEqual({});
    });

    it('counts pending redeliveries too if asked, claimed ones included', async ({ store }) => {
      const [a1, b1] = [missed('a1', 1), missed('b1', 1)];
      await publish(store, a1, b1, delivery('a2', 2));
      await enqueue(store, redeliveryOf(a1, 'a3', 5), redeliveryOf(a1, 'a4', 6), redeliveryOf(b1, 'b2', 6));
      await claim(store, 9);
      expect(await count(store, ['a', 'b'])).toEqual({ a: 1, b: 1 });
      const given = { withPending: true, filter: { states: [] } };
      expect(await count(store, ['a', 'b', 'c'], given)).toEqual({ a: 2, b: 1 });
      expect(await count(store, ['a'], { withPending: true })).toEqual({ a: 3 });
      expect(await count(store, ['a'], { withPending: true, most: 2 })).toEqual({ a: 2 });
      const bounded = { ...given, webhooks: [{ id: 'a', endedAfter: 5 }] };
      expect(await count(store, [], bounded)).toEqual({ a: 1 });
      await end(store, 'a3', 10);
      await end(store, 'a4', 10, 'failed');
      expect(await count(store, ['a', 'b'], given)).toEqual({ b: 1 });
    });

    it('stops at the bound of each webhook', async ({ store }) => {
      await publish(store, ...['a1', 'a2', 'a3', 'b1', 'b2', 'b3'].map((id, n) => missed(id, n)));
      expect(await count(store, ['a', 'b'], { most: 2 })).toEqual({ a: 2, b: 2 });
      expect(await count(store, [])).toEqual({});
    });

    it('counts only what ended after a moment of each webhook', async ({ store }) => {
      await publish(store, ...['a1', 'a2', 'a3', 'b1', 'b2'].map((id, n) => missed(id, n)));
      const given = { webhooks: [{ id: 'a', endedAfter: 1 }, { id: 'b' }] };
      expect(await count(store, [], given)).toEqual({ a: 1, b: 2 });
    });
  });

  it('marks a finished delivery as redelivered, and no pending one', async ({ store }) => {
    await publish(store, missed('a1', 1), delivery('a2', 2));
    await store.update(({ deliveries }) => {
      for (const [index, of] of [missed('a1', 1), delivery('a2', 2)].entries()) {
        deliveries.enqueue([redeliveryOf(of, `a${index + 3}`, 5)]);
        deliveries.markRedelivered(of.id, `a${index + 3}`);
      }
    });
    expect(await linksOf(store, 'a1', 'a2')).toEqual(['a3', null]);
    expect(await store.deliveries.find('a4')).toMatchObject({ redeliveryOf: 'a2' });
  });

  it('counts the deliveries that would be discarded', async () => {
    const store = await open(keeping(2));
    await publish(store, ...['a1', 'a2', 'a3', 'a4', 'a5', 'b1'].map((id) => delivery(id, 1)), ping('a6', 9));
    expect(await store.deliveries.pendingOf(['a'])).toBe(5);
    expect(await store.deliveries.pendingOf(['a', 'b', 'c'])).toBe(6);
    expect(await store.deliveries.pendingOf([])).toBe(0);
    await claim(store, 1, 2, { roomFor: (receiver) => (receiver === 'a' ? 2 : 0) });
    expect(await store.deliveries.pendingOf(['a'])).toBe(4);
    await discard(store, 'a', 2);
    expect(await store.deliveries.pendingOf(['a'])).toBe(0);
    expect(store.deliveries.evicted()).toBe(2);
    await enqueue(store, delivery('a7', 3));
    expect(await store.deliveries.pendingOf(['a'])).toBe(1);
    await deleteAll(store, 'a');
    expect(await store.deliveries.pendingOf(['a'])).toBe(0);
    expect(store.deliveries.evicted()).toBe(2);
  });

  describe('retention', () => {
    it('keeps what can be recovered apart from the rest, and counts what it evicts', async () => {
      const store = await open({ deliveries: { history: 1, recoverable: 3 } });
      await publish(store, ...['a1', 'a2', 'a3'].map((id) => delivery(id, 1)), ping('a4', 1));
      await claim(store, 1);
      await end(store, 'a1', 2, 'failed');
      await end(store, 'a2', 3);
      await end(store, 'a4', 4, 'failed');
      await end(store, 'a3', 5);
      await publish(store, missed('a5', 6), missed('a6', 7));
      await expect.poll(() => list(store, 'a'), eventually).toEqual(['a6', 'a5', 'a3', 'a1']);
      expect(store.deliveries.evicted()).toBe(0);
      await publish(store, missed('a7', 8), missed('b1', 8));
      await expect.poll(() => list(store, 'a'), eventually).toEqual(['a7', 'a6', 'a5', 'a3']);
      expect(store.deliveries.evicted()).toBe(1);
    });

    it('keeps redelivered ones apart, as many as recoverable ones, by the time they ended', async () => {
      const store = await open({ deliveries: { history: 1, recoverable: 2 } });
      await publish(store, missed('a1', 1), missed('a2', 4), delivery('a4', 2), delivery('a5', 2));
      await claim(store, 2);
      await end(store, 'a4', 2);
      await end(store, 'a5', 6);
      const finished = async () =>
        (await store.deliveries.page({ states: ['delivered', 'missed'] }, 0, 9)).deliveries.map(
          ({ id }) => id,
        );
      const redelivery = await request(store);
      expect(await store.deliveries.redeliver(redelivery, portion())).toEqual({ created: 2, isDone: true });
      await expect.poll(finished, eventually).toEqual(['a2', 'a5', 'a1']);
      await publish(store, missed('a6', 3), missed('a7', 5));
      await expect.poll(finished, eventually).toEqual(['a7', 'a2', 'a6', 'a5', 'a1']);
      expect(await store.deliveries.redeliver(redelivery, portion())).toEqual({ created: 2, isDone: true });
      await expect.poll(finished, eventually).toEqual(['a7', 'a2', 'a5']);
      expect(store.deliveries.evicted()).toBe(0);
    });
  });
});
