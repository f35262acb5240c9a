// Contract of completions that delivery-model.test.ts does not compare: only the holder of a claim completes a delivery, and
// once; every store runs this suite.
import { describe, expect } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { LostClaim } from '../../src/webhooks/queue/delivery-queue.ts';
import type { Delivery } from '../../src/webhooks/queue/delivery.ts';
import { backends, onStore } from './backends.ts';
import { cell, row, rows } from './definitions.ts';
import {
  attempted,
  claim,
  claimed,
  delivery,
  discard,
  end,
  ended,
  enqueue,
  ping,
  publish,
} from './deliveries.ts';

const hour = 3_600_000;
const nothing = { delivered: 0, failed: 0, missed: 0, discarded: 0, attempts: 0, durationMs: 0 };

/** Completes a delivery in both ways that there are. Returns whether the claim was held. */
const ways: [string, (store: Store, held: Delivery, by: Delivery) => Promise<boolean>][] = [
  [
    'the queue',
    async (store, held, by) => {
      const completed = await store.deliveries.complete(held, () => ({ delivery: by }));
      if (completed) expect(completed).toEqual({ delivery: by, needsUpdate: false });
      return completed !== undefined;
    },
  ],
  [
    'an update',
    async (store, held, by) => {
      try {
        await store.update((transaction) => transaction.deliveries.complete(held, by));
        return true;
      } catch (error) {
        if (!(error instanceof LostClaim)) throw error;
        return false;
      }
    },
  ],
];

