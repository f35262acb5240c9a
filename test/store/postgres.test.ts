// Tests several processes on one PostgreSQL database: replication of the state, claims, and the end of a process.
import { describe, expect, it, vi } from 'vitest';
import { realRuntime } from '../../src/lib/runtime.ts';
import { Database } from '../../src/store/postgres/database.ts';
import type { Store } from '../../src/store/store.ts';
import { LostClaim } from '../../src/webhooks/queue/delivery-queue.ts';
import { createTestDatabase, openTwice } from './backends.ts';
import { cell, others, row, rows } from './definitions.ts';
import {
  attempted,
  bytesOf,
  claim,
  claimed,
  deleteAll,
  delivery,
  end,
  ended,
  list,
  publish,
  retry,
} from './deliveries.ts';

const soon = { interval: 10 };
const eventDelivery = (id: string, eventId: string) =>
  delivery(id, 1, { event: { ...delivery(id, 1).event, id: eventId } });
const count = (n: number) => Array.from({ length: n }, (_, index) => index);

describe('two processes on one PostgreSQL', () => {
  it('see the changes of the other', async () => {
    const [one, other] = await openTwice();
    await one.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.put(rows, row('b', 2));
      transaction.put(others, row('x', 3));
      transaction.write(cell, { n: 4 });
      transaction.deliveries.enqueue([delivery('a1', 7)]);
    });
    await publish(one, delivery('a2', 8));
    const seen = () => ({
      rows: [...other.all(rows)].sort((a, b) => (a.id < b.id ? -1 : 1)),
      x: other.get(others, 'x'),
      cell: other.read(cell),
      bytes: other.bytes(rows),
      pending: other.deliveries.pending(),
    });
    await expect.poll(seen, soon).toEqual({
      rows: [row('a', 1), row('b', 2)],
      x: row('x', 3),
      cell: { n: 4 },
      bytes: 3,
      pending: { count: 2, bytes: bytesOf(delivery('a1', 7), delivery('a2', 8)), oldestAt: 7 },
    });
    expect(await other.deliveries.find('a1')).toEqual(delivery('a1', 7));
    await other.update((transaction) => {
      transaction.remove(rows, 'a');
      transaction.put(rows, row('b', 9));
      transaction.deliveries.deleteAll('a');
    });
    await expect.poll(() => [...one.all(rows)], soon).toEqual([row('b', 9)]);
    expect([one.count(rows), one.bytes(rows)]).toEqual([1, 9]);
    await expect.poll(() => one.deliveries.pending(), soon).toEqual({ count: 0, bytes: 0 });
  });

  it('read the changes of the other once for all refreshes of the same moment', async () => {
    const [one, other] = await openTwice();
    await one.update((transaction) => transaction.write(cell, { n: 1 }));
    const spy = vi.spyOn(Database.prototype, 'probe');
    expect(new Set(await Promise.all(count(1000).map(() => other.refresh())))).toEqual(new Set([true]));
    expect(other.read(cell)).toEqual({ n: 1 });
    // Both processes also read by themselves.
    expect(spy.mock.calls.length).toBeLessThan(20);
    spy.mockRestore();
  });

  it('delete the marks of removed rows after five minutes, in portions', async () => {
    const database = await createTestDatabase();
    let ahead = 0;
    /** How often the store was about to remove old rows: it pauses for a minute before each time. */
    let removals = 0;
    const runtime = {
      ...realRuntime,
      now: () => Date.now() + ahead,
      sleep: (ms: number, signal?: AbortSignal) => {
        if (ms === 60_000) removals += 1;
        return realRuntime.sleep(Math.min(ms, 20), signal);
      },
    };
    const store = await database.open({ runtime });
    const keys = count(2_500).map(String);
    await store.update((transaction) => {
      for (const key of keys) transaction.put(rows, row(key, 1));
      transaction.put(others, row('kept', 1));
    });
    await store.update((transaction) => {
      for (const key of keys) transaction.remove(rows, key);
    });
    const marks = async () => {
      const [found] = await database.ask('select count(*)::int as count from state where value is null');
      return found?.count;
    };
    const before = removals;
    await expect.poll(() => removals, soon).toBeGreaterThan(before + 2);
    expect(await marks()).toBe(2_500);
    ahead = 300_000;
    await expect.poll(marks, soon).toBe(0);
    const next = await database.open();
    expect([next.count(rows), next.count(others)]).toEqual([0, 1]);
  });

  it('are behind a minute after the last changes that they could read', async () => {
    const database = await createTestDatabase();
    let ahead = 0;
    const store = await database.open({ runtime: { ...realRuntime, now: () => Date.now() + ahead } });
    await database.ask('alter table clock rename to gone');
    await expect.poll(() => store.problems(), soon).toHaveLength(1);
    ahead = 50_000;
    expect(store.isBehind()).toBe(false);
    ahead = 60_001;
    expect(store.isBehind()).toBe(true);
    await database.ask('alter table gone rename to clock');
    await expect.poll(() => store.isBehind(), soon).toBe(false);
  });

  it('run updates one after another', async () => {
    const [one, other] = await openTwice();
    const increment = (store: Store) =>
      store.update((transaction) => transaction.write(cell, { n: transaction.read(cell).n + 1 }));
    await Promise.all(count(100).flatMap(() => [increment(one), increment(other)]));
    const seen = await Promise.all([one, other].map((store) => store.update(({ read }) => read(cell).n)));
    expect(seen).toEqual([200, 200]);
  });

  it('notify listeners and change versions after an update of the other', async () => {
    const [one, other] = await openTwice();
    const versions = () => [rows, cell, others].map(other.version);
    const before = versions();
    let calls = 0;
    other.onUpdate(() => (calls += 1));
    await one.update((transaction) => {
      transaction.put(rows, row('a'));
      transaction.write(cell, { n: 1 });
    });
    await expect.poll(() => other.read(cell), soon).toEqual({ n: 1 });
    await expect.poll(() => calls, soon).toBeGreaterThan(0);
    for (const [index, version] of versions().entries()) {
      if (index < 2) expect(version).not.toBe(before[index]);
      else expect(version).toBe(before[index]);
    }
  });

  it('hear of deliveries that the other has added', async () => {
    const [one, other] = await openTwice();
    let calls = 0;
    other.deliveries.onFree(() => (calls += 1));
    await publish(one, delivery('a1', 1));
    await expect.poll(() => calls, soon).toBeGreaterThan(0);
    calls = 0;
    await claim(one, 1);
    await retry(one, 'a1', 2);
    await expect.poll(() => calls, soon).toBeGreaterThan(0);
  });

  it('publish an event with an id once, also at the same moment', async () => {
    const [one, other] = await openTwice();
    for (const n of count(10)) {
      const counts = await Promise.all(
        [one, other, one, other].map((store, index) =>
          store.deliveries.publish(
            () => count(index + 1).map((place) => eventDelivery(`a${n}-${index}-${place}`, `e${n}`)),
            { eventId: `e${n}`, at: 1 },
          ),
        ),
      );
      expect(new Set(counts).size).toBe(1);
      const { total } = await one.deliveries.page({ webhookId: 'a' }, 0, 1);
      expect(total).toBe(counts[0]);
      await deleteAll(one, 'a');
    }
  });

  it('publish a large event once if another one of the same moment is refused', async () => {
    const [one] = await openTwice();
    await publish(one, delivery('a1', 1));
    const large = delivery('b1', 1);
    const data = JSON.stringify('x'.repeat(9 * 1024 ** 2));
    let ids = 0;
    const results = await Promise.allSettled([
      publish(one, delivery('a2', 1)),
      // These two are one batch and two statements. PostgreSQL refuses the second.
      one.deliveries.publish(() => [{ ...large, id: `b${(ids += 1)}`, event: { ...large.event, data } }]),
      publish(one, delivery('a\0', 1)),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect((await one.deliveries.page({ webhookId: 'b' }, 0, 10)).total).toBe(1);
  });
});

