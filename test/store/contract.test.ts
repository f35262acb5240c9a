// Contract of tables, cells and logs; every store runs this suite.
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { backends, openElsewhere } from './backends.ts';
import { cell, log, others, row, rows } from './definitions.ts';

describe.each(backends)('the %s store', (_name, open) => {
  it('stores rows by key, and cells with an initial value', async () => {
    const store = await open();
    expect(store.get(rows, 'a')).toBeUndefined();
    expect(store.read(cell)).toEqual({ n: 0 });
    await store.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.put(rows, row('a', 2));
      transaction.put(rows, row('b'));
      transaction.write(cell, { n: 5 });
    });
    expect(store.get(rows, 'a')).toEqual(row('a', 2));
    expect([...store.all(rows)].map(({ id }) => id).sort()).toEqual(['a', 'b']);
    expect(store.read(cell)).toEqual({ n: 5 });
    await store.update((transaction) => transaction.remove(rows, 'a'));
    expect(store.get(rows, 'a')).toBeUndefined();
  });

  it('lets a transaction see its own writes', async () => {
    const store = await open();
    await store.update((transaction) => transaction.put(rows, row('a')));
    const seen = await store.update((transaction) => {
      transaction.put(rows, row('b'));
      transaction.remove(rows, 'a');
      transaction.write(cell, { n: 9 });
      return {
        a: transaction.get(rows, 'a'),
        b: transaction.get(rows, 'b'),
        all: [...transaction.all(rows)].map(({ id }) => id),
        cell: transaction.read(cell),
      };
    });
    expect(seen).toEqual({ a: undefined, b: row('b'), all: ['b'], cell: { n: 9 } });
  });

  it('counts the rows and the bytes of a table, in a transaction with its own writes', async () => {
    const store = await open();
    const sizeIn = (reader: Pick<Store, 'count' | 'bytes'>) => [reader.count(rows), reader.bytes(rows)];
    expect(sizeIn(store)).toEqual([0, 0]);
    await store.update((transaction) => {
      transaction.put(rows, row('a', 5));
      transaction.put(rows, row('b', 7));
      expect(sizeIn(transaction)).toEqual([2, 12]);
    });
    await store.update((transaction) => {
      transaction.put(rows, row('a', 1));
      expect(sizeIn(transaction)).toEqual([2, 8]);
      transaction.remove(rows, 'b');
      transaction.remove(rows, 'never there');
      transaction.put(rows, row('c', 2));
      transaction.remove(rows, 'c');
      expect(sizeIn(transaction)).toEqual([1, 1]);
    });
    expect(sizeIn(store)).toEqual([1, 1]);
    expect(sizeIn(await openElsewhere(store))).toEqual([1, 1]);
  });

  it('changes nothing if the update throws', async () => {
    const store = await open();
    await store.update((transaction) => transaction.put(rows, row('a', 1)));
    const failed = store.update((transaction) => {
      transaction.put(rows, row('a', 2));
      transaction.put(others, row('x'));
      transaction.write(cell, { n: 1 });
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(store.get(rows, 'a')).toEqual(row('a', 1));
    expect([...store.all(others)]).toEqual([]);
    expect(store.read(cell)).toEqual({ n: 0 });
  });

  it('commits updates although others fail at the same moment', async () => {
    const store = await open();
    const results = await Promise.allSettled(
      Array.from({ length: 9 }, (_, n) =>
        store.update((transaction) => {
          transaction.append(log, 'a', [{ n }]);
          transaction.write(cell, { n: transaction.read(cell).n + 1 });
          if (n % 3 === 1) throw new Error('no');
          return n;
        }),
      ),
    );
    const done = results.map((result) => (result.status === 'fulfilled' ? result.value : 'no'));
    expect(done).toEqual([0, 'no', 2, 3, 'no', 5, 6, 'no', 8]);
    expect(store.entries(log, 'a').map(({ n }) => n)).toEqual([0, 2, 3, 5, 6, 8]);
    expect(store.read(cell)).toEqual({ n: 6 });
  });

  it('runs updates one after another', async () => {
    const store = await open();
    await Promise.all(
      Array.from({ length: 50 }, () =>
        store.update((transaction) => transaction.write(cell, { n: transaction.read(cell).n + 1 })),
      ),
    );
    expect(store.read(cell)).toEqual({ n: 50 });
  });

  it('changes the version of the tables and cells that an update touched, and of no others', async () => {
    const store = await open();
    const before = [store.version(rows), store.version(others), store.version(cell)];
    await store.update((transaction) => transaction.put(rows, row('a')));
    expect(store.version(rows)).not.toBe(before[0]);
    expect([store.version(others), store.version(cell)]).toEqual(before.slice(1));
  });

  it('appends to the log of each key, all entries of an update or none', async () => {
    const store = await open();
    await store.update((transaction) => transaction.append(log, 'a', [{ n: 1 }, { n: 2 }]));
    await store.update((transaction) => {
      transaction.append(log, 'a', [{ n: 3 }]);
      transaction.append(log, 'a', [{ n: 4 }]);
      transaction.append(log, 'b', [{ n: 5 }]);
    });
    const failed = store.update((transaction) => {
      transaction.append(log, 'a', [{ n: 6 }]);
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(store.entries(log, 'a').map(({ n }) => n)).toEqual([1, 2, 3, 4]);
    expect(store.entries(log, 'b').map(({ n }) => n)).toEqual([5]);
    expect(store.entries(log, 'c')).toEqual([]);
  });

  it('shows appended entries after the commit, also to the next update', async () => {
    const store = await open();
    const seen = await Promise.all(
      Array.from({ length: 50 }, () =>
        store.update((transaction) => {
          const n = transaction.entries(log, 'a').length;
          transaction.append(log, 'a', [{ n }]);
          return [n, transaction.entries(log, 'a').length];
        }),
      ),
    );
    expect(seen).toEqual(Array.from({ length: 50 }, (_, n) => [n, n]));
    expect(store.entries(log, 'a').map(({ n }) => n)).toEqual(seen.map(([n]) => n));
  });

  it('calls a listener after every update until it unsubscribes', async () => {
    const store = await open();
    let calls = 0;
    const stop = store.onUpdate(() => (calls += 1));
    await store.update((transaction) => transaction.put(rows, row('a')));
    expect(calls).toBeGreaterThan(0);
    const before = calls;
    await store.update((transaction) => transaction.put(rows, row('b')));
    expect(calls).toBeGreaterThan(before);
    stop();
    const last = calls;
    await store.update((transaction) => transaction.put(rows, row('c')));
    expect(calls).toBe(last);
  });

  it('returns frozen values', async () => {
    const store = await open();
    const given = { id: 'a', inner: { n: 1 } };
    await store.update((transaction) => transaction.put(rows, given));
    const kept = store.get(rows, 'a') as { inner: { n: number } };
    expect(() => (kept.inner.n = 2)).toThrow(TypeError);
  });

  it('reports its own process as alive, and unknown processes as not alive', async () => {
    const store = await open();
    expect(store.isAlive(store.self)).toBe(true);
    expect(store.isAlive('unknown')).toBe(false);
    expect(store.isAlive('')).toBe(false);
    const seen = await store.update((transaction) => [store.self, 'unknown'].map(transaction.isAlive));
    expect(seen).toEqual([true, false]);
  });

  it('reports no problems while it works', async () => {
    const store = await open();
    expect(store.problems()).toEqual([]);
  });
});
