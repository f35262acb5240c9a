// Contract of queues whose rows contain an append-only list; every store runs this suite.
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { backends, openElsewhere } from './backends.ts';
import { type Try, type Visit, visits } from './definitions.ts';
import { unlimited } from './tickets.ts';

const visit = (id: string, due: number | null, tries: readonly Try[] = []): Visit => ({
  id,
  host: id.charAt(0),
  due,
  tries,
});
const tries = (...numbers: number[]): Try[] =>
  numbers.map((n) => ({ n, note: n % 2 === 0 ? null : `try "${n}"` }));

const enqueue = (store: Store, ...rows: Visit[]) =>
  store.update((transaction) => rows.forEach((row) => transaction.enqueue(visits, row)));
const claim = async (store: Store, at: number) =>
  (await store.claim(visits, { at, most: 100, ...unlimited })).rows;
const page = async (store: Store, owner: string) => (await store.page(visits, owner, 0, 100)).rows;

/** Claims the due rows and settles each with the result of `change`. */
async function settle(store: Store, at: number, change: (row: Visit) => Visit) {
  const rows = await claim(store, at);
  await store.update((transaction) => rows.forEach((row) => transaction.settle(visits, row, change(row))));
  return rows;
}

const add = (row: Visit, ...added: Try[]): Visit => ({ ...row, tries: [...row.tries, ...added] });

describe.each(backends)('a list in a queue of the %s store', (_name, open) => {
  it('is returned completely and in order by find, page and claim', async () => {
    const store = await open();
    await enqueue(store, visit('a1', 1), visit('a2', 1, tries(1, 2)), visit('b1', 9, tries(5)));
    expect(await store.find(visits, 'a1')).toEqual(visit('a1', 1));
    expect(await store.find(visits, 'a2')).toEqual(visit('a2', 1, tries(1, 2)));
    expect(await page(store, 'a')).toEqual([visit('a2', 1, tries(1, 2)), visit('a1', 1)]);
    expect(await store.oldest(visits)).toEqual(visit('a1', 1));
    expect(await claim(store, 9)).toHaveLength(3);
    const elsewhere = await openElsewhere(store);
    expect(await elsewhere.find(visits, 'a2')).toEqual(visit('a2', 1, tries(1, 2)));
    expect(await page(elsewhere, 'b')).toEqual([visit('b1', 9, tries(5))]);
  });

  it('grows with every settled claim', async () => {
    const store = await open();
    await enqueue(store, visit('a1', 1), visit('a2', 1, tries(100)), visit('b1', 1));
    const numbers = Array.from({ length: 12 }, (_, index) => index + 1);
    for (const n of numbers) {
      const before = await settle(store, n, (row) => ({ ...add(row, ...tries(n)), due: n + 1 }));
      expect(before.map(({ id }) => id).sort()).toEqual(['a1', 'a2', 'b1']);
      for (const row of before) {
        const first = row.id === 'a2' ? [100] : [];
        expect(row.tries).toEqual(tries(...first, ...numbers.slice(0, n - 1)));
      }
    }
    expect(await store.find(visits, 'b1')).toEqual(visit('b1', 13, tries(...numbers)));
    const elsewhere = await openElsewhere(store);
    expect(await page(elsewhere, 'a')).toEqual([
      visit('a2', 13, tries(100, ...numbers)),
      visit('a1', 13, tries(...numbers)),
    ]);
  });

  it('can grow by no entry and by several entries at once', async () => {
    const store = await open();
    await enqueue(store, visit('a1', 1, tries(1)));
    await settle(store, 1, (row) => row);
    expect(await store.find(visits, 'a1')).toEqual(visit('a1', 1, tries(1)));
    await settle(store, 1, (row) => add(row, ...tries(2, 3, 4)));
    expect(await store.find(visits, 'a1')).toEqual(visit('a1', 1, tries(1, 2, 3, 4)));
    await settle(store, 1, (row) => ({ ...add(row, ...tries(5)), due: null }));
    expect(await store.find(visits, 'a1')).toEqual(visit('a1', null, tries(1, 2, 3, 4, 5)));
  });

  it('stays, and can grow, when the row is amended', async () => {
    const store = await open();
    await enqueue(store, visit('a1', 1, tries(1)), visit('a2', 1), visit('b1', 1, tries(2)));
    await store.update((transaction) => {
      transaction.amend(visits, 'a', (row) => ({ ...add(row, ...tries(7, 8)), due: 5 }));
      transaction.amend(visits, 'b', (row) => ({ ...row, due: 6 }));
    });
    expect(await page(store, 'a')).toEqual([visit('a2', 5, tries(7, 8)), visit('a1', 5, tries(1, 7, 8))]);
    expect(await claim(store, 6)).toContainEqual(visit('b1', 6, tries(2)));
  });

  it('can determine whether a row is urgent or dull', async () => {
    const store = await open();
    await enqueue(store, visit('a1', 1), visit('a2', 2, tries(1)), visit('a3', 3));
    expect((await claim(store, 9)).map(({ id }) => id)).toEqual(['a2', 'a1', 'a3']);
    await enqueue(store, visit('b1', null, tries(1)), visit('b2', null));
    await store.update((transaction) => transaction.trim(visits, 'b', 1));
    expect(await page(store, 'b')).toEqual([visit('b1', null, tries(1))]);
  });

  it('stays unchanged if the update throws', async () => {
    const store = await open();
    await enqueue(store, visit('a1', 1, tries(1)));
    const [held] = await claim(store, 1);
    const failed = store.update((transaction) => {
      if (held) transaction.settle(visits, held, add(held, ...tries(2)));
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await store.find(visits, 'a1')).toEqual(visit('a1', 1, tries(1)));
  });

  it('is removed with its row', async () => {
    const store = await open();
    await enqueue(store, visit('a1', 1, tries(1)), visit('a2', null, tries(2)), visit('b1', 1, tries(3)));
    await store.update((transaction) => {
      transaction.drop(visits, 'a');
      transaction.trim(visits, 'b', 0);
    });
    expect(await page(store, 'a')).toEqual([]);
    expect(await page(store, 'b')).toEqual([visit('b1', 1, tries(3))]);
  });
});
