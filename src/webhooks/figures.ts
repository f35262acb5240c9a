// What an operator watches of webhooks.
import type { Reader } from '../store/transaction.ts';
import { deliveries } from './delivery.ts';
import { webhooks } from './webhook.ts';

export type WebhookFigures = {
  readonly pending: number;
  readonly oldestPendingSeconds: number;
  /** Those deactivated for their failures. */
  readonly deactivated: number;
};

export function webhookFigures(reader: Reader, at: number): WebhookFigures {
  const { count, oldest } = reader.waiting(deliveries);
  const deactivated = [...reader.all(webhooks)].filter(({ deactivatedBy }) => deactivatedBy === 'failures');
  return {
    pending: count,
    oldestPendingSeconds: Math.max(0, at - (oldest()?.createdAt ?? at)) / 1000,
    deactivated: deactivated.length,
  };
}
