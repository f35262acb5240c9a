// Tests several processes on one PostgreSQL database: replication of changes, claims, and the end of a process.
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { LostClaim } from '../../src/store/transaction.ts';
import { createTestDatabase, openElsewhere, openTwice } from './backends.ts';
import { cell, tickets, log, otherTickets, others, parcels, row, rows } from './definitions.ts';
import { claim, claimed, drop, enqueue, ticket, list, settle } from './tickets.ts';

const soon = { timeout: 1_000, interval: 10 };
const count = (n: number) => Array.from({ length: n }, (_, index) => index);

describe('two processes on one PostgreSQL', () => {
  it('have different ids, and see each other as alive', async () => {
    const [one, other] = await openTwice();
    expect(one.self).not.toBe(other.self);
    expect(other.isAlive(one.self)).toBe(true);
    await expect.poll(() => one.isAlive(other.self), soon).toBe(true);
  });

  it('see the changes of the other within a second', async () => {
    const [one, other] = await openTwice();
    await one.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.put(rows, row('b', 2));
      transaction.put(others, row('x', 3));
      transaction.put(parcels, { id: 'p', label: 'new', bytes: Buffer.from('bytes') });
      transaction.write(cell, { n: 4 });
      transaction.append(log, 'l', [{ n: 5 }, { n: 6 }]);
      transaction.enqueue(tickets, ticket('a1', 7));
    });
    const seen = () => ({
      rows: [...other.all(rows)],
      x: other.get(others, 'x'),
      cell: other.read(cell),
      log: other.entries(log, 'l'),
      bytes: other.bytes(rows),
      waiting: other.waiting(tickets),
      waitingBytes: other.waitingBytes(tickets),
    });
    await expect.poll(seen, soon).toEqual({
      rows: [row('a', 1), row('b', 2)],
      x: row('x', 3),
      cell: { n: 4 },
      log: [{ n: 5 }, { n: 6 }],
      bytes: 3,
      waiting: 1,
      waitingBytes: 2,
    });
    expect(await other.fetch(parcels, 'p')).toMatchObject({ label: 'new' });
    expect(await other.find(tickets, 'a1')).toEqual(ticket('a1', 7));
    await other.update((transaction) => {
      transaction.remove(rows, 'a');
      transaction.put(rows, row('b', 9));
      transaction.drop(tickets, 'a');
    });
    await expect.poll(() => [...one.all(rows)], soon).toEqual([row('b', 9)]);
    expect([one.count(rows), one.bytes(rows)]).toEqual([1, 9]);
    await expect.poll(() => one.waiting(tickets), soon).toBe(0);
    expect(one.waitingBytes(tickets)).toBe(0);
  });

  it('see all changes of the other within their own updates', async () => {
    const [one, other] = await openTwice();
    for (const n of count(20)) {
      const [by, next] = n % 2 === 0 ? [one, other] : [other, one];
      await by.update((transaction) => transaction.put(rows, row('a', n)));
      expect(await next.update((transaction) => transaction.get(rows, 'a'))).toEqual(row('a', n));
    }
  });

  it('return the values that the other has written frozen', async () => {
    const [one, other] = await openTwice();
    await one.update((transaction) => {
      transaction.put(rows, row('a', 1));
      transaction.write(cell, { n: 1 });
      transaction.append(log, 'l', [{ n: 1 }]);
    });
    await expect.poll(() => other.entries(log, 'l').length, soon).toBe(1);
    const given = [other.get(rows, 'a')?.inner, other.read(cell), other.entries(log, 'l')[0]];
    for (const value of given) expect(() => Object.assign(value ?? {}, { n: 2 })).toThrow(TypeError);
  });

  it('run updates one after another', async () => {
    const [one, other] = await openTwice();
    const increment = (store: Store) =>
      store.update((transaction) => transaction.write(cell, { n: transaction.read(cell).n + 1 }));
    await Promise.all(count(100).flatMap(() => [increment(one), increment(other)]));
    const seen = await Promise.all([one, other].map((store) => store.update(({ read }) => read(cell).n)));
    expect(seen).toEqual([200, 200]);
  });

  it('append to one log in the same order, without gaps', async () => {
    const [one, other] = await openTwice();
    const append = (store: Store) =>
      store.update((transaction) =>
        transaction.append(log, 'l', [{ n: transaction.entries(log, 'l').length }]),
      );
    await Promise.all(count(50).flatMap(() => [append(one), append(other)]));
    const all = count(100).map((n) => ({ n }));
    for (const store of [one, other, await openElsewhere(one)])
      await expect.poll(() => store.entries(log, 'l'), soon).toEqual(all);
  });

  it('notify listeners and change versions after an update of the other', async () => {
    const [one, other] = await openTwice();
    const versions = () => [rows, cell, tickets, others, otherTickets].map(other.version);
    const before = versions();
    let calls = 0;
    other.onUpdate(() => (calls += 1));
    await one.update((transaction) => {
      transaction.put(rows, row('a'));
      transaction.write(cell, { n: 1 });
      transaction.enqueue(tickets, ticket('a1', 1));
    });
    await expect.poll(() => other.waiting(tickets), soon).toBe(1);
    await expect.poll(() => calls, soon).toBeGreaterThan(0);
    for (const [index, version] of versions().entries()) {
      if (index < 3) expect(version).not.toBe(before[index]);
      else expect(version).toBe(before[index]);
    }
  });
});

