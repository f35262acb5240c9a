// What every store promises of its queues; each backend runs this suite.
import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import type { Queue, Table } from '../../src/store/transaction.ts';

type Errand = { readonly id: string; readonly due: number | null; readonly note: string };

// The owner is the first letter of the id.
const errands: Queue<Errand> = {
  name: 'errands',
  keyOf: ({ id }) => id,
  ownerOf: ({ id }) => id.charAt(0),
  dueAt: ({ due }) => due,
};
const others: Queue<Errand> = { ...errands, name: 'other errands' };
const table: Table<Errand> = { name: 'table', keyOf: ({ id }) => id };
const errand = (id: string, due: number | null, note = ''): Errand => ({ id, due, note });

const enqueue = (store: Store, ...rows: Errand[]) =>
  store.update((transaction) => rows.forEach((row) => transaction.enqueue(errands, row)));
const settle = (store: Store, ...rows: Errand[]) =>
  store.update((transaction) => rows.forEach((row) => transaction.settle(errands, row)));

/** The ids that are handed out, and when there will be more. */
async function claim(store: Store, at: number, most = 100, reserve: (row: Errand) => boolean = () => true) {
  const { rows, nextAt } = await store.claim(errands, { at, most, reserve });
  return { ids: rows.map(({ id }) => id), nextAt };
}

async function list(store: Store, owner: string) {
  const { rows, total } = await store.page(errands, owner, 0, 100);
  expect(total).toBe(rows.length);
  return rows.map(({ id }) => id);
}

/** All that can be seen without claiming. */
async function look(store: Store) {
  const { count, oldest } = store.waiting(errands);
  const pages = await Promise.all(['a', 'b', 'c'].map((owner) => store.page(errands, owner, 0, 100)));
  return { count, oldest: oldest(), pages, version: store.version(errands) };
}

const backends: [string, () => Store | Promise<Store>][] = [['memory', createMemoryStore]];

