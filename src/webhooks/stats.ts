// Computes the numbers about webhooks for the metrics and the home page.
import { isUnavailable } from '../lib/errors.ts';
import type { ReadableStore } from '../store/store.ts';
import { isDeactivated, webhooks } from './webhook.ts';

type WebhookStats = {
  readonly pending: number;
  readonly oldestPendingSeconds: number;
  readonly deactivated: number;
  readonly evicted: number;
};

export async function webhookStats(store: ReadableStore, at: number): Promise<WebhookStats> {
  return {
    pending: store.deliveries.pending().count,
    oldestPendingSeconds: await ageOfOldest(store, at),
    deactivated: [...store.all(webhooks)].filter(isDeactivated).length,
    evicted: store.deliveries.evicted(),
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
