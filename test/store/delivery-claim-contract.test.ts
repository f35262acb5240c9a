// Contract of claims that delivery-model.test.ts does not compare: claims of the same moment, released claims, listeners and
// turns; every store runs this suite.
import { describe, expect } from 'vitest';
import { backends, onStore } from './backends.ts';
import { claim, claimed, deleteAll, delivery, end, publish, retry } from './deliveries.ts';

describe.each(backends)('a claim in the %s store', (_name, open) => {
  const it = onStore(open);

  it('takes at most the requested number, and never a claimed delivery again', async ({ store }) => {
    await publish(store, delivery('a1', 1), delivery('a2', 2), delivery('a3', 3), delivery('b1', 4));
    expect((await claim(store, 9, 0)).ids).toEqual([]);
    const claims = await Promise.all([1, 2, 3].map((most) => claim(store, 9, most)));
    for (const [index, { ids }] of claims.entries()) expect(ids.length).toBeLessThanOrEqual(index + 1);
    const { ids: rest } = await claim(store, 9);
    const all = [...claims.flatMap(({ ids }) => ids), ...rest];
    expect(all.sort()).toEqual(['a1', 'a2', 'a3', 'b1']);
    expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
  });

  it('takes a delivery again that was released, and calls the listeners of `onFree`', async ({ store }) => {
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

  it('stays if a claim of the same delivery is released that has ended before', async ({ store }) => {
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

  it('calls the listeners of `onFree` before a retry', async ({ store }) => {
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    let calls = 0;
    store.deliveries.onFree(() => (calls += 1));
    await retry(store, 'a1', 2);
    expect(calls).toBeGreaterThan(0);
  });

  it('lets the webhooks of one receiver take turns from claim to claim', async ({ store }) => {
    await publish(store, ...['a1', 'a2', 'a3'].map((id) => delivery(id, 0)));
    for (const id of (await claim(store, 0)).ids) await retry(store, id, 0);
    for (const n of [1, 2, 3]) await publish(store, delivery(`b${n}`, 3 + n));
    const webhooks: string[] = [];
    for (let i = 0; i < 6; i += 1) {
      const { ids } = await claim(store, 10, 100, { receiverOf: () => 'x', roomFor: () => 1 });
      expect(ids).toHaveLength(1);
      webhooks.push(ids[0]?.charAt(0) ?? '');
    }
    expect(['ababab', 'bababa']).toContain(webhooks.join(''));
  });

  it('returns when a retry is due also if its receiver has no room now', async ({ store }) => {
    await publish(store, delivery('a1', 0), delivery('b1', 0));
    await claim(store, 0, 100, { roomFor: (receiver) => (receiver === 'a' ? 1 : 0) });
    await retry(store, 'a1', 10);
    // Webhook b has its turn before a, and uses the room.
    const together = { receiverOf: () => 'x', roomFor: () => 1 };
    expect(await claim(store, 10, 100, together)).toEqual({ ids: ['b1'], nextAt: 20 });
  });
});