describe.each(backends)('a queue of the %s store', (_name, open) => {
  it('is empty at first', async () => {
    const store = await open();
    expect(await look(store)).toMatchObject({ count: 0, oldest: undefined });
    expect(await store.find(errands, 'a1')).toBeUndefined();
    expect(await store.page(errands, 'a', 0, 10)).toEqual({ rows: [], total: 0 });
    expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
    await store.close();
  });

  it('finds a row by its key, as it is now, and not that of another queue', async () => {
    const store = await open();
    await enqueue(store, errand('a1', 1, 'new'));
    await store.update((transaction) => transaction.enqueue(others, errand('b1', 1)));
    expect(await store.find(errands, 'a1')).toEqual(errand('a1', 1, 'new'));
    expect(await store.find(errands, 'b1')).toBeUndefined();
    expect((await claim(store, 1)).ids).toEqual(['a1']);
    expect(await store.find(errands, 'a1')).toEqual(errand('a1', 1, 'new'));
    await settle(store, errand('a1', null, 'done'));
    expect(await store.find(errands, 'a1')).toEqual(errand('a1', null, 'done'));
    await store.close();
  });

  it('does nothing when the change throws', async () => {
    const store = await open();
    await enqueue(store, errand('a1', 1), errand('a2', 5), errand('b1', null), errand('c1', 9));
    expect((await claim(store, 1)).ids).toEqual(['a1']);
    const before = await look(store);
    const failed = store.update((transaction) => {
      transaction.amend(errands, undefined, (row) => ({ ...row, due: 1 }));
      transaction.enqueue(errands, errand('a3', 1));
      transaction.settle(errands, errand('a1', 1, 'again'));
      transaction.trim(errands, 'b', 0);
      transaction.drop(errands, 'c');
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await look(store)).toEqual(before);
    expect(await store.find(errands, 'a3')).toBeUndefined();
    expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
    await store.close();
  });

  it('shows what a transaction does once it has taken effect, all together', async () => {
    const store = await open();
    await enqueue(store, errand('a1', null), errand('c1', 1));
    const during = await store.update((transaction) => {
      transaction.put(table, errand('t', 1));
      transaction.enqueue(errands, errand('a2', null));
      transaction.enqueue(errands, errand('b1', 1));
      transaction.enqueue(errands, errand('b2', 1));
      transaction.drop(errands, 'c');
      transaction.trim(errands, 'a', 1);
      const { count, oldest } = transaction.waiting(errands);
      return { count, oldest: oldest()?.id };
    });
    expect(during).toEqual({ count: 1, oldest: 'c1' });
    expect(await list(store, 'a')).toEqual(['a2']);
    expect(await list(store, 'b')).toEqual(['b2', 'b1']);
    expect(await list(store, 'c')).toEqual([]);
    expect(store.get(table, 't')).toEqual(errand('t', 1));
    expect(store.waiting(errands).count).toBe(2);
    await store.close();
  });

  describe('claim', () => {
    it('takes what is due, the first due first, and tells when there will be more', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 30), errand('a2', 10), errand('a3', 21), errand('a4', 5));
      await enqueue(store, errand('b1', 40), errand('b2', null));
      expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
      expect(await claim(store, 20)).toEqual({ ids: ['a4', 'a2'], nextAt: 21 });
      expect(await claim(store, 21)).toEqual({ ids: ['a3'], nextAt: 30 });
      expect(await claim(store, 30)).toEqual({ ids: ['a1'], nextAt: 40 });
      expect(await claim(store, 50)).toEqual({ ids: ['b1'], nextAt: undefined });
      await store.close();
    });

    it('hands out rows as they are, for nobody to change', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1, 'as it is'));
      const { rows } = await store.claim(errands, { at: 1, most: 1, reserve: () => true });
      expect(rows).toEqual([errand('a1', 1, 'as it is')]);
      const row = rows[0] as { note: string };
      expect(() => (row.note = 'changed')).toThrow(TypeError);
      await store.close();
    });

    it('takes no more than asked, and never a claimed row again', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1), errand('a2', 2), errand('a3', 3), errand('b1', 4));
      expect((await claim(store, 9, 0)).ids).toEqual([]);
      const claims = await Promise.all([1, 2, 3].map((most) => claim(store, 9, most)));
      for (const [index, { ids }] of claims.entries()) expect(ids.length).toBeLessThanOrEqual(index + 1);
      const { ids: rest } = await claim(store, 9);
      const all = [...claims.flatMap(({ ids }) => ids), ...rest];
      expect(all.sort()).toEqual(['a1', 'a2', 'a3', 'b1']);
      expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
      await store.close();
    });

    it('lets owners take turns, however long one of them has waited', async () => {
      const store = await open();
      for (const n of [1, 2, 3, 4, 5]) await enqueue(store, errand(`a${n}`, n));
      await enqueue(store, errand('b1', 8), errand('b2', 9), errand('c1', 7));
      expect((await claim(store, 10, 3)).ids.sort()).toEqual(['a1', 'b1', 'c1']);
      expect((await claim(store, 10, 2)).ids.sort()).toEqual(['a2', 'b2']);
      expect((await claim(store, 10)).ids).toEqual(['a3', 'a4', 'a5']);
      await store.close();
    });

    it('remembers whose turn it is from one claim to the next', async () => {
      const store = await open();
      for (const n of [1, 2, 3]) await enqueue(store, errand(`a${n}`, n), errand(`b${n}`, 3 + n));
      const owners: string[] = [];
      for (let i = 0; i < 6; i += 1) owners.push((await claim(store, 10, 1)).ids[0]?.charAt(0) ?? '');
      expect(['ababab', 'bababa']).toContain(owners.join(''));
      await store.close();
    });

    it('asks for room once for each row it takes, and leaves what is refused', async () => {
      const store = await open();
      await enqueue(
        store,
        errand('a1', 1),
        errand('a2', 2),
        errand('b1', 1),
        errand('b2', 2),
        errand('c1', 1),
      );
      const granted: string[] = [];
      /** Room for one of each owner, and none for c. */
      const reserve = ({ id }: Errand) => {
        const hasRoom = !id.startsWith('c') && !granted.some((other) => other.startsWith(id.charAt(0)));
        if (hasRoom) granted.push(id);
        return hasRoom;
      };
      const { ids } = await claim(store, 9, 100, reserve);
      expect(ids.sort()).toEqual(['a1', 'b1']);
      expect(granted.sort()).toEqual(['a1', 'b1']);
      expect((await claim(store, 9)).ids.sort()).toEqual(['a2', 'b2', 'c1']);
      await store.close();
    });
  });

  describe('settle', () => {
    it('replaces the row and gives it free', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1), errand('a2', 20));
      await claim(store, 1);
      await settle(store, errand('a1', 10, 'tried'));
      expect(await store.find(errands, 'a1')).toEqual(errand('a1', 10, 'tried'));
      expect(await claim(store, 9)).toEqual({ ids: [], nextAt: 10 });
      expect(await claim(store, 10)).toEqual({ ids: ['a1'], nextAt: 20 });
      await store.close();
    });

    it('gives a row free that has not changed', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1));
      const { rows } = await store.claim(errands, { at: 1, most: 1, reserve: () => true });
      await settle(store, ...rows);
      expect((await claim(store, 1)).ids).toEqual(['a1']);
      expect((await claim(store, 1)).ids).toEqual([]);
      await store.close();
    });

    it('finishes a row, which is then never claimed', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1), errand('a2', null));
      await claim(store, 1);
      await settle(store, errand('a1', null, 'done'));
      expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
      expect(await list(store, 'a')).toEqual(['a2', 'a1']);
      await store.close();
    });

    it('does nothing to a row that was dropped', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1), errand('a2', 1));
      await claim(store, 1);
      await store.update((transaction) => transaction.drop(errands, 'a'));
      await settle(store, errand('a1', 1, 'again'), errand('a2', null, 'done'));
      expect(await look(store)).toMatchObject({ count: 0, oldest: undefined });
      expect(await store.find(errands, 'a1')).toBeUndefined();
      expect(await store.find(errands, 'a2')).toBeUndefined();
      expect(await list(store, 'a')).toEqual([]);
      expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
      await store.close();
    });
  });

  describe('amend', () => {
    const amend = (store: Store, owner: string | undefined, change: (row: Errand) => Errand) =>
      store.update((transaction) => transaction.amend(errands, owner, change));

    it.each([
      ['one owner', 'a', ['a3', 'a4']],
      ['all', undefined, ['a3', 'a4', 'b1']],
    ])('changes the waiting rows of %s that nobody has claimed', async (_who, owner, expected) => {
      const store = await open();
      await enqueue(store, errand('a1', 1), errand('a2', null), errand('a3', 5), errand('a4', 6));
      await enqueue(store, errand('b1', 7), errand('b2', null));
      await claim(store, 1);
      const seen: string[] = [];
      await amend(store, owner, (row) => {
        seen.push(row.id);
        return { ...row, note: 'amended' };
      });
      expect([...new Set(seen)].sort()).toEqual(expected);
      const { pages } = await look(store);
      const amended = pages.flatMap(({ rows }) => rows).filter(({ note }) => note === 'amended');
      expect(amended.map(({ id }) => id).sort()).toEqual(expected);
      await store.close();
    });

    it('changes when a row is due', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 10), errand('a2', 20), errand('a3', 30), errand('a4', 40));
      const due: Record<string, number> = { a1: 50, a2: 5, a3: 60 };
      await amend(store, 'a', (row) => ({ ...row, due: due[row.id] ?? row.due }));
      expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
      expect(await claim(store, 30)).toEqual({ ids: ['a2'], nextAt: 40 });
      expect(await claim(store, 100)).toEqual({ ids: ['a4', 'a1', 'a3'], nextAt: undefined });
      expect(await claim(store, 100)).toEqual({ ids: [], nextAt: undefined });
      await store.close();
    });

    it('may finish rows', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1), errand('a2', 2), errand('b1', 3));
      await amend(store, 'a', (row) => ({ ...row, due: null }));
      expect(await look(store)).toMatchObject({ count: 1, oldest: errand('b1', 3) });
      expect((await claim(store, 9)).ids).toEqual(['b1']);
      await store.update((transaction) => transaction.trim(errands, 'a', 1));
      expect(await list(store, 'a')).toHaveLength(1);
      await store.close();
    });

    it('holds for a row again once that is settled', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1));
      await claim(store, 1);
      await settle(store, errand('a1', 10, 'tried'));
      await amend(store, undefined, (row) => ({ ...row, due: 5 }));
      expect(await store.find(errands, 'a1')).toEqual(errand('a1', 5, 'tried'));
      expect((await claim(store, 5)).ids).toEqual(['a1']);
      await store.close();
    });
  });

  describe('trim and drop', () => {
    it('trim removes the first finished of one owner, and no row that waits', async () => {
      const store = await open();
      await enqueue(store, ...['a1', 'a2', 'a3', 'a4', 'a5', 'b1'].map((id) => errand(id, 1)));
      await claim(store, 1);
      for (const id of ['a3', 'a1', 'b1', 'a4']) await settle(store, errand(id, null));
      await settle(store, errand('a5', 5));
      const trim = (keep: number) => store.update((transaction) => transaction.trim(errands, 'a', keep));
      await trim(3);
      expect(await list(store, 'a')).toEqual(['a5', 'a4', 'a3', 'a2', 'a1']);
      await trim(2);
      expect(await list(store, 'a')).toEqual(['a5', 'a4', 'a2', 'a1']);
      expect(await store.find(errands, 'a3')).toBeUndefined();
      await trim(0);
      expect(await list(store, 'a')).toEqual(['a5', 'a2']);
      expect(await list(store, 'b')).toEqual(['b1']);
      expect(store.waiting(errands).count).toBe(2);
      // One of the two is still claimed.
      expect((await claim(store, 9)).ids).toEqual(['a5']);
      await store.close();
    });

    it('drop removes all rows of an owner, claimed and finished ones too', async () => {
      const store = await open();
      await enqueue(store, errand('a1', 1), errand('a2', 2), errand('a3', null), errand('b1', 5));
      await claim(store, 1);
      await store.update((transaction) => transaction.drop(errands, 'a'));
      expect(await list(store, 'a')).toEqual([]);
      for (const id of ['a1', 'a2', 'a3']) expect(await store.find(errands, id)).toBeUndefined();
      expect(await look(store)).toMatchObject({ count: 1, oldest: errand('b1', 5) });
      expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
      // The owner may come again.
      await enqueue(store, errand('a4', 1));
      expect((await claim(store, 4)).ids).toEqual(['a4']);
      expect(await list(store, 'a')).toEqual(['a4']);
      await store.close();
    });
  });

  it('pages through the rows of an owner, newest first', async () => {
    const store = await open();
    for (const n of [1, 2, 3, 4, 5]) await enqueue(store, errand(`a${n}`, 10 - n), errand(`b${n}`, n));
    await claim(store, 6);
    await settle(store, errand('a4', null, 'done'), errand('a5', 99, 'tried'));
    const page = async (start: number, num: number) => {
      const { rows, total } = await store.page(errands, 'a', start, num);
      return [...rows.map(({ id }) => id), total];
    };
    expect(await page(0, 10)).toEqual(['a5', 'a4', 'a3', 'a2', 'a1', 5]);
    expect(await page(0, 2)).toEqual(['a5', 'a4', 5]);
    expect(await page(2, 2)).toEqual(['a3', 'a2', 5]);
    expect(await page(4, 2)).toEqual(['a1', 5]);
    expect(await page(5, 2)).toEqual([5]);
    const { rows } = await store.page(errands, 'a', 0, 2);
    expect(rows).toEqual([errand('a5', 99, 'tried'), errand('a4', null, 'done')]);
    await store.close();
  });

  it('counts the rows that are not finished, claimed ones too, and knows the oldest', async () => {
    const store = await open();
    const waiting = () => {
      const { count, oldest } = store.waiting(errands);
      return [count, oldest()?.id];
    };
    await enqueue(store, errand('b1', 9), errand('a1', 1), errand('a2', 1), errand('a3', null));
    expect(waiting()).toEqual([3, 'b1']);
    await claim(store, 9);
    expect(waiting()).toEqual([3, 'b1']);
    await settle(store, errand('b1', 20), errand('a1', null));
    expect(waiting()).toEqual([2, 'b1']);
    await claim(store, 20);
    await settle(store, errand('b1', null));
    expect(waiting()).toEqual([1, 'a2']);
    await settle(store, errand('a2', null));
    expect(waiting()).toEqual([0, undefined]);
    expect(store.waiting(others).count).toBe(0);
    await store.close();
  });

  it('tells by a version what an update touched', async () => {
    const store = await open();
    const known = new Set([store.version(errands)]);
    const other = store.version(others);
    const changes: (() => Promise<unknown>)[] = [
      () => enqueue(store, errand('a1', 1), errand('a2', 5)),
      () => settle(store, errand('a1', null)),
      () => store.update((transaction) => transaction.amend(errands, 'a', (row) => ({ ...row, due: 6 }))),
      () => store.update((transaction) => transaction.trim(errands, 'a', 0)),
      () => store.update((transaction) => transaction.drop(errands, 'a')),
    ];
    for (const [index, change] of changes.entries()) {
      await change();
      known.add(store.version(errands));
      expect(known.size).toBe(index + 2);
      await claim(store, 1);
    }
    const last = store.version(errands);
    await store.update((transaction) => transaction.put(table, errand('t', 1)));
    expect(store.version(errands)).toBe(last);
    expect(store.version(others)).toBe(other);
    await store.close();
  });
});
