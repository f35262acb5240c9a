// A delivery is one event for one webhook.
//
// It is `pending` from the moment its event is stored. A successful attempt ends it as `delivered`. After a failed attempt it stays
// pending until the next attempt is due; if the settings at the end of the attempt allow no further one, it ends as `failed`. If the
// webhook is deactivated, its pending deliveries end as `discarded`; if it is deleted, they are deleted too. A failed delivery counts
// towards the deactivation of its webhook (failure-window.ts). A ping is attempted once, even if the webhook is inactive, and its
// failure never counts.
import type { Shape } from '../store/shape.ts';
import type { Queue, Reader, Transaction } from '../store/transaction.ts';
import { type WebhookEvent, bytesOfPayload } from './event.ts';
import { type FailureWindow, countFailure } from './failure-window.ts';
import { type WebhookSettings, webhookSettings } from './settings.ts';
import { type Webhook, deactivation, subscribesTo, webhooks } from './webhook.ts';

export type Attempt = {
  readonly when: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly response: string | null;
};

export type Delivery = {
  readonly id: string;
  readonly webhookId: string;
  readonly event: WebhookEvent;
  readonly isPing: boolean;
  readonly state: 'pending' | 'delivered' | 'failed' | 'discarded';
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly nextAttemptAt: number | null;
  readonly attempts: readonly Attempt[];
};

export const deliveries: Queue<Delivery> = {
  name: 'deliveries',
  shape: {
    id: 'key',
    webhookId: 'owner',
    event: 'json',
    isPing: 'flag',
    state: 'text',
    createdAt: 'number',
    endedAt: 'number',
    nextAttemptAt: 'number',
    attempts: {
      table: 'attempts',
      shape: {
        when: 'number',
        durationMs: 'number',
        status: 'number',
        error: 'text',
        response: 'text',
      } satisfies Shape<Attempt>,
    },
  } satisfies Shape<Delivery>,
  keyOf: ({ id }) => id,
  ownerOf: ({ webhookId }) => webhookId,
  // Times are whole milliseconds, rounded down. Without the added one, a wait could be up to a millisecond too short.
  dueAt: ({ nextAttemptAt, attempts }) =>
    nextAttemptAt === null || attempts.length === 0 ? nextAttemptAt : nextAttemptAt + 1,
  // Retries go before first attempts. Without this, a receiver that never answers and has many pending deliveries is deactivated late.
  isUrgent: ({ isPing, attempts }) => isPing || attempts.length > 0,
  isDull: ({ state, attempts }) => state === 'discarded' && attempts.length === 0,
  bytesOf: ({ event }) => bytesOfPayload(event),
};

const noAttempts: readonly Attempt[] = Object.freeze([]);

export type NewDelivery = Pick<Delivery, 'id' | 'webhookId' | 'event' | 'isPing'>;

export function addDelivery(transaction: Transaction, given: NewDelivery, at: number): void {
  // There may be many deliveries, and an object made with spread syntax takes three times the memory.
  transaction.enqueue(deliveries, {
    id: given.id,
    webhookId: given.webhookId,
    event: given.event,
    isPing: given.isPing,
    state: 'pending',
    createdAt: at,
    endedAt: null,
    nextAttemptAt: at,
    attempts: noAttempts,
  });
}

export function subscribersOf(reader: Reader, event: WebhookEvent): Webhook[] {
  return [...reader.all(webhooks)].filter((webhook) => subscribesTo(webhook, event));
}

export function addDeliveries(
  transaction: Transaction,
  event: WebhookEvent,
  subscribers: readonly Webhook[],
  newId: () => string,
): void {
  for (const { id: webhookId } of subscribers) {
    addDelivery(transaction, { id: newId(), webhookId, event, isPing: false }, event.timestamp);
  }
}

export function endOf({ when, durationMs }: Attempt): number {
  return when + durationMs;
}

function endAttempt(
  delivery: Delivery,
  attempt: Attempt,
  { notificationAttempts, notificationElapsedTimeInSeconds }: WebhookSettings,
  isActive: boolean,
): Delivery {
  const at = endOf(attempt);
  const attempted = { ...delivery, attempts: [...delivery.attempts, attempt] };
  if (attempt.error === null) return end(attempted, 'delivered', at);
  if (delivery.isPing || attempted.attempts.length >= notificationAttempts)
    return end(attempted, 'failed', at);
  if (!isActive) return end(attempted, 'discarded', at);
  return { ...attempted, nextAttemptAt: at + notificationElapsedTimeInSeconds * 1000 };
}

