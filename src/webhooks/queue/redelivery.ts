// A redelivery by filter: an administrator repeats all deliveries of a webhook that match.
//
// The request stores the redelivery and ends. Every process then creates the new deliveries in batches
// (redelivery-worker.ts); a batch creates them and links them to the deliveries they repeat in one transaction, so
// each is repeated once, whichever process is killed. When none is left, the redelivery is removed. It is also
// removed if the webhook is deactivated or deleted.
//
// It concerns the deliveries as they were at the time of the request: those that have ended later, and those that
// were created later, do not match. A delivery that itself is a redelivery must be older than the request, because
// the ones that the request creates may have the same time.
import { notAudited } from '../../lib/audit-fields.ts';
import type { Reader, Table } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Transaction } from '../../store/transaction.ts';
import {
  type HealthView,
  type Webhook,
  listWebhooks,
  maxUndelivered,
  readHealth,
  requireWebhook,
  webhooks,
} from '../webhook.ts';
import { type DeliveryFilter, matchesDeliveryFilter, maxCountedDeliveries } from './delivery-filter.ts';
import { type Delivery, type DeliveryState, recoverableStates } from './delivery.ts';

export type Redelivery = {
  readonly id: string;
  readonly webhookId: string;
  readonly filter: DeliveryFilter;
  readonly requestedAt: number;
  /** Only what ended later is repeated. Absent: all. */
  readonly endedAfter?: number | undefined;
};

export const redeliveries: Table<Redelivery> = {
  name: 'redeliveries',
  keyOf: ({ id }) => id,
  defaults: {},
  // The entry of the request shows the filter.
  auditFields: notAudited,
};

export function matchesRedelivery(
  delivery: Delivery,
  { filter, requestedAt, endedAfter = -1 }: Omit<Redelivery, 'id' | 'webhookId'>,
): boolean {
  const { isPing, endedAt, createdAt, redeliveryOf, redeliveredAs } = delivery;
  const isEarlier = redeliveryOf === null ? createdAt <= requestedAt : createdAt < requestedAt;
  const hasEnded = endedAt !== null && endedAfter < endedAt && endedAt <= requestedAt;
  return (
    !isPing && redeliveredAs === null && isEarlier && hasEnded && matchesDeliveryFilter(delivery, filter)
  );
}

/** The redeliveries of a webhook, or all, oldest first. */
export function listRedeliveries(reader: Reader, webhookId?: string): Redelivery[] {
  const listed = [...reader.all(redeliveries)].filter(
    (redelivery) => webhookId === undefined || redelivery.webhookId === webhookId,
  );
  return listed.sort((a, b) => a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1));
}

/** How many deliveries of each webhook match. `isWhole`: no more will match, because nothing is still being discarded. */
export type Counted = { readonly counts: ReadonlyMap<string, number>; readonly isWhole: boolean };

/** A filter that matches little reads much, so counting ends after this time. */
const countWithinMs = 500;
const countedTogether = 8;

/**
 * How many deliveries of each webhook match. Counting ends beyond `most` of active webhooks, and of inactive ones, or
 * when it takes long.
 */
export async function countMatched(
  store: ReadableStore,
  webhookIds: readonly string[],
  { skipsDismissed, ...request }: RedeliveryRequest,
  most: number,
): Promise<Counted> {
  const found = webhookIds.flatMap((id) => store.get(webhooks, id) ?? []);
  const counts = new Map<string, number>();
  const lateAt = performance.now() + countWithinMs;
  let isWhole = true;
  for (const isActive of [true, false]) {
    const rest = found
      .filter(({ active }) => active === isActive)
      .map((webhook) => ({ id: webhook.id, endedAfter: endedAfterOf(webhook, skipsDismissed) }));
    let left = most + 1;
    let areKnown = true;
    for (let isLate = false; rest.length > 0 && left > 0 && !isLate; isLate = performance.now() >= lateAt) {
      const part = { ...request, webhooks: rest.splice(0, countedTogether), most: left };
      const counted = await store.deliveries.countMatched(part);
      areKnown &&= counted.isWhole;
      for (const [id, count] of counted.counts) {
        counts.set(id, count);
        left -= count;
      }
    }
    if (isActive) isWhole = areKnown && rest.length === 0;
  }
  return { counts, isWhole };
}

