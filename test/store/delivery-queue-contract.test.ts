// Contract of the delivery queue, except claims and completions; every store runs this suite.
import { describe, expect, it } from 'vitest';
import { rememberedForMs } from '../../src/webhooks/queue/delivery-queue.ts';
import { backends, keeping, openElsewhere } from './backends.ts';
import { cell, row, rows } from './definitions.ts';
import {
  attempted,
  bytesOf,
  claim,
  complete,
  claimed,
  deleteAll,
  delivery,
  discard,
  end,
  ended,
  enqueue,
  list,
  ping,
  publish,
  retry,
  snapshot,
} from './deliveries.ts';

/** A store may remove finished deliveries some time after they have finished. */
const eventually = { interval: 20 };

describe.each(backends)('the delivery queue of the %s store', (_name, open) => {
  it('is empty at first', async () => {
    const { deliveries, ...store } = await open();
    expect(deliveries.pending()).toEqual({ count: 0, bytes: 0 });
    expect(await deliveries.oldestPendingAt()).toBeUndefined();
    expect(await deliveries.find('a1')).toBeUndefined();
    expect(await deliveries.page({ webhookId: 'a' }, 0, 10)).toEqual({
      deliveries: [],
      total: 0,
      isTotalExact: true,
    });
    expect(await deliveries.findEvent('e', 1)).toBeUndefined();
    expect(await claim({ ...store, deliveries }, 1e9)).toEqual({ ids: [], nextAt: undefined });
  });

  describe('publish', () => {
    it('stores the deliveries that the rule returns, and returns their number', async () => {
      const store = await open();
      await store.update((transaction) => transaction.put(rows, row('a', 2)));
      const count = await store.deliveries.publish((reader) =>
        reader.get(rows, 'a') ? [delivery('a1', 5), delivery('b1', 5)] : [],
      );
      expect(count).toBe(2);
      expect(await store.deliveries.publish(() => [])).toBe(0);
      expect(await store.deliveries.find('a1')).toEqual(delivery('a1', 5));
      const elsewhere = await openElsewhere(store);
      expect(await elsewhere.deliveries.find('b1')).toEqual(delivery('b1', 5));
      expect((await claim(store, 5)).ids.sort()).toEqual(['a1', 'b1']);
    });

    it('stores nothing if the rule throws, and other events of the same moment are stored', async () => {
      const store = await open();
      const outcomes = await Promise.allSettled(
        [1, 2, 3, 4, 5, 6].map((n) =>
          store.deliveries.publish(
            () => {
              if (n % 3 === 0) throw new Error('no');
              return [delivery(`a${n}`, n)];
            },
            { eventId: `e${n}`, at: n },
          ),
        ),
      );
      expect(
        outcomes.map((outcome) =>
          outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as Error).message,
        ),
      ).toEqual([1, 1, 'no', 1, 1, 'no']);
      expect((await list(store, 'a')).sort()).toEqual(['a1', 'a2', 'a4', 'a5']);
      expect(store.deliveries.pending().count).toBe(4);
      expect(await store.deliveries.findEvent('e3', 9)).toBeUndefined();
      expect(await store.deliveries.findEvent('e4', 9)).toMatchObject({ deliveries: 1 });
    });

    it('counts the deliveries of events that were published at the same moment', async () => {
      const store = await open();
      const outcomes = await Promise.all(
        [1, 2, 3, 4, 5, 6].map((n) =>
          store.deliveries
            .publish(() => {
              if (store.deliveries.pending().count >= 4) throw new Error('full');
              return [delivery(`a${n}`, 1)];
            })
            .catch((error: unknown) => (error as Error).message),
        ),
      );
      expect(outcomes).toEqual([1, 1, 1, 1, 'full', 'full']);
      const kept = [1, 2, 3, 4].map((n) => delivery(`a${n}`, 1));
      expect(store.deliveries.pending()).toEqual({ count: 4, bytes: bytesOf(...kept) });
    });

    it('runs the rule on a state that has every update before the call', async () => {
      const store = await open();
      for (const n of [1, 2, 3]) {
        await store.update((transaction) => transaction.write(cell, { n }));
        const count = await store.deliveries.publish((reader) =>
          Array.from({ length: reader.read(cell).n }, (_, index) => delivery(`a${n}${index}`, 1)),
        );
        expect(count).toBe(n);
      }
    });

    it('calls the listeners of `onFree` until they unsubscribe', async () => {
      const store = await open();
      const heard: string[] = [];
      const stop = [
        store.deliveries.onFree(() => heard.push('one')),
        store.deliveries.onFree(() => heard.push('two')),
      ];
      await publish(store, delivery('a1', 1));
      expect(new Set(heard)).toEqual(new Set(['one', 'two']));
      stop[0]?.();
      heard.length = 0;
      await enqueue(store, delivery('a2', 1));
      expect(new Set(heard)).toEqual(new Set(['two']));
      stop[1]?.();
      heard.length = 0;
      await publish(store, delivery('a3', 1));
      expect(heard).toEqual([]);
    });
  });

  describe('a remembered event', () => {
    const publishAt = (store: Awaited<ReturnType<typeof open>>, at: number, ...ids: string[]) =>
      store.deliveries.publish(
        () => ids.map((id) => delivery(id, at, { event: { ...delivery(id, at).event, id: 'e' } })),
        { eventId: 'e', at },
      );

    it('is published once, and again after 24 hours', async () => {
      const store = await open();
      expect(await publishAt(store, 10, 'a1', 'b1')).toBe(2);
      expect(await publishAt(store, 11, 'a2')).toBe(2);
      expect(await publishAt(store, 10 + rememberedForMs - 1, 'a3')).toBe(2);
      expect(await list(store, 'a')).toEqual(['a1']);
      expect(store.deliveries.pending().count).toBe(2);
      expect(await publishAt(store, 10 + rememberedForMs, 'a4')).toBe(1);
      expect(await publishAt(store, 11 + rememberedForMs, 'a5')).toBe(1);
      expect(await list(store, 'a')).toEqual(['a4', 'a1']);
    });

    it('is published once by calls of the same moment', async () => {
      const store = await open();
      const counts = await Promise.all([1, 2, 3].map((n) => publishAt(store, n, `a${n}`)));
      expect(counts).toEqual([1, 1, 1]);
      expect(await list(store, 'a')).toHaveLength(1);
      expect(store.deliveries.pending().count).toBe(1);
    });

    it('is remembered without deliveries too, and is not the same as an event without an id', async () => {
      const store = await open();
      expect(await publishAt(store, 10)).toBe(0);
      expect(await publishAt(store, 11, 'a1')).toBe(0);
      expect(await publish(store, delivery('a2', 11))).toBe(1);
      expect(await store.deliveries.findEvent('e', 11)).toEqual({
        eventId: 'e',
        deliveries: 0,
        publishedAt: 10,
      });
    });

    it('is found for 24 hours, and forgotten after that', async () => {
      const store = await open();
      await publishAt(store, 10, 'a1');
      await store.deliveries.publish(() => [], { eventId: 'later', at: 20 });
      const found = { eventId: 'e', deliveries: 1, publishedAt: 10 };
      const end = 10 + rememberedForMs;
      expect(await store.deliveries.findEvent('e', 10)).toEqual(found);
      expect(await store.deliveries.findEvent('e', end - 1)).toEqual(found);
      expect(await store.deliveries.findEvent('e', end)).toBeUndefined();
      expect(await store.deliveries.findEvent('unknown', 10)).toBeUndefined();
      await store.deliveries.forgetEvents(end - 1);
      expect(await store.deliveries.findEvent('e', 10)).toEqual(found);
      await store.deliveries.forgetEvents(end);
      expect(await store.deliveries.findEvent('e', 10)).toBeUndefined();
      expect(await store.deliveries.findEvent('later', 20)).toMatchObject({ publishedAt: 20 });
      expect(await list(store, 'a')).toEqual(['a1']);
    });
  });

  it('counts pending deliveries and their bytes until they have ended, and finds the oldest', async () => {
    const store = await open();
    const sizes = async () => [store.deliveries.pending(), await store.deliveries.oldestPendingAt()];
    const [b1, a1, a2] = [delivery('b1', 3), delivery('a1', 4), delivery('a2', 5)];
    const of = (...all: (typeof b1)[]) => ({ count: all.length, bytes: bytesOf(...all) });
    await publish(store, b1);
    await enqueue(store, a1, a2);
    expect(await sizes()).toEqual([of(b1, a1, a2), 3]);
    await claim(store, 9);
    expect(await sizes()).toEqual([of(b1, a1, a2), 3]);
    await retry(store, 'b1', 9);
    await end(store, 'a1', 9);
    expect(await sizes()).toEqual([of(b1, a2), 3]);
    await claim(store, 19);
    await end(store, 'b1', 19);
    expect(await sizes()).toEqual([of(a2), 5]);
    await complete(store, 'a2', { delivery: 'deleted' });
    expect(await sizes()).toEqual([of(), undefined]);
    const [a3, b2] = [delivery('a3', 20), delivery('b2', 21)];
    await enqueue(store, a3, b2);
    await discard(store, 'a', 22);
    expect(await sizes()).toEqual([of(b2), 21]);
    await deleteAll(store, 'b');
    expect(await sizes()).toEqual([of(), undefined]);
  });

  it('finds the current value of a delivery', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    expect(await store.deliveries.find('a1')).toEqual(delivery('a1', 1));
    await retry(store, 'a1', 5);
    const tried = attempted(delivery('a1', 1), 5);
    expect(await store.deliveries.find('a1')).toEqual(tried);
    await claim(store, 15);
    await end(store, 'a1', 16, 'failed');
    for (const one of [store, await openElsewhere(store)])
      expect(await one.deliveries.find('a1')).toEqual(ended(tried, 16, 'failed'));
  });

  it('returns the deliveries of a webhook by page, newest first', async () => {
    const store = await open();
    for (const n of [1, 2, 3, 4, 5]) await publish(store, delivery(`a${n}`, n), delivery(`b${n}`, n));
    await claim(store, 9);
    await end(store, 'a4', 9);
    await retry(store, 'a5', 9);
    const page = async (start: number, num: number) => {
      const { deliveries, total } = await store.deliveries.page({ webhookId: 'a' }, start, num);
      return [...deliveries.map(({ id }) => id), total];
    };
    expect(await page(0, 10)).toEqual(['a5', 'a4', 'a3', 'a2', 'a1', 5]);
    expect(await page(0, 2)).toEqual(['a5', 'a4', 5]);
    expect(await page(2, 2)).toEqual(['a3', 'a2', 5]);
    expect(await page(4, 2)).toEqual(['a1', 5]);
    expect(await page(5, 2)).toEqual([5]);
    const { deliveries } = await store.deliveries.page({ webhookId: 'a' }, 0, 2);
    expect(deliveries).toEqual([attempted(delivery('a5', 5), 9), ended(delivery('a4', 4), 9)]);
  });

  it('returns frozen deliveries', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    const given = [
      claimed(store, 'a1'),
      await store.deliveries.find('a1'),
      ...(await store.deliveries.page({ webhookId: 'a' }, 0, 1)).deliveries,
    ];
    expect(given).toHaveLength(3);
    for (const one of given) {
      expect(() => Object.assign(one ?? {}, { state: 'failed' })).toThrow(TypeError);
      expect(() => Object.assign(one?.event ?? {}, { data: '' })).toThrow(TypeError);
    }
  });

  describe('discardPending', () => {
    it('ends the pending deliveries of a webhook, but no ping, claimed or finished one', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('a2', 2));
      await claim(store, 2);
      await end(store, 'a1', 3, 'failed');
      await publish(store, delivery('a3', 5), ping('a4', 6), delivery('a5', 7), delivery('b1', 5));
      await discard(store, 'a', 9);
      const { deliveries } = await store.deliveries.page({ webhookId: 'a' }, 0, 10);
      expect(deliveries).toEqual([
        ended(delivery('a5', 7), 9, 'discarded'),
        ping('a4', 6),
        ended(delivery('a3', 5), 9, 'discarded'),
        delivery('a2', 2),
        ended(delivery('a1', 1), 3, 'failed'),
      ]);
      expect(store.deliveries.pending().count).toBe(3);
      expect((await claim(store, 9)).ids.sort()).toEqual(['a4', 'b1']);
      // The claimed delivery is completed as usual.
      await end(store, 'a2', 10);
      expect(await store.deliveries.find('a2')).toEqual(ended(delivery('a2', 2), 10));
    });

    it('ends deliveries that wait for a retry, with their attempts', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1));
      await claim(store, 1);
      await retry(store, 'a1', 2);
      await discard(store, 'a', 3);
      const tried = attempted(delivery('a1', 1), 2);
      expect(await store.deliveries.find('a1')).toEqual(ended(tried, 3, 'discarded'));
      expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
    });

    it('changes nothing for a webhook without deliveries', async () => {
      const store = await open();
      await publish(store, delivery('b1', 1));
      const before = await snapshot(store);
      await discard(store, 'a', 3);
      expect(await snapshot(store)).toEqual(before);
    });
  });

  it('newest returns the newest deliveries of each webhook, pending ones included', async () => {
    const store = await open();
    await publish(store, ...['a1', 'a2', 'a3', 'b1'].map((id, at) => delivery(id, at + 1)));
    await claim(store, 9);
    await complete(store, 'a3', { delivery: ended(claimed(store, 'a3'), 11, 'failed') });
    const ping = { ...delivery('a4', 5), isPing: true };
    await publish(store, ping);
    const at = (createdAt: number, rest = {}) => ({
      state: 'pending',
      isPing: false,
      createdAt,
      endedAt: null,
      error: null,
      ...rest,
    });
    expect(await store.deliveries.newest(['a', 'b', 'c'], 2)).toEqual(
      new Map([
        ['a', [at(5, { isPing: true }), at(3, { state: 'failed', endedAt: 11 })]],
        ['b', [at(4)]],
      ]),
    );
    expect(await store.deliveries.newest(['b'], 1)).toEqual(new Map([['b', [at(4)]]]));
  });

  it('lastOutcomes returns how the newest ended delivery of each webhook has ended', async () => {
    const store = await open();
    await publish(store, ...['a1', 'a2', 'a3', 'b1', 'c1'].map((id, at) => delivery(id, at + 1)));
    await claim(store, 9);
    await end(store, 'a1', 12);
    await complete(store, 'a2', { delivery: ended(claimed(store, 'a2'), 11, 'failed') });
    await complete(store, 'b1', { delivery: ended(claimed(store, 'b1'), 11, 'delivered') });
    expect(await store.deliveries.lastOutcomes(['a', 'b', 'c', 'd'])).toEqual(
      new Map([
        ['a', 'failed'],
        ['b', 'delivered'],
      ]),
    );
  });

  describe('deleteAll', () => {
    it('deletes all deliveries of a webhook, also claimed and finished ones', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('a2', 2), delivery('a3', 90), delivery('b1', 90));
      await claim(store, 2, 2, { roomFor: (receiver) => (receiver === 'a' ? 2 : 0) });
      await end(store, 'a1', 2);
      await deleteAll(store, 'a');
      expect(await list(store, 'a')).toEqual([]);
      for (const id of ['a1', 'a2', 'a3']) expect(await store.deliveries.find(id)).toBeUndefined();
      expect(await snapshot(store)).toMatchObject({
        pending: { count: 1, bytes: bytesOf(delivery('b1', 90)) },
        oldest: 90,
      });
      expect(await claim(store, 4)).toEqual({ ids: ['b1'], nextAt: undefined });
      // The webhook can get new deliveries.
      await publish(store, delivery('a4', 3));
      expect((await claim(store, 4)).ids).toEqual(['a4']);
      expect(await list(store, 'a')).toEqual(['a4']);
    });
  });

  describe('retention', () => {
    it('removes the deliveries of a webhook that finished first, and no pending one', async () => {
      const store = await open(keeping(2));
      const ids = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1'];
      await publish(store, ...ids.map((id) => delivery(id, 1)));
      await claim(store, 1);
      for (const [index, id] of ['a3', 'a1'].entries()) await end(store, id, 10 + index);
      expect(await list(store, 'a')).toEqual(['a5', 'a4', 'a3', 'a2', 'a1']);
      await end(store, 'b1', 12);
      await end(store, 'a4', 13);
      await expect.poll(() => list(store, 'a'), eventually).toEqual(['a5', 'a4', 'a2', 'a1']);
      expect(await store.deliveries.find('a3')).toBeUndefined();
      await end(store, 'a2', 14);
      await expect.poll(() => list(store, 'a'), eventually).toEqual(['a5', 'a4', 'a2']);
      expect(await list(store, 'b')).toEqual(['b1']);
      expect(store.deliveries.pending().count).toBe(1);
      await end(store, 'a5', 15);
      await expect.poll(() => list(store, 'a'), eventually).toEqual(['a5', 'a2']);
    });

    it('can keep no finished delivery', async () => {
      const store = await open(keeping(0));
      await publish(store, delivery('a1', 1), delivery('a2', 9), delivery('a3', 9));
      await claim(store, 1, 1);
      expect(await end(store, 'a1', 2)).toMatchObject({ delivery: { id: 'a1', state: 'delivered' } });
      await expect.poll(() => list(store, 'a'), eventually).toEqual(['a3', 'a2']);
      await discard(store, 'a', 3);
      await expect.poll(() => list(store, 'a'), eventually).toEqual([]);
    });

    it('applies to deliveries that an update completes', async () => {
      const store = await open(keeping(1));
      await publish(store, ...['a1', 'a2', 'a3'].map((id) => delivery(id, 1)));
      await claim(store, 1);
      for (const [index, id] of ['a2', 'a1', 'a3'].entries())
        await store.update((transaction) =>
          transaction.deliveries.complete(claimed(store, id), ended(claimed(store, id), 10 + index)),
        );
      await expect.poll(() => list(store, 'a'), eventually).toEqual(['a3']);
    });
  });
});