function end(delivery: Delivery, state: 'delivered' | 'failed' | 'discarded', at: number): Delivery {
  return { ...delivery, state, endedAt: at, nextAttemptAt: null };
}

export type Deactivated = { readonly webhook: Webhook; readonly window: FailureWindow };

export function settleAttempt(
  transaction: Transaction,
  delivery: Delivery,
  attempt: Attempt,
  { sentTo, keep }: { sentTo: Webhook; keep: number },
): { readonly delivery: Delivery; readonly deactivated: Deactivated | undefined } {
  const webhook = transaction.get(webhooks, delivery.webhookId);
  const settings = transaction.read(webhookSettings);
  const at = endOf(attempt);
  // If the webhook was deactivated and activated again during the attempt, its deliveries were discarded: it counts as inactive.
  const isActive = webhook?.active === true && webhook.deactivations === sentTo.deactivations;
  const settled = endAttempt(delivery, attempt, settings, isActive);
  transaction.settle(deliveries, delivery, settled);
  const isFailure = settled.state === 'failed' && !settled.isPing && isActive;
  const deactivated = isFailure ? recordFailure(transaction, webhook, settings, { keep, at }) : undefined;
  if (settled.nextAttemptAt === null) transaction.trim(deliveries, delivery.webhookId, keep);
  return { delivery: settled, deactivated };
}

function recordFailure(
  transaction: Transaction,
  webhook: Webhook,
  settings: WebhookSettings,
  { keep, at }: { keep: number; at: number },
): Deactivated | undefined {
  const { window, deactivates } = countFailure(settings, webhook.window, at);
  const counted = { ...webhook, window };
  transaction.put(webhooks, deactivates ? { ...counted, ...deactivation(webhook, 'failures', at) } : counted);
  if (!deactivates) return undefined;
  discardPending(transaction, webhook.id, { keep, at });
  return { webhook, window };
}

/** Leaves out claimed deliveries, because their attempts settle them. */
export function discardPending(
  transaction: Transaction,
  webhookId: string,
  { keep, at }: { keep: number; at: number },
): void {
  // `trim` would remove untried deliveries that exceed the history anyway. There may be very many, so `thin` removes them first.
  transaction.thin(deliveries, webhookId, keep);
  transaction.amend(deliveries, webhookId, (delivery) =>
    delivery.isPing ? delivery : end(delivery, 'discarded', at),
  );
  transaction.trim(deliveries, webhookId, keep);
}

export function discardClaimed(
  transaction: Transaction,
  delivery: Delivery,
  { keep, at }: { keep: number; at: number },
): void {
  transaction.settle(deliveries, delivery, end(delivery, 'discarded', at));
  transaction.trim(deliveries, delivery.webhookId, keep);
}

/** Without `amend`, a new wait between attempts would not apply to deliveries that already wait. */
export function changeSettings(transaction: Transaction, change: Partial<WebhookSettings>): WebhookSettings {
  const before = transaction.read(webhookSettings);
  const settings = { ...before, ...change };
  transaction.write(webhookSettings, settings);
  const elapsed = settings.notificationElapsedTimeInSeconds;
  if (elapsed === before.notificationElapsedTimeInSeconds) return settings;
  transaction.amend(deliveries, undefined, (delivery) => {
    const last = delivery.attempts.at(-1);
    return last ? { ...delivery, nextAttemptAt: endOf(last) + elapsed * 1000 } : delivery;
  });
  return settings;
}

/** `data` is JSON text already, so it is inserted without parsing. */
export function bodyOf({ event }: Delivery, { id, name, contentType }: Webhook): string {
  const { type, timestamp, service, data } = event;
  const head = JSON.stringify({ id: event.id, type, timestamp, service, webhookId: id, webhookName: name });
  const json = `${head.slice(0, -1)},"data":${data}}`;
  return contentType === 'application/json' ? json : new URLSearchParams({ payload: json }).toString();
}
