// Calls that wait together run in one batch, and no failure stops the queue.
import { expect, it } from 'vitest';
import { Batcher } from '../../src/store/postgres/batcher.ts';

it('runs the calls that arrive during a batch together', async () => {
  const batches: (readonly number[])[] = [];
  const batcher = new Batcher<number, number>({
    run: (items) => {
      batches.push(items);
      return Promise.resolve(items.map((item) => item * 10));
    },
    maxItems: 2,
  });
  const results = await Promise.all([1, 2, 3, 4].map((item) => batcher.submit(item)));
  expect(results).toEqual([10, 20, 30, 40]);
  expect(batches).toEqual([[1], [2, 3], [4]]);
});

it('rejects the calls that wait if the pause before a batch fails, and then runs again', async () => {
  let isBroken = true;
  const batcher = new Batcher<number, number>({
    run: (items) => Promise.resolve(items),
    maxItems: 10,
    waitForMore: () => (isBroken ? Promise.reject(new Error('no pause')) : Promise.resolve()),
  });
  const waiting = [batcher.submit(1), batcher.submit(2)];
  for (const call of waiting) await expect(call).rejects.toThrow('no pause');
  isBroken = false;
  expect(await batcher.submit(3)).toBe(3);
});