describe('claims of two processes', () => {
  const ids = (webhookId: string, most: number) => count(most).map((n) => `${webhookId}${n + 1}`);
  const publishAll = (store: Store, ...all: string[]) => publish(store, ...all.map((id) => delivery(id, 1)));

  /** A process may learn late of deliveries that became free in another one. */
  const claimSoon = (store: Store, at: number, expected: readonly string[]) =>
    expect.poll(async () => (await claim(store, at)).ids, soon).toEqual(expected);

  it('never return a delivery twice', async () => {
    const [one, other] = await openTwice();
    const all = ['a', 'b', 'c'].flatMap((webhookId) => ids(webhookId, 60));
    await publishAll(one, ...all);
    const claims = await Promise.all(count(12).flatMap(() => [claim(one, 1, 10), claim(other, 1, 10)]));
    const rest = [...(await claim(one, 1, 1000)).ids, ...(await claim(other, 1, 1000)).ids];
    expect([...claims.flatMap((taken) => taken.ids), ...rest].sort()).toEqual(all.sort());
  });

  it('can be completed only by the process that holds them', async () => {
    const [one, other] = await openTwice();
    await publishAll(one, 'a1', 'a2');
    expect((await claim(one, 1, 1)).ids).toEqual(['a1']);
    expect((await claim(other, 1)).ids).toEqual(['a2']);
    const held = claimed(one, 'a1');
    expect(await other.deliveries.complete(held, () => ({ delivery: ended(held, 2) }))).toBeUndefined();
    const stolen = other.update((transaction) => transaction.deliveries.complete(held, ended(held, 2)));
    await expect(stolen).rejects.toThrow(LostClaim);
    await other.deliveries.release([held]);
    expect((await claim(other, 1)).ids).toEqual([]);
    await retry(one, 'a1', 5);
    await claimSoon(other, 15, ['a1']);
    await end(other, 'a1', 16);
    await end(other, 'a2', 16);
    await expect.poll(() => one.deliveries.pending().count, soon).toBe(0);
    const tried = attempted(delivery('a1', 1), 5);
    expect(await one.deliveries.find('a1')).toEqual(ended(tried, 16));
  });

  it('are lost when the other process deletes the deliveries', async () => {
    const [one, other] = await openTwice();
    await publishAll(one, 'a1', 'b1');
    await claim(one, 1);
    await deleteAll(other, 'a');
    const lost = one.update((transaction) => {
      transaction.put(rows, row('a'));
      transaction.deliveries.complete(claimed(one, 'b1'), ended(claimed(one, 'b1'), 2));
      transaction.deliveries.complete(claimed(one, 'a1'), ended(claimed(one, 'a1'), 2));
    });
    await expect(lost).rejects.toThrow(LostClaim);
    expect(await end(one, 'a1', 2)).toBeUndefined();
    expect(one.get(rows, 'a')).toBeUndefined();
    expect(await list(other, 'a')).toEqual([]);
    expect(await other.deliveries.find('b1')).toEqual(delivery('b1', 1));
    await end(one, 'b1', 3);
    expect(await other.deliveries.find('b1')).toEqual(ended(delivery('b1', 1), 3));
  });

  it('are released when the process that holds them closes', async () => {
    const [one, other] = await openTwice();
    await publish(one, delivery('a1', 1), delivery('a2', 1), delivery('a3', 1));
    expect((await claim(one, 1)).ids).toEqual(['a1', 'a2', 'a3']);
    await retry(one, 'a3', 2);
    expect((await claim(other, 1)).ids).toEqual([]);
    let calls = 0;
    other.deliveries.onFree(() => (calls += 1));
    await one.close();
    const taken: string[] = [];
    await expect
      .poll(async () => (taken.push(...(await claim(other, 1)).ids), taken.sort()))
      .toEqual(['a1', 'a2']);
    await expect.poll(() => calls, soon).toBeGreaterThan(0);
    for (const id of ['a1', 'a2']) await end(other, id, 2);
    await expect.poll(() => other.deliveries.pending().count, soon).toBe(1);
  });

  it('count towards the limits of receivers in both processes', async () => {
    const [one, other] = await openTwice();
    await publishAll(one, ...ids('a', 9), 'b1', 'c1');
    /** a and b share a receiver with a limit of four, of which this process holds `held`. */
    const limits = (held: number) => ({
      receiverOf: (webhookId: string) => (webhookId === 'c' ? 'c' : 'ab'),
      roomFor: (receiver: string) => (receiver === 'c' ? 1 : 4 - held),
    });
    expect((await claim(one, 1, 3, limits(0))).ids.sort()).toEqual(['a1', 'b1', 'c1']);
    expect((await claim(other, 1, 99, limits(0))).ids).toEqual(['a2', 'a3']);
    expect((await claim(one, 1, 99, limits(2))).ids).toEqual([]);
    expect((await claim(other, 1, 99, limits(2))).ids).toEqual([]);
    await end(one, 'b1', 2);
    expect((await claim(other, 1, 99, limits(2))).ids).toEqual(['a4']);
    for (const id of ['a2', 'a3', 'a4']) await end(other, id, 2);
    expect((await claim(one, 1, 99, limits(1))).ids).toEqual(['a5', 'a6', 'a7']);
  });
});

