// The limit of finished rows in the memory store.
import { expect, it } from 'vitest';
import { createMemoryQueue } from '../../src/store/memory-queue.ts';
import { tickets } from './definitions.ts';
import { ticket } from './tickets.ts';

it('removes the rows of all owners that finished first when finished rows have more than 64 MiB', () => {
  const queue = createMemoryQueue({ ...tickets, bytesOf: () => 30 * 1024 ** 2 });
  for (const id of ['a1', 'b1', 'a2', 'b2']) queue.put(ticket(id, 1));
  expect(queue.waitingBytes()).toBe(120 * 1024 ** 2);
  const finish = (id: string) => {
    const row = queue.find(id);
    if (row) queue.settle(row, ticket(id, null));
  };
  const left = () => ['a1', 'b1', 'a2', 'b2'].filter((id) => queue.find(id));
  finish('b1');
  finish('a1');
  expect(left()).toEqual(['a1', 'b1', 'a2', 'b2']);
  finish('b2');
  expect(left()).toEqual(['a1', 'a2', 'b2']);
  finish('a2');
  expect(left()).toEqual(['a2', 'b2']);
  expect(queue.page('b', 0, 10)).toEqual({ rows: [ticket('b2', null)], total: 1 });
  // A row that is removed otherwise gives its bytes back.
  queue.drop('a');
  queue.put(ticket('a3', null));
  expect(queue.find('b2')).toBeDefined();
  expect(queue.waitingBytes()).toBe(0);
});
