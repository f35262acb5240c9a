// What every store promises; each backend runs this suite.
import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory.ts';
import type { Store } from '../../src/store/store.ts';
import type { Cell, Log, Table } from '../../src/store/transaction.ts';

type Row = { readonly id: string; readonly inner: { readonly n: number } };
const rows: Table<Row> = { name: 'rows', keyOf: (row) => row.id };
const others: Table<Row> = { name: 'others', keyOf: (row) => row.id };
const cell: Cell<{ readonly n: number }> = { name: 'cell', initial: { n: 0 } };
const log: Log<{ readonly n: number }> = { name: 'log' };
const row = (id: string, n = 0): Row => ({ id, inner: { n } });

const backends: [string, () => Store | Promise<Store>][] = [['memory', createMemoryStore]];

describe.each(backends)('the %s store', (_name, open) => {
  it('keeps rows by key and cells with their initial value', async () => {
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
    await store.close();
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
    await store.close();
  });

  it('changes nothing when the change throws', async () => {
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
    await store.close();
  });

  it('runs updates one after another', async () => {
    const store = await open();
    await Promise.all(
      Array.from({ length: 50 }, () =>
        store.update((transaction) => transaction.write(cell, { n: transaction.read(cell).n + 1 })),
      ),
    );
    expect(store.read(cell)).toEqual({ n: 50 });
    await store.close();
  });

  it('tells by a version what an update touched', async () => {
    const store = await open();
    const before = [store.version(rows), store.version(others), store.version(cell)];
    await store.update((transaction) => transaction.put(rows, row('a')));
    expect(store.version(rows)).not.toBe(before[0]);
    expect([store.version(others), store.version(cell)]).toEqual(before.slice(1));
    await store.close();
  });

  it('appends to lists that only grow, each under its key, all or nothing', async () => {
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
    await store.close();
  });

  it('calls back after every update until told to stop', async () => {
    const store = await open();
    let calls = 0;
    const stop = store.onUpdate(() => (calls += 1));
    await store.update((transaction) => transaction.put(rows, row('a')));
    expect(calls).toBe(1);
    stop();
    await store.update((transaction) => transaction.put(rows, row('b')));
    expect(calls).toBe(1);
    await store.close();
  });

  it('hands out values that nobody can change', async () => {
    const store = await open();
    const given = { id: 'a', inner: { n: 1 } };
    await store.update((transaction) => transaction.put(rows, given));
    const kept = store.get(rows, 'a') as { inner: { n: number } };
    expect(() => (kept.inner.n = 2)).toThrow(TypeError);
    await store.close();
  });
});
