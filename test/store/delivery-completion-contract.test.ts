// Contract of completions: the holder of a claim completes a delivery once, and failures are counted exactly; every
// store runs this suite.
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { LostClaim } from '../../src/webhooks/queue/delivery-queue.ts';
import type { Delivery } from '../../src/webhooks/queue/delivery.ts';
import { backends } from './backends.ts';
import { cell, row, rows } from './definitions.ts';
import {
  attempted,
  claim,
  claimed,
  complete,
  deleteAll,
  delivery,
  discard,
  end,
  ended,
  list,
  publish,
  retry,
  snapshot,
} from './deliveries.ts';

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
  describe.each(ways)('by %s', (_way, completeWith) => {
    it('replaces the delivery and releases the claim', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('a2', 1));
      await claim(store, 1);
      await completeWith(store, claimed(store, 'a2'), attempted(claimed(store, 'a2'), 20));
      const tried = attempted(claimed(store, 'a1'), 5);
      expect(await completeWith(store, claimed(store, 'a1'), tried)).toBe(true);
      expect(await store.deliveries.find('a1')).toEqual(tried);
      expect(await claim(store, 14)).toEqual({ ids: [], nextAt: 15 });
      expect(await claim(store, 15)).toEqual({ ids: ['a1'], nextAt: 30 });
      expect(claimed(store, 'a1')).toEqual(tried);
    });

    it('can end a delivery, which is never claimed again', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('a2', 2));
      await claim(store, 1, 1);
      const done = ended(claimed(store, 'a1'), 3);
      expect(await completeWith(store, claimed(store, 'a1'), done)).toBe(true);
      expect(await store.deliveries.find('a1')).toEqual(done);
      expect((await claim(store, 1e9)).ids).toEqual(['a2']);
      expect(await list(store, 'a')).toEqual(['a2', 'a1']);
    });

    it('collects the attempts of a delivery in order', async () => {
      const store = await open();
      await publish(store, delivery('a1', 0));
      let expected = delivery('a1', 0);
      for (let at = 0; at < 120; at += 10) {
        await claim(store, at);
        expect(claimed(store, 'a1')).toEqual(expected);
        expected = attempted(expected, at);
        await completeWith(store, claimed(store, 'a1'), attempted(claimed(store, 'a1'), at));
      }
      expect(await store.deliveries.find('a1')).toEqual(expected);
    });

    it('does nothing with a delivery that was deleted', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('b1', 9));
      await claim(store, 1);
      await deleteAll(store, 'a');
      const before = await snapshot(store);
      expect(await completeWith(store, claimed(store, 'a1'), ended(delivery('a1', 1), 2))).toBe(false);
      expect(await snapshot(store)).toEqual(before);
      expect(await store.deliveries.find('a1')).toBeUndefined();
    });

    it('does nothing with a delivery that was never claimed, or was released', async () => {
      const store = await open();
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

    it('does nothing with a delivery that was completed, with its old and with its new value', async () => {
      const store = await open();
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

    it('succeeds once if it is called several times at the same moment', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('b1', 1));
      await claim(store, 1);
      const calls = ['a1', 'b1', 'a1', 'a1', 'b1'].map((id, index) =>
        completeWith(store, claimed(store, id), ended(claimed(store, id), index)),
      );
      expect((await Promise.all(calls)).filter((isHeld) => isHeld)).toHaveLength(2);
      expect(store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
    });
  });

  it('runs its rule on a state that has every update before the call', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    await store.update((transaction) => transaction.write(cell, { n: 7 }));
    await store.deliveries.complete(claimed(store, 'a1'), (reader) => ({
      delivery: ended(claimed(store, 'a1'), reader.read(cell).n),
    }));
    expect(await store.deliveries.find('a1')).toMatchObject({ endedAt: 7 });
  });

  it('changes nothing and keeps the claim if its rule throws', async () => {
    const store = await open();
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

  it('can delete the delivery', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1), delivery('a2', 1));
    await claim(store, 1);
    expect(await complete(store, 'a1', { delivery: 'deleted' })).toEqual({
      delivery: 'deleted',
      needsUpdate: false,
    });
    expect(await list(store, 'a')).toEqual(['a2']);
    expect(store.deliveries.pending().count).toBe(1);
    expect(await complete(store, 'a1', { delivery: 'deleted' })).toBeUndefined();
  });

  it('completes many deliveries at the same moment, and leaves out those whose claim was lost', async () => {
    const store = await open();
    const ids = Array.from({ length: 30 }, (_, index) => `${'abc'.charAt(index % 3)}${index}`);
    await publish(store, ...ids.map((id) => delivery(id, 1)));
    await claim(store, 1);
    await deleteAll(store, 'b');
    const outcomes = await Promise.all(ids.map((id) => end(store, id, 2)));
    for (const [index, id] of ids.entries()) expect(outcomes[index] === undefined).toBe(id.startsWith('b'));
    expect(store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
    expect(await list(store, 'a')).toHaveLength(10);
  });

  it('is refused if an update has completed the delivery, the same one or another at the same moment', async () => {
    const store = await open();
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

  it('that needs an update stores nothing and keeps the claim', async () => {
    const store = await open();
    await publish(store, delivery('a1', 1));
    await claim(store, 1);
    const before = await snapshot(store);
    const done = ended(claimed(store, 'a1'), 9, 'delivered');
    const completion = { delivery: done, needsUpdate: true };
    expect(await complete(store, 'a1', completion)).toEqual(completion);
    expect(await snapshot(store)).toEqual(before);
    const held = claimed(store, 'a1');
    await store.update((transaction) => {
      transaction.deliveries.complete(held, done);
    });
    expect(await store.deliveries.find('a1')).toEqual(done);
  });

  describe('that counts a failure', () => {
    const failures = (store: Store, webhookId: string) => store.get(rows, webhookId)?.inner.n;
    const fail = async (store: Store, id: string) => {
      const held = claimed(store, id);
      await store.update((transaction) => {
        const n = transaction.get(rows, held.webhookId)?.inner.n ?? 0;
        transaction.deliveries.complete(held, ended(held, 9, 'failed'));
        transaction.put(rows, row(held.webhookId, n + 1));
      });
    };

    it('changes the failure window of its webhook', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('a2', 1), delivery('b1', 1));
      await claim(store, 1);
      await fail(store, 'a1');
      expect(failures(store, 'a')).toBe(1);
      await fail(store, 'a2');
      expect(failures(store, 'a')).toBe(2);
      expect(failures(store, 'b')).toBeUndefined();
      expect(await store.deliveries.find('a2')).toEqual(ended(delivery('a2', 1), 9, 'failed'));
      expect(store.deliveries.pending().count).toBe(1);
    });

    it('counts failures of the same moment exactly', async () => {
      const store = await open();
      const ids = Array.from({ length: 40 }, (_, index) => `${'ab'.charAt(index % 2)}${index}`);
      await publish(store, ...ids.map((id) => delivery(id, 1)));
      await claim(store, 1);
      await Promise.all(ids.map((id) => fail(store, id)));
      expect([failures(store, 'a'), failures(store, 'b')]).toEqual([20, 20]);
    });

    it('fails alone if its claim was lost', async () => {
      const store = await open();
      const ids = Array.from({ length: 8 }, (_, index) => `a${index}`);
      await publish(store, ...ids.map((id) => delivery(id, 1)));
      await claim(store, 1);
      await store.deliveries.release([claimed(store, 'a3')]);
      const results = await Promise.allSettled(ids.map((id) => fail(store, id)));
      expect(results.map(({ status }) => status)).toEqual(
        ids.map((id) => (id === 'a3' ? 'rejected' : 'fulfilled')),
      );
      expect(failures(store, 'a')).toBe(7);
      expect(store.deliveries.pending().count).toBe(1);
    });

    it('counts nothing if the claim was lost', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('a2', 1));
      await claim(store, 1);
      await store.deliveries.release([claimed(store, 'a1')]);
      await expect(fail(store, 'a1')).rejects.toThrow(LostClaim);
      expect(failures(store, 'a')).toBeUndefined();
      await deleteAll(store, 'a');
      await expect(fail(store, 'a2')).rejects.toThrow(LostClaim);
      expect(failures(store, 'a')).toBeUndefined();
    });

    it('leaves the failure window alone if there is nothing to count', async () => {
      const store = await open();
      await publish(store, delivery('a1', 1), delivery('a2', 1), delivery('a3', 1));
      await claim(store, 1);
      await fail(store, 'a1');
      await end(store, 'a2', 9);
      await retry(store, 'a3', 9);
      await discard(store, 'a', 10);
      expect(failures(store, 'a')).toBe(1);
    });
  });
});