describe('claims of two processes', () => {
  const ids = (owner: string, most: number) => count(most).map((n) => `${owner}${n + 1}`);

  it('never return a row twice', async () => {
    const [one, other] = await openTwice();
    const all = ['a', 'b', 'c'].flatMap((owner) => ids(owner, 60));
    await enqueue(one, ...all.map((id) => ticket(id, 1)));
    const claims = await Promise.all(count(12).flatMap(() => [claim(one, 1, 10), claim(other, 1, 10)]));
    const rest = [...(await claim(one, 1, 1000)).ids, ...(await claim(other, 1, 1000)).ids];
    expect([...claims.flatMap((taken) => taken.ids), ...rest].sort()).toEqual(all.sort());
  });

  it('can be settled only by the process that holds them', async () => {
    const [one, other] = await openTwice();
    await enqueue(one, ticket('a1', 1), ticket('a2', 1));
    expect((await claim(one, 1, 1)).ids).toEqual(['a1']);
    expect((await claim(other, 1)).ids).toEqual(['a2']);
    const held = claimed(one, 'a1');
    const stolen = other.update((transaction) => transaction.settle(tickets, held, ticket('a1', null)));
    await expect(stolen).rejects.toThrow(LostClaim);
    await settle(one, ticket('a1', 5, 'tried'));
    expect((await claim(other, 5)).ids).toEqual(['a1']);
    await settle(other, ticket('a1', null, 'done'), ticket('a2', null, 'done'));
    await expect.poll(() => one.waiting(tickets), soon).toBe(0);
    expect(await one.find(tickets, 'a1')).toEqual(ticket('a1', null, 'done'));
  });

  it('are lost when the other process drops the rows', async () => {
    const [one, other] = await openTwice();
    await enqueue(one, ticket('a1', 1), ticket('b1', 1));
    await claim(one, 1);
    await drop(other, 'a');
    const lost = one.update((transaction) => {
      transaction.put(rows, row('a'));
      transaction.settle(tickets, claimed(one, 'b1'), ticket('b1', null));
      transaction.settle(tickets, claimed(one, 'a1'), ticket('a1', null));
    });
    await expect(lost).rejects.toThrow(LostClaim);
    expect(one.get(rows, 'a')).toBeUndefined();
    expect(await list(other, 'a')).toEqual([]);
    expect(await other.find(tickets, 'b1')).toEqual(ticket('b1', 1));
    await settle(one, ticket('b1', null, 'done'));
    expect(await other.find(tickets, 'b1')).toEqual(ticket('b1', null, 'done'));
  });

  it('are lost when the other process has claimed the row since', async () => {
    const database = await createTestDatabase();
    const [one, other] = [await database.open(), await database.open()];
    await enqueue(one, ticket('a1', 1));
    await claim(one, 1);
    // The first process counts as dead: its claims are deleted.
    await database.ask('delete from claims');
    expect((await claim(other, 1)).ids).toEqual(['a1']);
    await expect(settle(one, ticket('a1', 2, 'too late'))).rejects.toThrow(LostClaim);
    expect(await one.find(tickets, 'a1')).toEqual(ticket('a1', 1));
    await settle(other, ticket('a1', null, 'done'));
    expect(await one.find(tickets, 'a1')).toEqual(ticket('a1', null, 'done'));
  });

  it('are released when the process that holds them closes', async () => {
    const [one, other] = await openTwice();
    await enqueue(one, ticket('a1', 1), ticket('a2', 1), ticket('a3', 9));
    expect((await claim(one, 1)).ids).toEqual(['a1', 'a2']);
    expect((await claim(other, 1)).ids).toEqual([]);
    let calls = 0;
    other.onUpdate(() => (calls += 1));
    await one.close();
    const taken: string[] = [];
    await expect
      .poll(async () => (taken.push(...(await claim(other, 1)).ids), taken.sort()), { timeout: 3_000 })
      .toEqual(['a1', 'a2']);
    await expect.poll(() => calls, soon).toBeGreaterThan(0);
    await settle(other, ticket('a1', null), ticket('a2', null));
    expect(other.waiting(tickets)).toBe(1);
  });

  it('count towards the lane limits of both processes', async () => {
    const [one, other] = await openTwice();
    await enqueue(one, ...ids('a', 9).map((id) => ticket(id, 1)), ticket('b1', 1), ticket('c1', 1));
    /** a and b share a lane with a limit of four, of which this process holds `held`. */
    const lanes = (held: number) => ({
      laneOf: (owner: string) => (owner === 'c' ? 'c' : 'ab'),
      roomIn: (lane: string) => (lane === 'c' ? 1 : 4 - held),
    });
    expect((await claim(one, 1, 3, lanes(0))).ids.sort()).toEqual(['a1', 'b1', 'c1']);
    expect((await claim(other, 1, 99, lanes(0))).ids).toEqual(['a2', 'a3']);
    expect((await claim(one, 1, 99, lanes(2))).ids).toEqual([]);
    expect((await claim(other, 1, 99, lanes(2))).ids).toEqual([]);
    await settle(one, ticket('b1', null));
    expect((await claim(other, 1, 99, lanes(2))).ids).toEqual(['a4']);
    await settle(other, ticket('a2', null), ticket('a3', null), ticket('a4', null));
    expect((await claim(one, 1, 99, lanes(1))).ids).toEqual(['a5', 'a6', 'a7']);
  });
});