type UndeliveredOptions = { readonly most?: number; readonly states?: readonly DeliveryState[] };

/** The states of what is undelivered. Of the pending ones, only redeliveries are. */
export const undeliveredStates = ['pending', ...recoverableStates] as const satisfies DeliveryState[];

/**
 * How many deliveries of each webhook were neither delivered nor dismissed, but at most one beyond `most`. A redelivered
 * one counts until its redelivery is delivered.
 */
export async function countUndelivered(
  store: ReadableStore,
  chosen: readonly Webhook[],
  requestedAt: number,
  options?: UndeliveredOptions,
): Promise<ReadonlyMap<string, number>> {
  return (await countRecoverable(store, chosen, requestedAt, { states: undeliveredStates, ...options }))
    .counts;
}

/** Likewise, but without those that are being redelivered, and whether these are all. */
export function countRecoverable(
  { deliveries }: ReadableStore,
  chosen: readonly Webhook[],
  requestedAt: number,
  { most = maxUndelivered, states = recoverableStates }: UndeliveredOptions = {},
): Promise<Counted> {
  return deliveries.countMatched({
    webhooks: chosen.map((webhook) => ({ id: webhook.id, endedAfter: endedAfterOf(webhook, true) })),
    filter: { states },
    requestedAt,
    most: most + 1,
    withPending: states.includes('pending'),
  });
}

/** The health of every webhook, which does not depend on the number of its undelivered events. */
export async function readHealths(store: ReadableStore, at: number): Promise<HealthView[]> {
  const all = listWebhooks(store);
  const counts = await countUndelivered(store, all, at, { most: 0 });
  return all.map((webhook) => readHealth(store, webhook, at, counts.get(webhook.id)));
}

function endedAfterOf({ dismissedAt }: Webhook, skipsDismissed: boolean): number | undefined {
  return skipsDismissed ? (dismissedAt ?? undefined) : undefined;
}

type RedeliveryRequest = Pick<Redelivery, 'filter' | 'requestedAt'> & {
  /** A filter that the caller has given finds dismissed deliveries too. */
  readonly skipsDismissed: boolean;
};

export type Requested = {
  readonly matched: number;
  /** More match. */
  readonly matchedIsExact?: false;
  readonly skipped: number;
};

/**
 * Stores a redelivery for each active webhook of which deliveries match, or of every active one if counting has ended
 * early. Those of inactive webhooks are skipped.
 */
export function requestRedeliveries(
  transaction: Transaction,
  webhookIds: readonly string[],
  { counts, isWhole }: Counted,
  { filter, requestedAt, skipsDismissed, newId }: RedeliveryRequest & { readonly newId: () => string },
): Requested {
  const sum = (ids: readonly string[]) => ids.reduce((total, id) => total + (counts.get(id) ?? 0), 0);
  const isActive = (id: string) => transaction.get(webhooks, id)?.active === true;
  const active = webhookIds.filter(isActive);
  const matched = sum(active);
  const isExact = isWhole && matched <= maxCountedDeliveries;
  const earlier = new Map(
    listRedeliveries(transaction).map((redelivery) => [effectOf(redelivery), redelivery.id]),
  );
  for (const webhookId of active.filter((id) => !isExact || counts.has(id))) {
    const endedAfter = endedAfterOf(requireWebhook(transaction, webhookId), skipsDismissed);
    const redelivery = { id: newId(), webhookId, filter, requestedAt, endedAfter };
    const equal = earlier.get(effectOf(redelivery));
    if (equal !== undefined) transaction.remove(redeliveries, equal);
    transaction.put(redeliveries, redelivery);
  }
  return {
    matched: Math.min(matched, maxCountedDeliveries),
    ...(!isExact && { matchedIsExact: false }),
    skipped: Math.min(sum(webhookIds.filter((id) => !isActive(id))), maxCountedDeliveries),
  };
}

/**
 * Equal for redeliveries that differ only in their times: the later one concerns all deliveries of the earlier one, and
 * replaces it, so that a request that is repeated often adds nothing.
 */
function effectOf({ webhookId, filter, endedAfter }: Redelivery): string {
  return JSON.stringify([webhookId, endedAfter, filter]);
}

export function endRedeliveries(transaction: Transaction, webhookId: string): void {
  for (const { id } of listRedeliveries(transaction, webhookId)) transaction.remove(redeliveries, id);
}
