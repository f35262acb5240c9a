// The values of the metrics about webhooks, which the home page shows too.
import { isUnavailable } from '../lib/errors.ts';
import type { ReadableStore } from '../store/store.ts';
import { isDeactivated, webhooks } from './webhook.ts';

export async function webhookStats(store: ReadableStore, at: number) {
  // NaN while the database is unavailable, so that the metrics and the home page still show the other numbers.
  const oldestAt = await store.deliveries.oldestPendingAt().catch((error: unknown) => {
    if (isUnavailable(error)) return NaN;
    throw error;
  });
  return {
    webhook_deliveries_pending: store.deliveries.pending().count,
    webhook_oldest_pending_seconds: oldestAt === undefined ? 0 : Math.max(0, at - oldestAt) / 1000,
    webhook_deactivated: [...store.all(webhooks)].filter(isDeactivated).length,
    /** How many deliveries this process has removed that could have been recovered. */
    webhook_evictions_total: store.deliveries.evicted(),
  };
}
