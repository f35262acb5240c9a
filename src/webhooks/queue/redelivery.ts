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
import type { Transaction } from '../../store/transaction.ts';
import { webhooks } from '../webhook.ts';
import { type DeliveryFilter, matchesDeliveryFilter } from './delivery-filter.ts';
import type { Delivery } from './delivery.ts';

export type Redelivery = {
  readonly id: string;
  readonly webhookId: string;
  readonly filter: DeliveryFilter;
  readonly requestedAt: number;
};

export const redeliveries: Table<Redelivery> = {
  name: 'redeliveries',
  keyOf: ({ id }) => id,
  // The entry of the request shows the filter.
  auditFields: notAudited,
};

export function matchesRedelivery(delivery: Delivery, filter: DeliveryFilter, requestedAt: number): boolean {
  const { isPing, endedAt, createdAt, redeliveryOf, redeliveredAs } = delivery;
  const isEarlier = redeliveryOf === null ? createdAt <= requestedAt : createdAt < requestedAt;
  const hasEnded = endedAt !== null && endedAt <= requestedAt;
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

type RequestedRedelivery = Pick<Redelivery, 'filter' | 'requestedAt'> & {
  readonly newId: () => string;
};

/**
 * Stores a redelivery for each active webhook in `counts`, which has the number of deliveries that match. Those of
 * inactive webhooks are skipped.
 */
export function requestRedeliveries(
  transaction: Transaction,
  counts: ReadonlyMap<string, number>,
  { filter, requestedAt, newId }: RequestedRedelivery,
): { readonly matched: number; readonly skipped: number } {
  let [matched, skipped] = [0, 0];
  for (const [webhookId, count] of counts) {
    const webhook = transaction.get(webhooks, webhookId);
    if (webhook?.active) {
      matched += count;
      endEqual(transaction, webhookId, filter);
      transaction.put(redeliveries, { id: newId(), webhookId, filter, requestedAt });
    } else if (webhook) {
      skipped += count;
    }
  }
  return { matched, skipped };
}

/**
 * The new redelivery concerns all deliveries of an earlier one with the same filter, so a request that is repeated
 * often adds nothing.
 */
function endEqual(transaction: Transaction, webhookId: string, filter: DeliveryFilter): void {
  for (const earlier of listRedeliveries(transaction, webhookId))
    if (toText(earlier.filter) === toText(filter)) transaction.remove(redeliveries, earlier.id);
}

function toText({ webhookId, states, changeType, eventId, status, from, to }: DeliveryFilter): string {
  return JSON.stringify({ webhookId, states, changeType, eventId, status, from, to });
}

export function endRedeliveries(transaction: Transaction, webhookId: string): void {
  for (const { id } of listRedeliveries(transaction, webhookId)) transaction.remove(redeliveries, id);
}
