// Contract of queues, except claims; every store runs this suite.
import { describe, expect, it } from 'vitest';
import { backends } from './backends.ts';
import { tickets, otherTickets, row, rows } from './definitions.ts';
import { amend, claim, claimed, drop, enqueue, ticket, list, snapshot, settle } from './tickets.ts';

describe.each(backends)('a queue of the %s store', (_name, open) => {
  it('is empty at first', async () => {
    const store = await open();
    expect(await snapshot(store)).toMatchObject({ count: 0, oldest: undefined });
    expect(await store.find(tickets, 'a1')).toBeUndefined();
    expect(await store.page(tickets, 'a', 0, 10)).toEqual({ rows: [], total: 0 });
    expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
  });

  it('finds the current row of a key, and not the row of another queue', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 1, 'new'));
    await store.update((transaction) => transaction.enqueue(otherTickets, ticket('b1', 1)));
    expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', 1, 'new'));
    expect(await store.find(tickets, 'b1')).toBeUndefined();
    expect((await claim(store, 1)).ids).toEqual(['a1']);
    expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', 1, 'new'));
    await settle(store, ticket('a1', null, 'done'));
    expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', null, 'done'));
  });

  it('stays unchanged if the update throws', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 1), ticket('a2', 5), ticket('b1', null), ticket('c1', 9));
    expect((await claim(store, 1)).ids).toEqual(['a1']);
    const before = await snapshot(store);
    const failed = store.update((transaction) => {
      transaction.amend(tickets, undefined, (row) => ({ ...row, due: 1 }));
      transaction.enqueue(tickets, ticket('a3', 1));
      transaction.settle(tickets, claimed(store, 'a1'), ticket('a1', 1, 'again'));
      transaction.trim(tickets, 'b', 0);
      transaction.drop(tickets, 'c');
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await snapshot(store)).toEqual(before);
    expect(await store.find(tickets, 'a3')).toBeUndefined();
    expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
  });

  it('shows all changes of a transaction after the commit, and none before', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', null), ticket('c1', 1));
    const during = await store.update((transaction) => {
      transaction.put(rows, row('t'));
      transaction.enqueue(tickets, ticket('a2', null));
      transaction.enqueue(tickets, ticket('b1', 1));
      transaction.enqueue(tickets, ticket('b2', 1));
      transaction.drop(tickets, 'c');
      transaction.trim(tickets, 'a', 1);
      return transaction.waiting(tickets);
    });
    expect(during).toBe(1);
    expect(await list(store, 'a')).toEqual(['a2']);
    expect(await list(store, 'b')).toEqual(['b2', 'b1']);
    expect(await list(store, 'c')).toEqual([]);
    expect(store.get(rows, 't')).toEqual(row('t'));
    expect(store.waiting(tickets)).toBe(2);
  });

  it('counts rows that the previous update enqueued at the same moment', async () => {
    const store = await open();
    const outcomes = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((n) =>
        store.update((transaction) => {
          if (transaction.waiting(tickets) >= 4) return 'full';
          transaction.enqueue(tickets, ticket(`a${n}`, 1));
          return [transaction.waiting(tickets), transaction.waitingBytes(tickets)];
        }),
      ),
    );
    expect(outcomes).toEqual([[0, 0], [1, 2], [2, 5], [3, 9], 'full', 'full']);
    expect([store.waiting(tickets), store.waitingBytes(tickets)]).toEqual([4, 14]);
  });

  describe('amend', () => {
    it.each([
      ['one owner', 'a', ['a3', 'a4']],
      ['all owners', undefined, ['a3', 'a4', 'b1']],
    ])('changes the pending, unclaimed rows of %s', async (_who, owner, expected) => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', null), ticket('a3', 5), ticket('a4', 6));
      await enqueue(store, ticket('b1', 7), ticket('b2', null));
      await claim(store, 1);
      const seen: string[] = [];
      await amend(store, owner, (row) => {
        seen.push(row.id);
        return { ...row, note: 'amended' };
      });
      expect([...new Set(seen)].sort()).toEqual(expected);
      const { pages } = await snapshot(store);
      const amended = pages.flatMap(({ rows }) => rows).filter(({ note }) => note === 'amended');
      expect(amended.map(({ id }) => id).sort()).toEqual(expected);
    });

    it('can change the due time', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 10), ticket('a2', 20), ticket('a3', 30), ticket('a4', 40));
      const due: Record<string, number> = { a1: 50, a2: 5, a3: 60 };
      await amend(store, 'a', (row) => ({ ...row, due: due[row.id] ?? row.due }));
      expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
      expect(await claim(store, 30)).toEqual({ ids: ['a2'], nextAt: 40 });
      expect(await claim(store, 100)).toEqual({ ids: ['a4', 'a1', 'a3'], nextAt: undefined });
      expect(await claim(store, 100)).toEqual({ ids: [], nextAt: undefined });
    });

    it('can finish rows', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', 2), ticket('b1', 3));
      await amend(store, 'a', (row) => ({ ...row, due: null }));
      expect(await snapshot(store)).toMatchObject({ count: 1, oldest: ticket('b1', 3) });
      expect((await claim(store, 9)).ids).toEqual(['b1']);
      await store.update((transaction) => transaction.trim(tickets, 'a', 1));
      expect(await list(store, 'a')).toHaveLength(1);
    });

    it('changes a row again after it was settled', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1));
      await claim(store, 1);
      await settle(store, ticket('a1', 10, 'tried'));
      await amend(store, undefined, (row) => ({ ...row, due: 5 }));
      expect(await store.find(tickets, 'a1')).toEqual(ticket('a1', 5, 'tried'));
      expect((await claim(store, 5)).ids).toEqual(['a1']);
    });
  });

  describe('thin, trim and drop', () => {
    it('trim removes the rows of an owner that finished first, and no pending row', async () => {
      const store = await open();
      await enqueue(store, ...['a1', 'a2', 'a3', 'a4', 'a5', 'b1'].map((id) => ticket(id, 1)));
      await claim(store, 1);
      for (const id of ['a3', 'a1', 'b1', 'a4']) await settle(store, ticket(id, null));
      await settle(store, ticket('a5', 5));
      const trim = (keep: number) => store.update((transaction) => transaction.trim(tickets, 'a', keep));
      await trim(3);
      expect(await list(store, 'a')).toEqual(['a5', 'a4', 'a3', 'a2', 'a1']);
      await trim(2);
      expect(await list(store, 'a')).toEqual(['a5', 'a4', 'a2', 'a1']);
      expect(await store.find(tickets, 'a3')).toBeUndefined();
      await trim(0);
      expect(await list(store, 'a')).toEqual(['a5', 'a2']);
      expect(await list(store, 'b')).toEqual(['b1']);
      expect(store.waiting(tickets)).toBe(2);
      // One of the two is still claimed.
      expect((await claim(store, 9)).ids).toEqual(['a5']);
    });

    it('thin removes the oldest pending rows, but no urgent, claimed or finished row', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', 5), ticket('a3', 5, 'urgent'), ticket('a4', null));
      await enqueue(store, ticket('a5', 9), ticket('a6', 7), ticket('b1', 5));
      expect((await claim(store, 1)).ids).toEqual(['a1']);
      const thin = (keep: number) => store.update((transaction) => transaction.thin(tickets, 'a', keep));
      await thin(3);
      expect(await list(store, 'a')).toEqual(['a6', 'a5', 'a4', 'a3', 'a2', 'a1']);
      await thin(1);
      expect(await list(store, 'a')).toEqual(['a6', 'a4', 'a3', 'a1']);
      expect(store.waiting(tickets)).toBe(4);
      await thin(0);
      expect(await list(store, 'a')).toEqual(['a4', 'a3', 'a1']);
      expect(await list(store, 'b')).toEqual(['b1']);
      expect((await claim(store, 9)).ids.sort()).toEqual(['a3', 'b1']);
    });

    it('trim removes dull rows before others, each in the order they finished', async () => {
      const store = await open();
      const ids = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'];
      await enqueue(store, ...ids.map((id) => ticket(id, 1)), ticket('a7', 9, 'dull'), ticket('a8', null));
      await enqueue(store, ticket('b1', null, 'dull'));
      await claim(store, 1);
      // The rows finish in this order; a8 finished before them.
      for (const id of ['a2', 'a5', 'a1', 'a3', 'a6'])
        await settle(store, ticket(id, null, ['a5', 'a3'].includes(id) ? 'dull' : ''));
      // a4 is claimed and a7 is pending: neither is finished.
      const removed: string[][] = [];
      for (let keep = 5; keep >= 0; keep -= 1) {
        const before = await list(store, 'a');
        await store.update((transaction) => transaction.trim(tickets, 'a', keep));
        const after = await list(store, 'a');
        removed.push(before.filter((id) => !after.includes(id)));
      }
      expect(removed).toEqual([['a5'], ['a3'], ['a8'], ['a2'], ['a1'], ['a6']]);
      expect(await list(store, 'a')).toEqual(['a7', 'a4']);
      expect(await list(store, 'b')).toEqual(['b1']);
    });

    it('drop removes all rows of an owner, also claimed and finished ones', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', 2), ticket('a3', null), ticket('b1', 5));
      await claim(store, 1);
      await drop(store, 'a');
      expect(await list(store, 'a')).toEqual([]);
      for (const id of ['a1', 'a2', 'a3']) expect(await store.find(tickets, id)).toBeUndefined();
      expect(await snapshot(store)).toMatchObject({ count: 1, oldest: ticket('b1', 5) });
      expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
      // The owner can get new rows.
      await enqueue(store, ticket('a4', 1));
      expect((await claim(store, 4)).ids).toEqual(['a4']);
      expect(await list(store, 'a')).toEqual(['a4']);
    });
  });

  it('returns the rows of an owner by page, newest first', async () => {
    const store = await open();
    for (const n of [1, 2, 3, 4, 5]) await enqueue(store, ticket(`a${n}`, 10 - n), ticket(`b${n}`, n));
    await claim(store, 6);
    await settle(store, ticket('a4', null, 'done'), ticket('a5', 99, 'tried'));
    const page = async (start: number, num: number) => {
      const { rows, total } = await store.page(tickets, 'a', start, num);
      return [...rows.map(({ id }) => id), total];
    };
    expect(await page(0, 10)).toEqual(['a5', 'a4', 'a3', 'a2', 'a1', 5]);
    expect(await page(0, 2)).toEqual(['a5', 'a4', 5]);
    expect(await page(2, 2)).toEqual(['a3', 'a2', 5]);
    expect(await page(4, 2)).toEqual(['a1', 5]);
    expect(await page(5, 2)).toEqual([5]);
    const { rows } = await store.page(tickets, 'a', 0, 2);
    expect(rows).toEqual([ticket('a5', 99, 'tried'), ticket('a4', null, 'done')]);
  });

  it('changes its version with every update that touches it, and with no other', async () => {
    const store = await open();
    const known = new Set([store.version(tickets)]);
    const other = store.version(otherTickets);
    const changes: (() => Promise<unknown>)[] = [
      () => enqueue(store, ticket('a1', 1), ticket('a2', 5)),
      () => settle(store, ticket('a1', null)),
      () => amend(store, 'a', (row) => ({ ...row, due: 6 })),
      () => store.update((transaction) => transaction.trim(tickets, 'a', 0)),
      () => drop(store, 'a'),
    ];
    for (const [index, change] of changes.entries()) {
      await change();
      known.add(store.version(tickets));
      expect(known.size).toBe(index + 2);
      await claim(store, 1);
    }
    const last = store.version(tickets);
    await store.update((transaction) => transaction.put(rows, row('t')));
    expect(store.version(tickets)).toBe(last);
    expect(store.version(otherTickets)).toBe(other);
  });
});
