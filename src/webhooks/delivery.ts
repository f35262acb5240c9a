// A delivery: one event on its way to one webhook (spec 4.3, contract 5).
//
// It is `pending` from the moment its event is stored. Each attempt ends it as `delivered` or, while the settings in force at that moment
// allow another, leaves it pending until the wait is over; the last one ends it as `failed`. A delivery whose webhook is deactivated
// meanwhile is `discarded`; that of a deleted webhook is gone. A failed delivery counts towards the deactivation of its webhook
// (failure-window.ts). A ping is tried once, whether or not the webhook is active, and never counts.
import type { Shape } from '../store/shape.ts';
import type { Queue, Transaction } from '../store/transaction.ts';
import type { WebhookEvent } from './event.ts';
import { type FailureWindow, countFailure } from './failure-window.ts';
import { type WebhookSettings, webhookSettings } from './settings.ts';
import { type Webhook, deactivation, wants, webhooks } from './webhook.ts';

export type Attempt = {
  readonly when: number;
  readonly durationMs: number;
  readonly status: number | null;
  /** Null when it succeeded. */
  readonly error: string | null;
  /** The first of the receiver's answer, as text. */
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
  // Clocks cut off parts of a millisecond: one more, and no wait is shorter than it should be.
  dueAt: ({ nextAttemptAt, attempts }) =>
    nextAttemptAt === null || attempts.length === 0 ? nextAttemptAt : nextAttemptAt + 1,
  // What has begun is brought to its end before more is begun: a receiver that does not answer is found out soon.
  isUrgent: ({ isPing, attempts }) => isPing || attempts.length > 0,
  isDull: ({ state, attempts }) => state === 'discarded' && attempts.length === 0,
};

const noAttempts: readonly Attempt[] = Object.freeze([]);

export type NewDelivery = Pick<Delivery, 'id' | 'webhookId' | 'event' | 'isPing'>;

export function addDelivery(transaction: Transaction, given: NewDelivery, at: number): void {
  // Written out, because there may be many: an object that is put together from others takes three times the memory.
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

/** Stores a delivery for every active webhook that wants the event; answers how many. */
export function addDeliveries(transaction: Transaction, event: WebhookEvent, newId: () => string): number {
  const wanting = [...transaction.all(webhooks)].filter((webhook) => wants(webhook, event));
  for (const { id: webhookId } of wanting) {
    addDelivery(transaction, { id: newId(), webhookId, event, isPing: false }, event.timestamp);
  }
  return wanting.length;
}

/** When an attempt was over. */
export function endOf({ when, durationMs }: Attempt): number {
  return when + durationMs;
}

/** How an attempt that is now over leaves its delivery. */
function endAttempt(
  delivery: Delivery,
  attempt: Attempt,
  { notificationAttempts, notificationElapsedTimeInSeconds }: WebhookSettings,
  isActive: boolean,
): Delivery {
  const at = endOf(attempt);
  const tried = { ...delivery, attempts: [...delivery.attempts, attempt] };
  if (attempt.error === null) return end(tried, 'delivered', at);
  if (delivery.isPing || tried.attempts.length >= notificationAttempts) return end(tried, 'failed', at);
  if (!isActive) return end(tried, 'discarded', at);
  return { ...tried, nextAttemptAt: at + notificationElapsedTimeInSeconds * 1000 };
}

function end(delivery: Delivery, state: 'delivered' | 'failed' | 'discarded', at: number): Delivery {
  return { ...delivery, state, endedAt: at, nextAttemptAt: null };
}

/** A webhook that was deactivated for its failures, and the window that did it. */
export type Deactivated = { readonly webhook: Webhook; readonly window: FailureWindow };

/** Records a claimed delivery's attempt, and what follows from it for the webhook. */
export function settleAttempt(
  transaction: Transaction,
  delivery: Delivery,
  attempt: Attempt,
  { sentTo, keep }: { sentTo: Webhook; keep: number },
): { readonly delivery: Delivery; readonly deactivated: Deactivated | undefined } {
  const webhook = transaction.get(webhooks, delivery.webhookId);
  const settings = transaction.read(webhookSettings);
  const at = endOf(attempt);
  // One that was off and on again meanwhile is not to get what was sent before.
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

/** Nothing more is sent to the webhook; an attempt that is under way still ends. */
export function discardPending(
  transaction: Transaction,
  webhookId: string,
  { keep, at }: { keep: number; at: number },
): void {
  // There may be very many that were never tried: those that the history has no room for are not ended first.
  transaction.thin(deliveries, webhookId, keep);
  transaction.amend(deliveries, webhookId, (delivery) =>
    delivery.isPing ? delivery : end(delivery, 'discarded', at),
  );
  transaction.trim(deliveries, webhookId, keep);
}

/** A claimed delivery whose webhook was deactivated before it could be sent. */
export function discardClaimed(
  transaction: Transaction,
  delivery: Delivery,
  { keep, at }: { keep: number; at: number },
): void {
  transaction.settle(deliveries, delivery, end(delivery, 'discarded', at));
  transaction.trim(deliveries, delivery.webhookId, keep);
}

/** Changed settings hold for the next attempt of every delivery: waits that have begun are reckoned anew. */
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

/** What is sent: the same for every attempt. */
export function bodyOf({ event }: Delivery, { id, name, contentType }: Webhook): string {
  const { type, timestamp, service, data } = event;
  const head = JSON.stringify({ id: event.id, type, timestamp, service, webhookId: id, webhookName: name });
  const json = `${head.slice(0, -1)},"data":${data}}`;
  return contentType === 'application/json' ? json : new URLSearchParams({ payload: json }).toString();
}
