// Contract of claims: which deliveries a claim returns, in which order and how many; every store runs this suite.
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { backends } from './backends.ts';
import { claim, claimed, deleteAll, delivery, end, ping, publish, retry } from './deliveries.ts';

/** Publishes deliveries that have failed once, at the given times. They wait for a retry. */
async function publishRetries(store: Store, ends: Record<string, number>): Promise<void> {
  await publish(store, ...Object.keys(ends).map((id) => delivery(id, 0)));
  const { ids } = await claim(store, 0);
  expect(ids.sort()).toEqual(Object.keys(ends).sort());
  for (const id of ids) await retry(store, id, ends[id] ?? NaN);
}

describe.each(backends)('a claim in the %s store', (_name, open) => {
  it('takes the due deliveries by the time since which they wait, and returns when the next one is due', async () => {
    const store = await open();
    await publishRetries(store, { a1: 30, a2: 10, a3: 21, a4: 5, b1: 40 });
    expect(await claim(store, 14)).toEqual({ ids: [], nextAt: 15 });
    expect(await claim(store, 30)).toEqual({ ids: ['a4', 'a2'], nextAt: 31 });
    expect(await claim(store, 31)).toEqual({ ids: ['a3'], nextAt: 40 });
    expect(await claim(store, 40)).toEqual({ ids: ['a1'], nextAt: 50 });
    expect(await claim(store, 60)).toEqual({ ids: ['b1'], nextAt: undefined });
  });

  it('takes pings and first attempts at any time, by the time of their creation', async () => {
    const store = await open();
    await publish(store, delivery('a1', 30), delivery('a2', 10), ping('a3', 1e9), ping('a4', 21));
    expect(await claim(store, 5)).toEqual({ ids: ['a4', 'a3', 'a2', 'a1'], nextAt: undefined });
  });

  it('takes a retry when the given wait has passed since the attempt', async () => {
    const store = await open();
    await publishRetries(store, { a1: 100, b1: 103 });
    expect(await claim(store, 109)).toEqual({ ids: [], nextAt: 110 });
    // The wait is one of the call, so a changed wait applies to deliveries that already wait.
    expect(await claim(store, 109, 100, { retryWaitMs: 50 })).toEqual({ ids: [], nextAt: 150 });
    expect(await claim(store, 101, 100, { retryWaitMs: 0 })).toEqual({ ids: ['a1'], nextAt: 103 });
    expect(await claim(store, 112)).toEqual({ ids: [], nextAt: 113 });
    expect(await claim(store, 113)).toEqual({ ids: ['b1'], nextAt: undefined });
  });

  it('takes at most the requested number, and never a claimed delivery again', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1), delivery('a2', 2), delivery('a3', 3), delivery('b1', 4));
    expect((await claim(store, 9, 0)).ids).toEqual([]);
    const claims = await Promise.all([1, 2, 3].map((most) => claim(store, 9, most)));
    for (const [index, { ids }] of claims.entries()) expect(ids.length).toBeLessThanOrEqual(index + 1);
    const { ids: rest } = await claim(store, 9);
    const all = [...claims.flatMap(({ ids }) => ids), ...rest];
    expect(all.sort()).toEqual(['a1', 'a2', 'a3', 'b1']);
    expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
  });

  it('returns a time in the past if it left deliveries that are due', async () => {
    const store = await open();
    await publishRetries(store, { b1: 40 });
    await publish(store, delivery('a1', 1), delivery('a2', 2));
    const { ids, nextAt } = await claim(store, 9, 1);
    expect(ids).toEqual(['a1']);
    expect(nextAt).toBeLessThanOrEqual(9);
    expect((await claim(store, 9, 1)).ids).toEqual(['a2']);
    expect(await claim(store, 9, 1)).toEqual({ ids: [], nextAt: 50 });
  });

  it('takes a delivery again that was released, and calls the listeners of `onFree`', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1), delivery('a2', 2), delivery('b1', 3));
    expect((await claim(store, 9)).ids).toHaveLength(3);
    let calls = 0;
    store.deliveries.onFree(() => (calls += 1));
    await store.deliveries.release(['a2', 'b1'].map((id) => claimed(store, id)));
    expect(calls).toBeGreaterThan(0);
    expect(await store.deliveries.find('a2')).toEqual(delivery('a2', 2));
    expect((await claim(store, 9)).ids.sort()).toEqual(['a2', 'b1']);
    expect((await claim(store, 9)).ids).toEqual([]);
    await store.deliveries.release([]);
  });

  it('stays if a claim of the same delivery is released that has ended before', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1), delivery('b1', 1), delivery('c1', 1));
    await claim(store, 1);
    const before = ['a1', 'b1', 'c1'].map((id) => claimed(store, id));
    await retry(store, 'a1', 2);
    await end(store, 'b1', 2);
    await deleteAll(store, 'c');
    expect((await claim(store, 12)).ids).toEqual(['a1']);
    await store.deliveries.release(before);
    expect((await claim(store, 12)).ids).toEqual([]);
    expect(await store.deliveries.find('b1')).toMatchObject({ state: 'delivered' });
    expect(await store.deliveries.find('c1')).toBeUndefined();
    expect(await end(store, 'a1', 13)).toBeDefined();
    expect(store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
  });

  it('calls the listeners of `onFree` before a retry', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    let calls = 0;
    store.deliveries.onFree(() => (calls += 1));
    await retry(store, 'a1', 2);
    expect(calls).toBeGreaterThan(0);
  });

  it('lets webhooks take turns, even if the deliveries of one wait longer', async () => {
    const store = await open();
    for (const n of [1, 2, 3, 4, 5]) await publish(store, delivery(`a${n}`, n));
    await publish(store, delivery('b1', 8), delivery('b2', 9), delivery('c1', 7));
    expect((await claim(store, 10, 3)).ids.sort()).toEqual(['a1', 'b1', 'c1']);
    expect((await claim(store, 10, 2)).ids.sort()).toEqual(['a2', 'b2']);
    expect((await claim(store, 10)).ids).toEqual(['a3', 'a4', 'a5']);
  });

  it('continues the turns of the previous claim', async () => {
    const store = await open();
    for (const n of [1, 2, 3]) await publish(store, delivery(`a${n}`, n), delivery(`b${n}`, 3 + n));
    const webhooks: string[] = [];
    for (let i = 0; i < 6; i += 1) webhooks.push((await claim(store, 10, 1)).ids[0]?.charAt(0) ?? '');
    expect(['ababab', 'bababa']).toContain(webhooks.join(''));
  });

  describe('by priority', () => {
    it('takes a ping before a retry, and a retry before a first attempt', async () => {
      const store = await open();
      await publishRetries(store, { a1: 8, a2: 5 });
      await publish(store, delivery('a3', 1), delivery('a4', 2), ping('a5', 17), ping('a6', 16));
      expect((await claim(store, 20)).ids).toEqual(['a6', 'a5', 'a2', 'a1', 'a3', 'a4']);
    });

    it('takes the first of every webhook although other webhooks have pings and retries', async () => {
      const store = await open();
      await publishRetries(store, { a1: 1, a2: 2 });
      await publish(store, ping('a3', 3), delivery('b1', 4), delivery('b2', 5));
      expect((await claim(store, 20, 2)).ids.sort()).toEqual(['a3', 'b1']);
      expect((await claim(store, 20, 2)).ids.sort()).toEqual(['a1', 'b2']);
      expect((await claim(store, 20, 2)).ids).toEqual(['a2']);
    });

    it('does not let a retry delay others while it is not due or is claimed', async () => {
      const store = await open();
      await publishRetries(store, { a1: 5, a2: 20 });
      await publish(store, delivery('a3', 6), delivery('a4', 7));
      expect(await claim(store, 15, 1)).toMatchObject({ ids: ['a1'] });
      expect(await claim(store, 15)).toEqual({ ids: ['a3', 'a4'], nextAt: 30 });
      expect(await claim(store, 30)).toEqual({ ids: ['a2'], nextAt: undefined });
    });

    it('returns when the next retry is due, also after a first attempt', async () => {
      const store = await open();
      await publishRetries(store, { a1: 20, b1: 21 });
      await publish(store, delivery('a2', 5));
      expect(await claim(store, 10)).toEqual({ ids: ['a2'], nextAt: 30 });
      expect(await claim(store, 30)).toEqual({ ids: ['a1'], nextAt: 31 });
      expect((await claim(store, 31)).ids).toEqual(['b1']);
    });
  });

  describe('with limits of receivers', () => {
    it.each([
      ['one receiver for each webhook', 'abc', { a: 2, b: 2, c: 1 }, ['a1', 'a2', 'b1', 'c1']],
      ['more room than deliveries', 'abc', { a: 9, b: 0, c: 0 }, ['a1', 'a2', 'a3']],
      ['one receiver for all webhooks', 'xxx', { x: 3 }, ['a1', 'b1', 'c1']],
      ['one receiver for two webhooks', 'xxc', { x: 2, c: 1 }, ['a1', 'b1', 'c1']],
      ['one for two, the second with fewer deliveries', 'xxc', { x: 3, c: 0 }, ['a1', 'a2', 'b1']],
      ['one for two, without room', 'xxc', { x: 0, c: 9 }, ['c1', 'c2', 'c3']],
      ['negative room', 'xxc', { x: -1, c: 1 }, ['c1']],
      ['no room', 'xxc', { x: 0, c: 0 }, []],
    ])('takes as many as the receivers have room: %s', async (_which, receivers, room, expected) => {
      const store = await open();
      const ids = ['a1', 'a2', 'a3', 'b1', 'c1', 'c2', 'c3'];
      await publish(store, ...ids.map((id) => delivery(id, Number(id.charAt(1)))));
      const rooms: Record<string, number> = room;
      const taken = await claim(store, 9, 100, {
        receiverOf: (webhookId) => receivers.charAt('abc'.indexOf(webhookId)),
        roomFor: (receiver) => rooms[receiver] ?? NaN,
      });
      expect(taken.ids.sort()).toEqual(expected);
      // What is left cannot be claimed now, so the time when it was due does not matter.
      expect(taken.nextAt).toBeUndefined();
      const left = ids.filter((id) => !taken.ids.includes(id));
      expect((await claim(store, 9)).ids.sort()).toEqual(left);
    });

    const together = { receiverOf: () => 'x', roomFor: () => 1 };

    it('lets the webhooks of one receiver take turns from claim to claim', async () => {
      const store = await open();
      await publishRetries(store, { a1: 0, a2: 0, a3: 0 });
      for (const n of [1, 2, 3]) await publish(store, delivery(`b${n}`, 3 + n));
      const webhooks: string[] = [];
      for (let i = 0; i < 6; i += 1) {
        const { ids } = await claim(store, 10, 100, together);
        expect(ids).toHaveLength(1);
        webhooks.push(ids[0]?.charAt(0) ?? '');
      }
      expect(['ababab', 'bababa']).toContain(webhooks.join(''));
    });

    it('uses no room for a delivery that is not due', async () => {
      const store = await open();
      await publishRetries(store, { a1: 10, c1: 20 });
      await publish(store, delivery('b1', 1));
      expect(await claim(store, 10, 100, together)).toEqual({ ids: ['b1'], nextAt: 20 });
    });
  });
});
