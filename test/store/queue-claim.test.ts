// Contract of claims: which rows a claim returns, in which order and how many; every store runs this suite.
import { describe, expect, it } from 'vitest';
import { backends } from './backends.ts';
import { amend, claim, enqueue, ticket, settle } from './tickets.ts';

describe.each(backends)('a claim in a queue of the %s store', (_name, open) => {
  it('takes the due rows by due time, and returns when the next row is due', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 30), ticket('a2', 10), ticket('a3', 21), ticket('a4', 5));
    await enqueue(store, ticket('b1', 40), ticket('b2', null));
    expect(await claim(store, 4)).toEqual({ ids: [], nextAt: 5 });
    expect(await claim(store, 20)).toEqual({ ids: ['a4', 'a2'], nextAt: 21 });
    expect(await claim(store, 21)).toEqual({ ids: ['a3'], nextAt: 30 });
    expect(await claim(store, 30)).toEqual({ ids: ['a1'], nextAt: 40 });
    expect(await claim(store, 50)).toEqual({ ids: ['b1'], nextAt: undefined });
  });

  it('takes at most the requested number of rows, and never a claimed row again', async () => {
    const store = await open();
    await enqueue(store, ticket('a1', 1), ticket('a2', 2), ticket('a3', 3), ticket('b1', 4));
    expect((await claim(store, 9, 0)).ids).toEqual([]);
    const claims = await Promise.all([1, 2, 3].map((most) => claim(store, 9, most)));
    for (const [index, { ids }] of claims.entries()) expect(ids.length).toBeLessThanOrEqual(index + 1);
    const { ids: rest } = await claim(store, 9);
    const all = [...claims.flatMap(({ ids }) => ids), ...rest];
    expect(all.sort()).toEqual(['a1', 'a2', 'a3', 'b1']);
    expect(await claim(store, 1e9)).toEqual({ ids: [], nextAt: undefined });
  });

  it('takes a row once if it was amended and then amended back', async () => {
    const store = await open();
    const row = ticket('a1', 1);
    await enqueue(store, row);
    await amend(store, 'a', () => ticket('a1', 2));
    await amend(store, 'a', () => row);
    expect(await claim(store, 9)).toEqual({ ids: ['a1'], nextAt: undefined });
  });

  it('lets owners take turns, even if the rows of one are due earlier', async () => {
    const store = await open();
    for (const n of [1, 2, 3, 4, 5]) await enqueue(store, ticket(`a${n}`, n));
    await enqueue(store, ticket('b1', 8), ticket('b2', 9), ticket('c1', 7));
    expect((await claim(store, 10, 3)).ids.sort()).toEqual(['a1', 'b1', 'c1']);
    expect((await claim(store, 10, 2)).ids.sort()).toEqual(['a2', 'b2']);
    expect((await claim(store, 10)).ids).toEqual(['a3', 'a4', 'a5']);
  });

  it('continues the turns of the previous claim', async () => {
    const store = await open();
    for (const n of [1, 2, 3]) await enqueue(store, ticket(`a${n}`, n), ticket(`b${n}`, 3 + n));
    const owners: string[] = [];
    for (let i = 0; i < 6; i += 1) owners.push((await claim(store, 10, 1)).ids[0]?.charAt(0) ?? '');
    expect(['ababab', 'bababa']).toContain(owners.join(''));
  });

  describe('an urgent row', () => {
    it('goes before other rows, also if the share of every owner is small', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 8, 'urgent'), ticket('a2', 9, 'urgent'), ticket('a3', 1));
      await enqueue(store, ticket('b1', 2), ticket('c1', 100));
      expect((await claim(store, 10, 3)).ids.sort()).toEqual(['a1', 'a2', 'b1']);
    });

    it('goes before rows that were due earlier', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', 8, 'urgent'), ticket('a3', 2));
      await enqueue(store, ticket('a4', 5, 'urgent'), ticket('b1', 9));
      expect((await claim(store, 9, 2)).ids.sort()).toEqual(['a4', 'b1']);
      expect((await claim(store, 9)).ids).toEqual(['a2', 'a1', 'a3']);
    });

    it('does not delay other rows while it is not due or is claimed', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 5, 'urgent'), ticket('a2', 20, 'urgent'));
      await enqueue(store, ticket('a3', 6), ticket('a4', 7));
      expect(await claim(store, 10, 1)).toMatchObject({ ids: ['a1'] });
      expect(await claim(store, 10)).toEqual({ ids: ['a3', 'a4'], nextAt: 20 });
      expect(await claim(store, 20)).toEqual({ ids: ['a2'], nextAt: undefined });
    });

    it.each([
      ['the urgent row is due next', 20, 30],
      ['the other row is due next', 30, 20],
    ])('counts for the time when the next row is due: %s', async (_which, urgent, other) => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', other), ticket('a3', urgent, 'urgent'));
      expect(await claim(store, 10)).toEqual({ ids: ['a1'], nextAt: 20 });
      expect(await claim(store, 20)).toMatchObject({ nextAt: 30 });
    });

    it('is one that is urgent now, even if it was not before', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 1), ticket('a2', 2, 'urgent'), ticket('a3', 3), ticket('a4', 4));
      const note = (id: string) => (id === 'a3' ? 'urgent' : '');
      await amend(store, 'a', (row) => ({ ...row, note: note(row.id) }));
      expect((await claim(store, 9, 2)).ids).toEqual(['a3', 'a1']);
      await settle(store, ticket('a3', 3), ticket('a1', 5, 'urgent'));
      expect((await claim(store, 9)).ids).toEqual(['a1', 'a2', 'a3', 'a4']);
    });
  });

  describe('with lanes', () => {
    it.each([
      ['one lane for each owner', 'abc', { a: 2, b: 2, c: 1 }, ['a1', 'a2', 'b1', 'c1']],
      ['more slots than rows', 'abc', { a: 9, b: 0, c: 0 }, ['a1', 'a2', 'a3']],
      ['one lane for all owners', 'xxx', { x: 3 }, ['a1', 'b1', 'c1']],
      ['one lane for two owners', 'xxc', { x: 2, c: 1 }, ['a1', 'b1', 'c1']],
      ['one lane for two owners, the second with fewer rows', 'xxc', { x: 3, c: 0 }, ['a1', 'a2', 'b1']],
      ['one lane for two owners, without free slots', 'xxc', { x: 0, c: 9 }, ['c1', 'c2', 'c3']],
      ['a negative number of slots', 'xxc', { x: -1, c: 1 }, ['c1']],
      ['no free slots', 'xxc', { x: 0, c: 0 }, []],
    ])('takes as many rows as the lanes have free slots: %s', async (_lanes, lanes, room, expected) => {
      const store = await open();
      const ids = ['a1', 'a2', 'a3', 'b1', 'c1', 'c2', 'c3'];
      await enqueue(store, ...ids.map((id) => ticket(id, Number(id.charAt(1)))));
      const rooms: Record<string, number> = room;
      const taken = await claim(store, 9, 100, {
        laneOf: (owner) => lanes.charAt('abc'.indexOf(owner)),
        roomIn: (lane) => rooms[lane] ?? NaN,
      });
      expect(taken.ids.sort()).toEqual(expected);
      const left = ids.filter((id) => !taken.ids.includes(id));
      expect((await claim(store, 9)).ids.sort()).toEqual(left);
    });

    const together = { laneOf: () => 'x', roomIn: () => 1 };

    it('lets the owners of one lane take turns from claim to claim', async () => {
      const store = await open();
      for (const n of [1, 2, 3]) await enqueue(store, ticket(`a${n}`, n, 'urgent'), ticket(`b${n}`, 3 + n));
      const owners: string[] = [];
      for (let i = 0; i < 6; i += 1) {
        const { ids } = await claim(store, 10, 100, together);
        expect(ids).toHaveLength(1);
        owners.push(ids[0]?.charAt(0) ?? '');
      }
      expect(['ababab', 'bababa']).toContain(owners.join(''));
    });

    it('uses no slot for a row that is not due', async () => {
      const store = await open();
      await enqueue(store, ticket('a1', 20), ticket('b1', 1), ticket('c1', 30, 'urgent'));
      expect(await claim(store, 10, 100, together)).toEqual({ ids: ['b1'], nextAt: 20 });
    });
  });
});
