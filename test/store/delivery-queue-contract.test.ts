// Contract of the delivery queue, except claims, completions and what delivery-model.test.ts compares; every store runs
// this suite.
import { describe, expect } from 'vitest';
import { backends, onStore, keeping } from './backends.ts';
import { cell } from './definitions.ts';
import {
  bytesOf,
  claim,
  claimed,
  complete,
  delivery,
  discard,
  end,
  ended,
  enqueue,
  list,
  publish,
} from './deliveries.ts';

const dayMs = 86_400_000;

/** A store may remove finished deliveries some time after they have finished. */
const eventually = { interval: 20 };

describe.each(backends)('the delivery queue of the %s store', (_name, open) => {
  const it = onStore(open);

  describe('publish', () => {
    it('counts the deliveries of events that were published at the same moment', async ({ store }) => {
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
      expect(store.deliveries.pending()).toMatchObject({ count: 4, bytes: bytesOf(...kept) });
    });

    it('runs the rule on a state that has every update before the call', async ({ store }) => {
      for (const n of [1, 2, 3]) {
        await store.update((transaction) => transaction.write(cell, { n }));
        const count = await store.deliveries.publish((reader) =>
          Array.from({ length: reader.read(cell).n }, (_, index) => delivery(`a${n}${index}`, 1)),
        );
        expect(count).toBe(n);
      }
    });

    it('calls the listeners of `onFree` until they unsubscribe', async ({ store }) => {
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

    it('is published once, and again after 24 hours', async ({ store }) => {
      expect(await publishAt(store, 10, 'a1', 'b1')).toBe(2);
      expect(await publishAt(store, 11, 'a2')).toBe(2);
      expect(await publishAt(store, 10 + dayMs - 1, 'a3')).toBe(2);
      expect(await list(store, 'a')).toEqual(['a1']);
      expect(store.deliveries.pending().count).toBe(2);
      expect(await publishAt(store, 10 + dayMs, 'a4')).toBe(1);
      expect(await publishAt(store, 11 + dayMs, 'a5')).toBe(1);
      expect(await list(store, 'a')).toEqual(['a4', 'a1']);
    });

    it('is found for 24 hours, and forgotten after that', async ({ store }) => {
      await publishAt(store, 10, 'a1');
      await store.deliveries.publish(() => [], { eventId: 'later', at: 20 });
      const found = { eventId: 'e', deliveries: 1, publishedAt: 10 };
      const end = 10 + dayMs;
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

  it('knows when the oldest pending delivery was created', async ({ store }) => {
    const oldestAt = () => store.deliveries.pending().oldestAt;
    expect(oldestAt()).toBeUndefined();
    await publish(store, delivery('a1', 5), delivery('a2', 3));
    expect(oldestAt()).toBe(3);
    await claim(store, 9);
    await end(store, 'a2', 9);
    await expect.poll(oldestAt, { timeout: 5_000 }).toBe(5);
    await end(store, 'a1', 9);
    expect(oldestAt()).toBeUndefined();
  });

  it('returns frozen deliveries', async ({ store }) => {
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

  it('newest returns the delivery of each webhook that changed last, pending or ended', async ({ store }) => {
    await publish(store, ...['a1', 'a2', 'a3', 'b1'].map((id, at) => delivery(id, at + 1)));
    await claim(store, 9);
    await complete(store, 'a3', { delivery: ended(claimed(store, 'a3'), 11, 'failed') });
    const pending = { state: 'pending', isPing: false, at: 4, error: null };
    const failed = { ...pending, state: 'failed', at: 11 };
    expect(await store.deliveries.newest(['a', 'b', 'c'])).toEqual(
      new Map<string, object>([
        ['a', failed],
        ['b', pending],
      ]),
    );
    await publish(store, { ...delivery('a4', 15), isPing: true });
    const ping = { ...pending, isPing: true, at: 15 };
    expect(await store.deliveries.newest(['a'])).toEqual(new Map([['a', ping]]));
  });

  it('lastOutcomes returns how the newest ended delivery of each webhook has ended', async ({ store }) => {
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

  it('adds the deliveries of an announced event when the update commits', async ({ store }) => {
    const one = delivery('a1', 1);
    const other = delivery('b1', 1, { event: one.event, state: 'missed', endedAt: 1 });
    store.deliveries.distributeWith((reader, event, { about, isMissed }) => {
      expect([event, about, isMissed]).toEqual([one.event, 'c', true]);
      return reader.read(cell).n === 1 ? [one, other] : [];
    });
    const announce = (n: number) =>
      store.update((transaction) => {
        transaction.deliveries.announce(one.event, { about: 'c', isMissed: true });
        transaction.write(cell, { n });
      });
    await announce(0);
    expect(store.deliveries.pending().count).toBe(0);
    await announce(1);
    expect(store.deliveries.pending()).toEqual({ count: 1, bytes: bytesOf(one), oldestAt: 1 });
    expect((await claim(store, 1)).ids).toEqual(['a1']);
    expect(await store.deliveries.find('b1')).toEqual(other);
    expect(await list(store, 'a')).toEqual(['a1']);
  });

  it('eventTypes returns each type once', async ({ store }) => {
    expect(await store.deliveries.eventTypes()).toEqual([]);
    const types = ['Two', 'One', 'Two', 'Three', 'Four'];
    await publish(
      store,
      ...types.map((type, at) => delivery(`a${at}`, at, { event: { ...delivery('a', at).event, type } })),
    );
    await claim(store, 9);
    for (const id of ['a0', 'a1', 'a2', 'a3']) await end(store, id, 10);
    expect(await store.deliveries.eventTypes()).toEqual(['Four', 'One', 'Three', 'Two']);
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
