// The values of the metrics about webhooks, which the home page shows too.
import type { ReadableStore } from '../store/store.ts';
import { isDeactivated, webhooks } from './webhook.ts';

export function webhookStats(store: ReadableStore, at: number) {
  const { count, oldestAt } = store.deliveries.pending();
  return {
    webhook_deliveries_pending: count,
    webhook_oldest_pending_seconds: oldestAt === undefined ? 0 : Math.max(0, at - oldestAt) / 1000,
    webhook_deactivated: [...store.all(webhooks)].filter(isDeactivated).length,
    /** How many deliveries this process has removed that could have been recovered. */
    webhook_evictions_total: store.deliveries.evicted(),
  };
}
