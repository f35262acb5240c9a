// Helpers for the queue of tickets, which the contract suites of queues use.
import { expect } from 'vitest';
import type { Claim, Store } from '../../src/store/store.ts';
import { type Ticket, tickets } from './definitions.ts';

export const ticket = (id: string, due: number | null, note = ''): Ticket => ({ id, due, note });

/** The rows that each store's last claims returned, by id. */
const claimedRows = new WeakMap<Store, Map<string, Ticket>>();

export function claimed(store: Store, id: string): Ticket {
  const row = claimedRows.get(store)?.get(id);
  if (!row) throw new Error(`${id} was never claimed.`);
  return row;
}

export const enqueue = (store: Store, ...rows: Ticket[]) =>
  store.update((transaction) => rows.forEach((row) => transaction.enqueue(tickets, row)));
/** Settles claimed rows; `rows` are the new values. */
export const settle = (store: Store, ...rows: Ticket[]) =>
  store.update((transaction) =>
    rows.forEach((row) => transaction.settle(tickets, claimed(store, row.id), row)),
  );
export const amend = (store: Store, owner: string | undefined, change: (row: Ticket) => Ticket) =>
  store.update((transaction) => transaction.amend(tickets, owner, change));
export const drop = (store: Store, owner: string) =>
  store.update((transaction) => transaction.drop(tickets, owner));

/** One lane without a limit for each owner. */
export const unlimited: Omit<Claim, 'at' | 'most'> = { laneOf: (owner) => owner, roomIn: () => Infinity };

/** Returns the ids of the claimed rows. */
export async function claim(store: Store, at: number, most = 100, lanes = unlimited) {
  const { rows, nextAt } = await store.claim(tickets, { at, most, ...lanes });
  const ofStore = claimedRows.get(store) ?? new Map<string, Ticket>();
  claimedRows.set(store, ofStore);
  for (const row of rows) ofStore.set(row.id, row);
  return { ids: rows.map(({ id }) => id), nextAt };
}

export async function list(store: Store, owner: string) {
  const { rows, total } = await store.page(tickets, owner, 0, 100);
  expect(total).toBe(rows.length);
  return rows.map(({ id }) => id);
}

/** Everything that can be read without claiming. */
export async function snapshot(store: Store) {
  const pages = await Promise.all(['a', 'b', 'c'].map((owner) => store.page(tickets, owner, 0, 100)));
  const oldest = await store.oldest(tickets);
  return { count: store.waiting(tickets), oldest, pages, version: store.version(tickets) };
}
