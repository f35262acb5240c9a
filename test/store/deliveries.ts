// Helpers for deliveries, which the suites of the delivery queue use.
import { expect } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { bytesOfPayload } from '../../src/webhooks/event.ts';
import type { ClaimRequest, Completion } from '../../src/webhooks/queue/delivery-queue.ts';
import type { Attempt, Delivery } from '../../src/webhooks/queue/delivery.ts';

/**
 * The webhook is the first letter of the id. Payloads differ in size, so that a sum over the wrong deliveries is
 * wrong.
 */
export function delivery(id: string, createdAt: number, traits: Partial<Delivery> = {}): Delivery {
  const number = Number(id.replace(/\D/g, ''));
  return {
    id,
    webhookId: id.charAt(0),
    event: {
      id: `event of ${id}`,
      type: 'Tested',
      timestamp: createdAt,
      service: null,
      data: dataOf(number),
    },
    isPing: false,
    state: 'pending',
    createdAt,
    endedAt: null,
    attempts: [],
    redeliveryOf: null,
    redeliveredAs: null,
    ...traits,
  };
}

export const ping = (id: string, createdAt: number) => delivery(id, createdAt, { isPing: true });

const dataOf = (number: number) => JSON.stringify({ text: 'é'.repeat(number % 7) });

export const bytesOf = (...all: readonly Delivery[]) =>
  all.reduce((sum, { event }) => sum + bytesOfPayload(event), 0);

const failedAttempt = (at: number): Attempt => ({
  when: at - 1,
  durationMs: 1,
  status: 500,
  error: 'The receiver answered 500.',
  response: `failed at ${at}`,
});

/** The delivery after a failed attempt that ended at `at`. */
export const attempted = (of: Delivery, at: number): Delivery => ({
  ...of,
  attempts: [...of.attempts, failedAttempt(at)],
});

export const ended = (of: Delivery, at: number, state: Delivery['state'] = 'delivered'): Delivery => ({
  ...of,
  state,
  endedAt: at,
});

/** The deliveries that each store's last claims returned, by id. */
const claimedDeliveries = new WeakMap<Store, Map<string, Delivery>>();

export function claimed(store: Store, id: string): Delivery {
  const found = claimedDeliveries.get(store)?.get(id);
  if (!found) throw new Error(`${id} was never claimed.`);
  return found;
}

export const publish = (store: Store, ...all: readonly Delivery[]) => store.deliveries.publish(() => all);

export const enqueue = (store: Store, ...all: readonly Delivery[]) =>
  store.update((transaction) => transaction.deliveries.enqueue(all));

export const discard = (store: Store, webhookId: string, at: number) =>
  store.update((transaction) => transaction.deliveries.discardPending(webhookId, at));

export const deleteAll = (store: Store, webhookId: string) =>
  store.update((transaction) => transaction.deliveries.deleteAll(webhookId));

/**
 * Retries are due ten milliseconds after the end of the attempt, and every webhook has its own receiver without a
 * limit.
 */
export const unlimited: Omit<ClaimRequest, 'at' | 'most'> = {
  retryWaitMs: 10,
  receiverOf: (webhookId) => webhookId,
  roomFor: () => Infinity,
};

/** Returns the ids of the claimed deliveries, and when the next one is due. */
export async function claim(store: Store, at: number, most = 100, limits: Partial<typeof unlimited> = {}) {
  const request = { at, most, ...unlimited, ...limits };
  const { deliveries, nextAt } = await store.deliveries.claim(request);
  const ofStore = claimedDeliveries.get(store) ?? new Map<string, Delivery>();
  claimedDeliveries.set(store, ofStore);
  for (const one of deliveries) ofStore.set(one.id, one);
  const ids = deliveries.map(({ id }) => id);
  const mayHaveLeftSome = ids.length > 0 && nextAt !== undefined && nextAt <= at;
  if (!mayHaveLeftSome || ids.length === most) return { ids, nextAt };
  // The next call finds out. It must not claim more than the first could have.
  const taken = (receiver: string) =>
    deliveries.filter(({ webhookId }) => request.receiverOf(webhookId) === receiver).length;
  const again = await store.deliveries.claim({
    ...request,
    most: most - ids.length,
    roomFor: (receiver) => request.roomFor(receiver) - taken(receiver),
  });
  for (const one of again.deliveries) ofStore.set(one.id, one);
  return { ids: [...ids, ...again.deliveries.map(({ id }) => id)], nextAt: again.nextAt };
}

export async function claimAll(store: Store, at: number, limits: Partial<typeof unlimited> = {}) {
  const all: string[] = [];
  for (;;) {
    const { ids, nextAt } = await claim(store, at, 100, limits);
    all.push(...ids);
    if (nextAt === undefined || nextAt > at) return { ids: all, nextAt };
  }
}

export const complete = (store: Store, id: string, completion: Completion) =>
  store.deliveries.complete(claimed(store, id), () => completion);

/** Completes a claimed delivery with a failed attempt that ended at `at`; it stays pending. */
export const retry = (store: Store, id: string, at: number) =>
  complete(store, id, { delivery: attempted(claimed(store, id), at) });

/** Ends a claimed delivery. */
export const end = (store: Store, id: string, at: number, state?: Delivery['state']) =>
  complete(store, id, { delivery: ended(claimed(store, id), at, state) });

export async function list(store: Store, webhookId: string): Promise<string[]> {
  const { deliveries, total } = await store.deliveries.page({ webhookId }, 0, 100);
  expect(total).toBe(deliveries.length);
  return deliveries.map(({ id }) => id);
}

/** Everything that can be read without claiming. */
export async function snapshot({ deliveries }: Store) {
  return {
    pending: deliveries.pending(),
    pages: await Promise.all(['a', 'b', 'c'].map((webhookId) => deliveries.page({ webhookId }, 0, 100))),
  };
}
