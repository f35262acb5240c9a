// What every store promises of a queue's work: that it is claimed, settled, and counted until it is finished; each backend runs this suite.
import { describe, expect, it } from 'vitest';
import {
  amend,
  backends,
  claim,
  enqueue,
  errand,
  errands,
  freely,
  list,
  look,
  others,
  settle,
} from './errands.ts';

describe.each(backends)('a queue of the %s store', (_name, open) => {
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
      const { rows } = await store.claim(errands, { at: 1, most: 1, ...freely });
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

    it('takes a row once that was amended and then amended back', async () => {
      const store = await open();
      const row = errand('a1', 1);
      await enqueue(store, row);
      await amend(store, 'a', () => errand('a1', 2));
      await amend(store, 'a', () => row);
      expect(await claim(store, 9)).toEqual({ ids: ['a1'], nextAt: undefined });
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

    describe('what is urgent', () => {
      it('goes before what was due earlier', async () => {
        const store = await open();
        await enqueue(store, errand('a1', 1), errand('a2', 8, 'urgent'), errand('a3', 2));
        await enqueue(store, errand('a4', 5, 'urgent'), errand('b1', 9));
        expect((await claim(store, 9, 2)).ids.sort()).toEqual(['a4', 'b1']);
        expect((await claim(store, 9)).ids).toEqual(['a2', 'a1', 'a3']);
        await store.close();
      });

      it('does not hold up others while it is not due, or while it is claimed', async () => {
        const store = await open();
        await enqueue(store, errand('a1', 5, 'urgent'), errand('a2', 20, 'urgent'));
        await enqueue(store, errand('a3', 6), errand('a4', 7));
        expect(await claim(store, 10, 1)).toMatchObject({ ids: ['a1'] });
        expect(await claim(store, 10)).toEqual({ ids: ['a3', 'a4'], nextAt: 20 });
        expect(await claim(store, 20)).toEqual({ ids: ['a2'], nextAt: undefined });
        await store.close();
      });

      it.each([
        ['the urgent', 20, 30],
        ['the other', 30, 20],
      ])('counts like the others for when there will be more: %s', async (_which, urgent, other) => {
        const store = await open();
        await enqueue(store, errand('a1', 1), errand('a2', other), errand('a3', urgent, 'urgent'));
        expect(await claim(store, 10)).toEqual({ ids: ['a1'], nextAt: 20 });
        expect(await claim(store, 20)).toMatchObject({ nextAt: 30 });
        await store.close();
      });

      it('goes by what the row is now', async () => {
        const store = await open();
        await enqueue(store, errand('a1', 1), errand('a2', 2, 'urgent'), errand('a3', 3), errand('a4', 4));
        const note = (id: string) => (id === 'a3' ? 'urgent' : '');
        await amend(store, 'a', (row) => ({ ...row, note: note(row.id) }));
        expect((await claim(store, 9, 2)).ids).toEqual(['a3', 'a1']);
        await settle(store, errand('a3', 3), errand('a1', 5, 'urgent'));
        expect((await claim(store, 9)).ids).toEqual(['a1', 'a2', 'a3', 'a4']);
        await store.close();
      });
    });

    describe('by lanes', () => {
      it.each([
        ['one for each owner', 'abc', { a: 2, b: 2, c: 1 }, ['a1', 'a2', 'b1', 'c1']],
        ['one with more room than rows', 'abc', { a: 9, b: 0, c: 0 }, ['a1', 'a2', 'a3']],
        ['one for all', 'xxx', { x: 3 }, ['a1', 'b1', 'c1']],
        ['one for two owners', 'xxc', { x: 2, c: 1 }, ['a1', 'b1', 'c1']],
        ['one for two owners, the second with less to do', 'xxc', { x: 3, c: 0 }, ['a1', 'a2', 'b1']],
        ['one for two owners, without room', 'xxc', { x: 0, c: 9 }, ['c1', 'c2', 'c3']],
        ['one with less than no room', 'xxc', { x: -1, c: 1 }, ['c1']],
        ['none with room', 'xxc', { x: 0, c: 0 }, []],
      ])('takes what there is room for: %s', async (_lanes, lanes, room, expected) => {
        const store = await open();
        const ids = ['a1', 'a2', 'a3', 'b1', 'c1', 'c2', 'c3'];
        await enqueue(store, ...ids.map((id) => errand(id, Number(id.charAt(1)))));
        const rooms: Record<string, number> = room;
        const taken = await claim(store, 9, 100, {
          laneOf: (owner) => lanes.charAt('abc'.indexOf(owner)),
          roomIn: (lane) => rooms[lane] ?? NaN,
        });
        expect(taken.ids.sort()).toEqual(expected);
        const left = ids.filter((id) => !taken.ids.includes(id));
        expect((await claim(store, 9)).ids.sort()).toEqual(left);
        await store.close();
      });

      const together = { laneOf: () => 'x', roomIn: () => 1 };

      it('lets owners of one lane take turns from one claim to the next', async () => {
        const store = await open();
        for (const n of [1, 2, 3]) await enqueue(store, errand(`a${n}`, n, 'urgent'), errand(`b${n}`, 3 + n));
        const owners: string[] = [];
        for (let i = 0; i < 6; i += 1) {
          const { ids } = await claim(store, 10, 100, together);
          expect(ids).toHaveLength(1);
          owners.push(ids[0]?.charAt(0) ?? '');
        }
        expect(['ababab', 'bababa']).toContain(owners.join(''));
        await store.close();
      });

      it('gives no room to what is not due', async () => {
        const store = await open();
        await enqueue(store, errand('a1', 20), errand('b1', 1), errand('c1', 30, 'urgent'));
        expect(await claim(store, 10, 100, together)).toEqual({ ids: ['b1'], nextAt: 20 });
        await store.close();
      });
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
      const { rows } = await store.claim(errands, { at: 1, most: 1, ...freely });
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
});