describe.each(backends)('a completion in the %s store', (_name, open) => {
  const it = onStore(open);

  describe.each(ways)('by %s', (_way, completeWith) => {
    it('does nothing with a delivery that was never claimed, or was released', async ({ store }) => {
      await publish(store, delivery('a1', 1), delivery('a2', 2));
      await claim(store, 1, 1);
      await store.deliveries.release([claimed(store, 'a1')]);
      const found = [claimed(store, 'a1'), await store.deliveries.find('a2')];
      for (const one of found) {
        const held = one ?? delivery('a2', 2);
        expect(await completeWith(store, held, ended(held, 3))).toBe(false);
        expect(await store.deliveries.find(held.id)).toEqual(held);
      }
      expect((await claim(store, 2)).ids).toEqual(['a1', 'a2']);
    });

    it('does nothing with a delivery that was completed, with its old and with its new value', async ({
      store,
    }) => {
      await publish(store, delivery('a1', 1));
      await claim(store, 1);
      const held = claimed(store, 'a1');
      const tried = attempted(held, 2);
      await completeWith(store, held, tried);
      const found = (await store.deliveries.find('a1')) ?? held;
      expect(await completeWith(store, held, ended(held, 3))).toBe(false);
      expect(await completeWith(store, found, ended(found, 3))).toBe(false);
      // The old value is refused also while the delivery is claimed again.
      await claim(store, 12);
      expect(await completeWith(store, held, ended(held, 3))).toBe(false);
      expect(await store.deliveries.find('a1')).toEqual(tried);
      const again = claimed(store, 'a1');
      expect(await completeWith(store, again, ended(again, 13))).toBe(true);
      expect(await completeWith(store, again, ended(again, 14))).toBe(false);
      expect(await store.deliveries.find('a1')).toEqual(ended(tried, 13));
    });

    it('succeeds once if it is called several times at the same moment', async ({ store }) => {
      await publish(store, delivery('a1', 1), delivery('b1', 1));
      await claim(store, 1);
      const calls = ['a1', 'b1', 'a1', 'a1', 'b1'].map((id, index) =>
        completeWith(store, claimed(store, id), ended(claimed(store, id), index)),
      );
      expect((await Promise.all(calls)).filter((isHeld) => isHeld)).toHaveLength(2);
      expect(store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
    });
  });

  it('runs its rule on a state that has every update before the call', async ({ store }) => {
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    await store.update((transaction) => transaction.write(cell, { n: 7 }));
    await store.deliveries.complete(claimed(store, 'a1'), (reader) => ({
      delivery: ended(claimed(store, 'a1'), reader.read(cell).n),
    }));
    expect(await store.deliveries.find('a1')).toMatchObject({ endedAt: 7 });
  });

  it('changes nothing and keeps the claim if its rule throws', async ({ store }) => {
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    const failed = store.deliveries.complete(claimed(store, 'a1'), () => {
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await store.deliveries.find('a1')).toEqual(delivery('a1', 1));
    expect((await claim(store, 1)).ids).toEqual([]);
    expect(await end(store, 'a1', 2)).toBeDefined();
  });

  it('is refused if an update has completed the delivery, the same one or another at the same moment', async ({
    store,
  }) => {
    await publish(store, delivery('a1', 1), delivery('b1', 1));
    await claim(store, 1);
    const [a1, b1] = [claimed(store, 'a1'), claimed(store, 'b1')];
    const twice = store.update((transaction) => {
      transaction.put(rows, row('r'));
      transaction.deliveries.complete(b1, attempted(b1, 2));
      transaction.deliveries.complete(b1, ended(b1, 2));
    });
    const [first, second] = [2, 3].map((at) =>
      store.update((transaction) => {
        transaction.put(rows, row(`r${at}`));
        transaction.deliveries.complete(a1, attempted(a1, at));
      }),
    );
    await expect(twice).rejects.toThrow(LostClaim);
    await first;
    await expect(second).rejects.toThrow(LostClaim);
    expect([...store.all(rows)].map(({ id }) => id)).toEqual(['r2']);
    expect(await store.deliveries.find('a1')).toEqual(attempted(delivery('a1', 1), 2));
    expect(await store.deliveries.find('b1')).toEqual(delivery('b1', 1));
    expect(await end(store, 'b1', 3)).toBeDefined();
  });

  it.for(ways)('counts in each hour how deliveries end, by %s', async ([, complete], { store }) => {
    // The sweep of the store removes older hours.
    const at = (hours: number) => Math.floor(Date.now() / hour) * hour + (hours - 12) * hour;
    const missed = (id: string, at: number) => delivery(id, at, { state: 'missed', endedAt: at });
    const counted = async (webhookIds?: string[], from = 0, to = at(9)) =>
      (await store.deliveries.history({ webhookIds, from, to })).hours;
    await publish(
      store,
      delivery('a1', 1),
      delivery('a2', 1),
      delivery('a3', 1),
      ping('a4', 1),
      delivery('b1', 1),
    );
    await publish(store, missed('a5', at(1) + 5));
    await enqueue(store, missed('b2', at(2)), delivery('a6', 2));
    await claim(store, 9, 5);
    const held = ['a1', 'a2', 'a3', 'a4', 'b1'].map((id) => claimed(store, id));
    const ends = [at(2) - 1, at(2), at(2) + 1, at(2), at(2)] as const;
    const outcomes = held.map((one, n) => {
      const after = attempted(one, ends[n] ?? 0);
      return n === 2 ? after : ended(after, ends[n] ?? 0, n === 1 ? 'failed' : 'delivered');
    });
    for (const [n, one] of held.entries()) expect(await complete(store, one, outcomes[n] ?? one)).toBe(true);
    // What had ended already, or is claimed no more, is not counted again.
    expect(await complete(store, held[0] ?? delivery('a1', 1), outcomes[0] ?? delivery('a1', 1))).toBe(false);
    await discard(store, 'a', at(3));
    const ofA = [
      { ...nothing, webhookId: 'a', at: at(1), delivered: 1, missed: 1, attempts: 1, durationMs: 1 },
      { ...nothing, webhookId: 'a', at: at(2), failed: 1, attempts: 2, durationMs: 2 },
      { ...nothing, webhookId: 'a', at: at(3), discarded: 2 },
    ];
    expect(await counted(['a'])).toEqual(ofA);
    expect(await counted(['a'], at(1) + 1, at(2))).toEqual(ofA.slice(0, 2));
    const both = { delivered: 1, failed: 1, missed: 1, attempts: 3, durationMs: 3 };
    const ofAll = [ofA[0], { ...nothing, at: at(2), ...both }, ofA[2]];
    expect(await counted()).toEqual(ofAll.map((one) => ({ ...one, webhookId: '' })));
    const ofB = {
      ...nothing,
      webhookId: 'b',
      at: at(2),
      delivered: 1,
      missed: 1,
      attempts: 1,
      durationMs: 1,
    };
    expect(await counted(['a', 'b'])).toEqual(expect.arrayContaining([...ofA, ofB]));
    expect(await counted(['c'])).toEqual([]);
  });
});
