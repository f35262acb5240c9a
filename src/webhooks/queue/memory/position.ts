// The place of a delivery among the free deliveries of its webhook.
import { maxCountedDeliveries } from '../delivery-filter.ts';
import { type Delivery, priorityOf, waitingSince } from '../delivery.ts';
import type { QueueOfReceiver } from '../delivery-queue.ts';

/** How many due deliveries are claimed before this one. `free` are those of its webhook, in the order in which they were added. */
export function countAhead(
  delivery: Delivery,
  free: readonly Delivery[],
  { at, retryWaitMs }: QueueOfReceiver,
): number {
  const place = free.indexOf(delivery);
  const isDue = (one: Delivery) => priorityOf(one) !== 1 || waitingSince(one) + retryWaitMs <= at;
  const isAhead = (one: Delivery, index: number) =>
    (priorityOf(one) - priorityOf(delivery) || waitingSince(one) - waitingSince(delivery) || index - place) <
    0;
  return Math.min(
    free.filter((one, index) => isAhead(one, index) && isDue(one)).length,
    maxCountedDeliveries,
  );
}
