// A queue for the suites that every store's queues are held to, and short ways to use it.
import { expect } from 'vitest';
import { createMemoryStore } from '../../src/store/memory.ts';
import type { Claim, Store } from '../../src/store/store.ts';
import type { Queue } from '../../src/store/transaction.ts';

export const backends: [string, () => Store | Promise<Store>][] = [['memory', createMemoryStore]];

export type Errand = { readonly id: string; readonly due: number | null; readonly note: string };

/** The owner is the first letter of the id; the note may be 'urgent' or 'dull'. */
export const errands: Queue<Errand> = {
  name: 'errands',
  keyOf: ({ id }) => id,
  ownerOf: ({ id }) => id.charAt(0),
  dueAt: ({ due }) => due,
  isUrgent: ({ note }) => note === 'urgent',
  isDull: ({ note }) => note === 'dull',
};

export const others: Queue<Errand> = { ...errands, name: 'other errands' };

export const errand = (id: string, due: number | null, note = ''): Errand => ({ id, due, note });

export const enqueue = (store: Store, ...rows: Errand[]) =>
  store.update((transaction) => rows.forEach((row) => transaction.enqueue(errands, row)));
export const settle = (store: Store, ...rows: Errand[]) =>
  store.update((transaction) => rows.forEach((row) => transaction.settle(errands, row)));
export const amend = (store: Store, owner: string | undefined, change: (row: Errand) => Errand) =>
  store.update((transaction) => transaction.amend(errands, owner, change));

/** A lane for each owner, with room for all. */
export const freely: Omit<Claim, 'at' | 'most'> = { laneOf: (owner) => owner, roomIn: () => Infinity };

/** The ids that are handed out, and when there will be more. */
export async function claim(store: Store, at: number, most = 100, lanes = freely) {
  const { rows, nextAt } = await store.claim(errands, { at, most, ...lanes });
  return { ids: rows.map(({ id }) => id), nextAt };
}

export async function list(store: Store, owner: string) {
  const { rows, total } = await store.page(errands, owner, 0, 100);
  expect(total).toBe(rows.length);
  return rows.map(({ id }) => id);
}

/** All that can be seen without claiming. */
export async function look(store: Store) {
  const { count, oldest } = store.waiting(errands);
  const pages = await Promise.all(['a', 'b', 'c'].map((owner) => store.page(errands, owner, 0, 100)));
  return { count, oldest: oldest(), pages, version: store.version(errands) };
}
