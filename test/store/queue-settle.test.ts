// Contract of `settle`: the holder of a claim settles a row once, and the row counts until it is finished; every store runs this suite.
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { LostClaim } from '../../src/store/transaction.ts';
import { backends } from './backends.ts';
import { type Ticket, cell, tickets, log, otherTickets, row, rows } from './definitions.ts';
import { claim, claimed, drop, enqueue, ticket, unlimited, list, snapshot, settle } from './tickets.ts';

const replace = (store: Store, held: Ticket, by: Ticket) =>
  store.update((transaction) => transaction.settle(tickets, held, by));

describe.each(backends)('settle in a queue of the %s store', (_name, open) => {
  it('replaces the row and releases the claim', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 1), ticket('a2', 20));
    await claim(store, 1);
    await settle(store, ticket('a1', 10, 'tried'));
    expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', 10, 'tried'));
    expect(await claim(store, 9)).toEqual({ ids: [], nextAt: 10 });
    expect(await claim(store, 10)).toEqual({ ids: ['a1'], nextAt: 20 });
  });

  it('releases the claim of an unchanged row', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 1));
    await claim(store, 1);
    await settle(store, claimed(store, 'a1'));
    expect((await claim(store, 1)).ids).toEqual(['a1']);
    expect((await claim(store, 1)).ids).toEqual([]);
  });

  it('can finish a row, which is never claimed again', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 1), ticket('a2', null));
    await claim(store, 1);
    await settle(store, ticket('a1', null, 'done'));
    expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
    expect(await list(store, 'a')).toEqual(['a2', 'a1']);
  });

  describe('without a claim', () => {
    it('refuses a row that was dropped, and rolls the whole update back', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('b1', 1), ticket('c1', null));
      await claim(store, 1);
      await drop(store, 'a');
      const before = await snapshot(store);
      const lost = store.update((transaction) => {
        transaction.put(rows, row('r'));
        transaction.write(cell, { n: 1 });
        transaction.append(log, 'l', [{ n: 1 }]);
        transaction.enqueue(tickets, ticket('b2', 1));
        transaction.enqueue(otherTickets, ticket('b3', 1));
        transaction.settle(tickets, claimed(store, 'b1'), ticket('b1', null, 'done'));
        transaction.settle(tickets, claimed(store, 'a1'), ticket('a1', 1, 'again'));
        transaction.trim(tickets, 'c', 0);
      });
      await expect(lost).rejects.toThrow(LostClaim);
      expect(await snapshot(store)).toEqual(before);
      expect(store.get(rows, 'r')).toBeUndefined();
      expect(store.read(cell)).toEqual({ n: 0 });
      expect(store.entries(log, 'l')).toEqual([]);
      expect(store.waiting(otherTickets)).toBe(0);
      expect(await store.find(tickets, 'a1')).toBeUndefined();
      // The other row is still claimed.
      expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
      await settle(store, ticket('b1', null, 'done'));
      expect(await store.find(tickets, 'b1')).toEqual(ticket('b1', null, 'done'));
    });

    it('refuses a row that was never claimed', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', null));
      for (const id of ['a1', 'a2']) {
        const found = (await store.find(tickets, id)) ?? ticket(id, 1);
        await expect(replace(store, found, ticket(id, 9, 'settled'))).rejects.toThrow(LostClaim);
        expect(await store.find(tickets, id)).toEqual(found);
      }
      expect((await claim(store, 1)).ids).toEqual(['a1']);
    });

    it('refuses a row that was settled, both its old and its new value', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1));
      await claim(store, 1);
      const held = claimed(store, 'a1');
      await settle(store, ticket('a1', 2, 'tried'));
      const found = (await store.find(tickets, 'a1')) ?? held;
      await expect(replace(store, held, ticket('a1', null))).rejects.toThrow(LostClaim);
      await expect(replace(store, found, ticket('a1', null))).rejects.toThrow(LostClaim);
      // The old value is refused also while the row is claimed again.
      await claim(store, 2);
      await expect(replace(store, held, ticket('a1', null))).rejects.toThrow(LostClaim);
      expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', 2, 'tried'));
      await settle(store, ticket('a1', null, 'done'));
      expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', null, 'done'));
    });

    it('refuses a row that was dropped or settled at the same moment', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('b1', 1));
      await claim(store, 1);
      const outcomes = await Promise.allSettled([
        drop(store, 'a'),
        settle(store, ticket('b1', 5, 'first')),
        ...['a1', 'b1'].map((id) =>
          store.update((transaction) => {
            transaction.append(log, 'l', [{ n: 1 }]);
            transaction.settle(tickets, claimed(store, id), ticket(id, 6, 'second'));
          }),
        ),
        enqueue(store, ticket('c1', 1)),
      ]);
      expect(
        outcomes.map((outcome) => outcome.status === 'fulfilled' || (outcome.reason as unknown)),
      ).toEqual([true, true, expect.any(LostClaim), expect.any(LostClaim), true]);
      expect(store.entries(log, 'l')).toEqual([]);
      expect(await store.find(tickets, 'a1')).toBeUndefined();
      expect(await store.find(tickets, 'b1')).toEqual(ticket('b1', 5, 'first'));
      expect(store.waiting(tickets)).toBe(2);
    });

    it('throws an error that the update can catch', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1));
      await claim(store, 1);
      await drop(store, 'a');
      const answer = await store.update((transaction) => {
        try {
          transaction.settle(tickets, claimed(store, 'a1'), ticket('a1', null));
          return 'settled';
        } catch (error) {
          if (!(error instanceof LostClaim)) throw error;
          transaction.put(rows, row('lost'));
          return 'lost';
        }
      });
      expect(answer).toBe('lost');
      expect(store.get(rows, 'lost')).toEqual(row('lost'));
    });
  });

  it('returns frozen rows', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 1, 'as it is'));
    const { rows: taken } = await store.claim(tickets, { at: 1, most: 1, ...unlimited });
    expect(taken).toEqual([ticket('a1', 1, 'as it is')]);
    const given = [
      taken[0],
      await store.find(tickets, 'a1'),
      await store.oldest(tickets),
      ...(await store.page(tickets, 'a', 0, 1)).rows,
    ] as { note: string }[];
    expect(given).toHaveLength(4);
    for (const one of given) expect(() => (one.note = 'changed')).toThrow(TypeError);
  });

  it('counts rows until they are finished, and finds the oldest of them', async () => {
    const store = await open();
    const waiting = async () => [store.waiting(tickets), (await store.oldest(tickets))?.id];
    await enqueue(store, ticket('b1', 9), ticket('a1', 1), ticket('a2', 1), ticket('a3', null));
    expect(await waiting()).toEqual([3, 'b1']);
    await claim(store, 9);
    expect(await waiting()).toEqual([3, 'b1']);
    await settle(store, ticket('b1', 20), ticket('a1', null));
    expect(await waiting()).toEqual([2, 'b1']);
    expect(await store.oldest(tickets)).toEqual(ticket('b1', 20));
    await claim(store, 20);
    await settle(store, ticket('b1', null));
    expect(await waiting()).toEqual([1, 'a2']);
    await settle(store, ticket('a2', null));
    expect(await waiting()).toEqual([0, undefined]);
    expect(store.waiting(otherTickets)).toBe(0);
    expect(await store.oldest(otherTickets)).toBeUndefined();
  });
});
