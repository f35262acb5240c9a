// What a pending delivery waits for, in words.
import { renderTime } from '../../console/json.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { ReadableStore } from '../../store/store.ts';
import { maxCountedDeliveries } from '../queue/delivery-filter.ts';
import type { QueuePosition } from '../queue/delivery-queue.ts';
import { type Delivery, nextAttemptAt, retryWaitMs, slotsPerReceiver } from '../queue/delivery.ts';
import { receiverOf } from '../sending/target-policy.ts';
import { webhookSettings } from '../settings.ts';
import { type Webhook, listWebhooks, webhooks } from '../webhook.ts';

/** Undefined if the delivery has ended. */
export async function explainWaiting(
  store: ReadableStore,
  delivery: Delivery,
  now: number,
): Promise<Html | undefined> {
  const settings = store.read(webhookSettings);
  const at = nextAttemptAt(delivery, settings);
  const webhook = store.get(webhooks, delivery.webhookId);
  if (at === null || !webhook) return undefined;
  const place = await store.deliveries.positionOf(delivery.id, {
    at: now,
    retryWaitMs: retryWaitMs(settings),
    webhookIds: webhooksWithReceiverOf(store, webhook),
  });
  const number = delivery.attempts.length + 1;
  if (place?.isClaimed) return html`Attempt ${number} is in progress.`;
  if (at > now) return html`Attempt ${number} is due in ${formatDuration(at - now)}, at ${renderTime(at)}.`;
  return html`Attempt ${number} is due. ${place && explainPosition(place, webhook)}`;
}

function webhooksWithReceiverOf(store: ReadableStore, { hookUrl }: Webhook): string[] {
  const receiver = receiverOf(hookUrl);
  return listWebhooks(store)
    .filter((other) => receiverOf(other.hookUrl) === receiver)
    .map(({ id }) => id);
}

function explainPosition({ claimed, ahead }: QueuePosition, { hookUrl }: Webhook): string {
  const limit = `${formatCount(claimed, 'delivery')} to ${new URL(hookUrl).host} are in progress, which is the limit for a receiver. `;
  return `${claimed >= slotsPerReceiver ? limit : ''}${formatAhead(ahead)}`;
}

function formatAhead(ahead: number): string {
  if (ahead === 0) return 'It is the next delivery of this webhook.';
  const atLeast = ahead === maxCountedDeliveries ? 'At least ' : '';
  return `${atLeast}${formatCount(ahead, 'delivery')} of this webhook ${ahead === 1 ? 'goes' : 'go'} first.`;
}
