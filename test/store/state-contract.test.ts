// Contract of the replicated state and of updates; every store runs this suite.
import { describe, expect } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import type { Transaction } from '../../src/store/transaction.ts';
import { LostClaim } from '../../src/webhooks/queue/delivery-queue.ts';
import { backends, onStore, openElsewhere } from './backends.ts';
import { cell, job, others, plan, row, rows } from './definitions.ts';
import { claim, claimed, deleteAll, delivery, ended, enqueue, list, snapshot } from './deliveries.ts';

describe.each(backends)('the %s store', (_name, open) => {
  const it = onStore(open);

  it('stores rows by key, and cells with an initial value', async ({ store }) => {
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
    const elsewhere = await openElsewhere(store);
    expect([...elsewhere.all(rows)]).toEqual([row('b')]);
    expect(elsewhere.read(cell)).toEqual({ n: 5 });
  });

  it('stores more rows than one statement writes, in one update', async ({ store }) => {
    await store.update((transaction) => {
      for (let n = 0; n < 10_001; n += 1) transaction.put(rows, row(String(n), 1));
    });
    const elsewhere = await openElsewhere(store);
    expect(elsewhere.count(rows)).toBe(10_001);
    expect(elsewhere.get(rows, '10000')).toEqual(row('10000', 1));
  });

  it('lets a transaction see its own writes', async ({ store }) => {
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

  it('counts the rows and the bytes of a table, in a transaction with its own writes', async ({ store }) => {
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

  it('reports what a rule has changed, without the other updates of the moment', async ({ store }) => {
    await store.update((transaction) => {
      transaction.put(rows, row('a', 0));
      transaction.write(cell, { n: 0 });
    });
    const change = (n: number) =>
      store.update((transaction) => {
        transaction.put(rows, row('a', -n));
        transaction.put(rows, row('a', n));
        transaction.put(rows, row(`new ${n}`, n));
        transaction.write(cell, { n });
        return transaction.changed();
      });
    const changed = await Promise.all([change(1), change(2), change(3)]);
    expect(changed).toEqual(
      [1, 2, 3].map((n) => [
        { of: rows, key: 'a', before: row('a', n - 1), after: row('a', n) },
        { of: rows, key: `new ${n}`, before: undefined, after: row(`new ${n}`, n) },
        { of: cell, key: null, before: { n: n - 1 }, after: { n } },
      ]),
    );
  });

  it('changes nothing in any port if the rule throws', async ({ store }) => {
    await store.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.jobs.savePlan(plan('job-2'));
      transaction.jobs.appendMessages('job-2', 0, [{ code: 1, message: 'one', when: 1 }]);
    });
    await enqueue(store, delivery('a1', 1), delivery('a2', 2), delivery('b1', 1));
    await claim(store, 1, 2);
    const before = await snapshot(store);
    const version = store.version(rows);
    const failed = store.update((transaction) => {
      transaction.put(rows, row('a', 2));
      transaction.put(others, row('x'));
      transaction.write(cell, { n: 1 });
      transaction.deliveries.enqueue([delivery('a3', 1)]);
      transaction.deliveries.discardPending('a', 9);
      transaction.deliveries.complete(claimed(store, 'b1'), ended(claimed(store, 'b1'), 9));
      transaction.deliveries.deleteAll('b');
      transaction.jobs.savePlan(plan('job-3'));
      transaction.jobs.deletePlan('job-2');
      transaction.jobs.appendMessages('job-2', 1, [{ code: 2, message: 'two', when: 2 }]);
      transaction.jobs.archive(job(1));
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(store.version(rows)).toBe(version);
    expect(store.get(rows, 'a')).toEqual(row('a', 1));
    expect([...store.all(others)]).toEqual([]);
    expect(store.read(cell)).toEqual({ n: 0 });
    expect(await snapshot(store)).toEqual(before);
    expect(await store.deliveries.find('a3')).toBeUndefined();
    expect(await store.jobs.plan('job-3')).toBeUndefined();
    expect(await store.jobs.plan('job-2')).toEqual(plan('job-2'));
    expect(await store.jobs.messages('job-2')).toHaveLength(1);
    expect(await store.jobs.find('job-1')).toBeUndefined();
    // The deliveries that were claimed before are still claimed, and the others are not.
    expect((await claim(store, 5)).ids).toEqual(['a2']);
  });

  it('changes nothing in any port if a claim is lost', async ({ store }) => {
    await enqueue(store, delivery('a1', 1), delivery('b1', 1), delivery('c1', 5));
    await claim(store, 1);
    await deleteAll(store, 'a');
    const before = await snapshot(store);
    const version = store.version(rows);
    const lost = store.update((transaction) => {
      transaction.put(rows, row('r'));
      transaction.write(cell, { n: 1 });
      transaction.deliveries.enqueue([delivery('b2', 1)]);
      transaction.deliveries.complete(claimed(store, 'b1'), ended(claimed(store, 'b1'), 9));
      transaction.deliveries.complete(claimed(store, 'a1'), ended(claimed(store, 'a1'), 9));
      transaction.deliveries.discardPending('c', 9);
      transaction.jobs.archive(job(1));
      return 'done';
    });
    await expect(lost).rejects.toThrow(LostClaim);
    expect(await snapshot(store)).toEqual(before);
    expect(store.get(rows, 'r')).toBeUndefined();
    expect(store.read(cell)).toEqual({ n: 0 });
    expect(store.version(rows)).toBe(version);
    expect(await store.jobs.find('job-1')).toBeUndefined();
    expect(await store.deliveries.find('a1')).toBeUndefined();
    // The other delivery is still claimed.
    expect((await claim(store, 1)).ids).toEqual([]);
    await store.update((transaction) =>
      transaction.deliveries.complete(claimed(store, 'b1'), ended(claimed(store, 'b1'), 9)),
    );
    expect(await store.deliveries.find('b1')).toEqual(ended(delivery('b1', 1), 9));
  });

  it('commits the writes to all ports, in the order of the calls, also for another process', async ({
    store,
  }) => {
    await enqueue(store, delivery('a1', 1));
    await store.update((transaction) => {
      transaction.put(rows, row('a', 3));
      transaction.jobs.archive(job(1));
      transaction.deliveries.deleteAll('a');
      transaction.deliveries.enqueue([delivery('a2', 2), delivery('b1', 2)]);
      transaction.deliveries.discardPending('b', 3);
      transaction.deliveries.enqueue([delivery('b2', 3)]);
      transaction.jobs.savePlan(plan('job-1', { workloads: 1 }));
      transaction.jobs.savePlan(plan('job-1', { workloads: 2 }));
      transaction.jobs.savePlan(plan('job-2'));
      transaction.jobs.deletePlan('job-2');
      transaction.jobs.appendMessages('job-1', 0, [{ code: 1, message: 'one', when: 1 }]);
      transaction.jobs.appendMessages('job-1', 1, [{ code: 2, message: 'two', when: 1 }]);
    });
    for (const reader of [store, await openElsewhere(store)]) {
      expect(reader.get(rows, 'a')).toEqual(row('a', 3));
      expect(await list(reader, 'a')).toEqual(['a2']);
      expect(await reader.deliveries.find('b1')).toMatchObject({ state: 'discarded' });
      expect(await reader.deliveries.find('b2')).toMatchObject({ state: 'pending' });
      expect(await reader.jobs.find('job-1')).toEqual(job(1));
      expect(await reader.jobs.plan('job-1')).toEqual(plan('job-1', { workloads: 2 }));
      expect(await reader.jobs.plan('job-2')).toBeUndefined();
      expect((await reader.jobs.messages('job-1')).map(({ message }) => message)).toEqual(['one', 'two']);
    }
  });

  it('commits updates although others fail at the same moment', async ({ store }) => {
    const results = await Promise.allSettled(
      Array.from({ length: 9 }, (_, n) =>
        store.update((transaction) => {
          transaction.put(rows, row(`r${n}`));
          transaction.deliveries.enqueue([delivery(`a${n}`, 1)]);
          transaction.write(cell, { n: transaction.read(cell).n + 1 });
          if (n % 3 === 1) throw new Error('no');
          return n;
        }),
      ),
    );
    const done = results.map((result) => (result.status === 'fulfilled' ? result.value : 'no'));
    expect(done).toEqual([0, 'no', 2, 3, 'no', 5, 6, 'no', 8]);
    expect([...store.all(rows)].map(({ id }) => id).sort()).toEqual(['r0', 'r2', 'r3', 'r5', 'r6', 'r8']);
    expect((await list(store, 'a')).sort()).toEqual(['a0', 'a2', 'a3', 'a5', 'a6', 'a8']);
    expect(store.read(cell)).toEqual({ n: 6 });
  });

  it('changes the version of the tables and cells that an update touched, and of no others', async ({
    store,
  }) => {
    const before = [store.version(rows), store.version(others), store.version(cell)];
    await store.update((transaction) => {
      transaction.put(rows, row('a'));
      transaction.deliveries.enqueue([delivery('a1', 1)]);
    });
    expect(store.version(rows)).not.toBe(before[0]);
    expect([store.version(others), store.version(cell)]).toEqual(before.slice(1));
  });

  it('calls a listener after every update, when the change can be read, until it unsubscribes', async ({
    store,
  }) => {
    const seen = new Set<number>();
    const stop = store.onUpdate(() => seen.add(store.read(cell).n));
    for (const n of [1, 2]) {
      await store.update((transaction) => transaction.write(cell, { n }));
      expect(seen).toContain(n);
    }
    stop();
    await store.update((transaction) => transaction.write(cell, { n: 3 }));
    expect(seen).not.toContain(3);
  });

  it('returns frozen values', async ({ store }) => {
    await store.update((transaction) => {
      transaction.put(rows, { id: 'a', inner: { n: 1 } });
      transaction.write(cell, { n: 1 });
    });
    for (const reader of [store, await openElsewhere(store)]) {
      const kept = [reader.get(rows, 'a')?.inner, [...reader.all(rows)][0]?.inner, reader.read(cell)];
      for (const value of kept) expect(() => Object.assign(value ?? {}, { n: 2 })).toThrow(TypeError);
    }
  });

  it('reports its own process as alive, unknown processes as not alive, and no problems', async ({
    store,
  }) => {
    expect(store.isAlive(store.self)).toBe(true);
    expect(store.isAlive('unknown')).toBe(false);
    expect(store.isAlive('')).toBe(false);
    expect(store.problems()).toEqual([]);
    await store.refresh();
    expect(store.problems()).toEqual([]);
  });

  it('shows every rule what the rules before it have changed', async ({ store }) => {
    await store.update((transaction) => transaction.put(rows, row('a', 1)));
    const read = (transaction: Transaction) => transaction.get(rows, 'a');
    const seen = await Promise.all([
      // The others wait for this one, and then run together.
      store.update(() => undefined),
      store.update((transaction) => {
        const before = read(transaction);
        transaction.remove(rows, 'a');
        return [before, read(transaction)];
      }),
      store.update(read),
    ]);
    expect(seen).toEqual([undefined, [row('a', 1), undefined], undefined]);
  });
});