describe('a process that has ended', () => {
  it('is soon reported as not alive', async () => {
    const [one, other] = await openTwice();
    await expect.poll(() => one.isAlive(other.self), soon).toBe(true);
    let calls = 0;
    one.onUpdate(() => (calls += 1));
    await other.close();
    await expect.poll(() => one.isAlive(other.self), { timeout: 3_000 }).toBe(false);
    expect(calls).toBeGreaterThan(0);
    expect(one.isAlive(one.self)).toBe(true);
  });

  it('loses its claims to other processes, also if it was killed', async () => {
    const database = await createTestDatabase();
    const store = await database.open();
    await enqueue(store, ticket('a1', 1), ticket('b1', 1));
    await database.ask(`update processes set since = since - interval '1 hour'`);
    await database.ask(`insert into processes (id, alive_until) values
      ('dead', clock_timestamp() - interval '1 second'), ('alive', clock_timestamp() + interval '1 hour')`);
    await database.ask(`insert into claims (queue, key, owner, process)
      select 'tickets', key, owner, case owner when 'a' then 'dead' else 'alive' end from tickets`);
    expect((await claim(store, 1)).ids).toEqual([]);
    await expect.poll(() => store.isAlive('alive'), soon).toBe(true);
    expect(store.isAlive('dead')).toBe(false);
    await expect.poll(async () => (await claim(store, 1)).ids, { timeout: 5_000 }).toEqual(['a1']);
    expect((await claim(store, 1)).ids).toEqual([]);
  });

  it('leaves its changes in the database', async () => {
    const [one, other] = await openTwice();
    await one.update((transaction) => transaction.put(rows, row('a', 1)));
    await Promise.all([one.close(), other.close()]);
    const next = await openElsewhere(one);
    expect(next.get(rows, 'a')).toEqual(row('a', 1));
    await next.update((transaction) => transaction.put(rows, row('a', 2)));
    expect(next.get(rows, 'a')).toEqual(row('a', 2));
  });
});