describe('a process that has ended', () => {
  it('is reported as not alive', async () => {
    const [one, other] = await openTwice();
    await expect.poll(() => one.isAlive(other.self), soon).toBe(true);
    let calls = 0;
    one.onUpdate(() => (calls += 1));
    await other.close();
    await expect.poll(() => one.isAlive(other.self), soon).toBe(false);
    await expect.poll(() => calls, soon).toBeGreaterThan(0);
    expect(one.isAlive(one.self)).toBe(true);
  });

  it('loses its claims to other processes, also if it was killed', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await publish(store, delivery('a1', 1), delivery('b1', 1));
    await database.ask(`update processes set since = since - interval '1 hour'`);
    await database.ask(`insert into processes (id, alive_until) values
      ('dead', clock_timestamp() + interval '1 hour'), ('alive', clock_timestamp() + interval '1 hour')`);
    await database.ask(`update queue set claim = nextval('claim_numbers'),
      claimed_by = case webhook_id when 'a' then 'dead' else 'alive' end`);
    expect((await claim(store, 1)).ids).toEqual([]);
    await database.ask(
      `update processes set alive_until = clock_timestamp() - interval '1 second' where id = 'dead'`,
    );
    await expect.poll(() => ['alive', 'dead'].map(store.isAlive), soon).toEqual([true, false]);
    await expect.poll(async () => (await claim(store, 1)).ids).toEqual(['a1']);
    expect((await claim(store, 1)).ids).toEqual([]);
  });
});
