// Short ways to use the queue of tickets, for the suites that every store's queues are held to.
import { expect } from 'vitest';
import type { Claim, Store } from '../../src/store/store.ts';
import { type Ticket, tickets } from './definitions.ts';

export const ticket = (id: string, due: number | null, note = ''): Ticket => ({ id, due, note });

/** What each store has handed out, by id, as it was handed out last. */
const handedOut = new WeakMap<Store, Map<string, Ticket>>();

export function claimed(store: Store, id: string): Ticket {
  const row = handedOut.get(store)?.get(id);
  if (!row) throw new Error(`${id} was never handed out.`);
  return row;
}

export const enqueue = (store: Store, ...rows: Ticket[]) =>
  store.update((transaction) => rows.forEach((row) => transaction.enqueue(tickets, row)));
/** Of rows that were handed out by `claim`: what they are from now on. */
export const settle = (store: Store, ...rows: Ticket[]) =>
  store.update((transaction) =>
    rows.forEach((row) => transaction.settle(tickets, claimed(store, row.id), row)),
  );
export const amend = (store: Store, owner: string | undefined, change: (row: Ticket) => Ticket) =>
  store.update((transaction) => transaction.amend(tickets, owner, change));
export const drop = (store: Store, owner: string) =>
  store.update((transaction) => transaction.drop(tickets, owner));

/** A lane for each owner, with room for all. */
export const unlimited: Omit<Claim, 'at' | 'most'> = { laneOf: (owner) => owner, roomIn: () => Infinity };

/** The ids that are handed out, and when there will be more. */
export async function claim(store: Store, at: number, most = 100, lanes = unlimited) {
  const { rows, nextAt } = await store.claim(tickets, { at, most, ...lanes });
  const known = handedOut.get(store) ?? new Map<string, Ticket>();
  handedOut.set(store, known);
  for (const row of rows) known.set(row.id, row);
  return { ids: rows.map(({ id }) => id), nextAt };
}

export async function list(store: Store, owner: string) {
  const { rows, total } = await store.page(tickets, owner, 0, 100);
  expect(total).toBe(rows.length);
  return rows.map(({ id }) => id);
}

/** All that can be seen without claiming. */
export async function snapshot(store: Store) {
  const pages = await Promise.all(['a', 'b', 'c'].map((owner) => store.page(tickets, owner, 0, 100)));
  const oldest = await store.oldest(tickets);
  return { count: store.waiting(tickets), oldest, pages, version: store.version(tickets) };
}
