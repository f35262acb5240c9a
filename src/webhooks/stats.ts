// The values of the metrics about webhooks, which the home page shows too.
import { isUnavailable } from '../lib/errors.ts';
import type { ReadableStore } from '../store/store.ts';
import { isDeactivated, webhooks } from './webhook.ts';

export async function webhookStats(store: ReadableStore, at: number) {
  return {
    webhook_deliveries_pending: store.deliveries.pending().count,
    webhook_oldest_pending_seconds: await ageOfOldest(store, at),
    webhook_deactivated: [...store.all(webhooks)].filter(isDeactivated).length,
    /** How many deliveries this process has removed that could have been recovered. */
    webhook_evictions_total: store.deliveries.evicted(),
  };
}

/** NaN while the database is unavailable, so that the metrics and the home page still show the other numbers. */
async function ageOfOldest(store: ReadableStore, at: number): Promise<number> {
  try {
    const oldestAt = await store.deliveries.oldestPendingAt();
    return oldestAt === undefined ? 0 : Math.max(0, at - oldestAt) / 1000;
  } catch (error) {
    if (isUnavailable(error)) return NaN;
    throw error;
  }
}
