// A delivery is one event for one webhook.
//
// It is `pending` from the moment its event is stored. A successful attempt ends it as `delivered`. After a failed attempt it stays
// pending until the next attempt is due; if the settings at the end of the attempt allow no further one, it ends as `failed`. If the
// webhook is deactivated, its pending deliveries end as `discarded`; if it is deleted, they are deleted too. A failed delivery counts
// towards the deactivation of its webhook (failure-window.ts). A ping is attempted once, even if the webhook is inactive, and its
// failure never counts.
//
// The time of the next attempt is not stored. It follows from the last attempt and the settings of the moment, so a changed wait applies
// to deliveries that already wait.
import type { Reader } from '../store/state.ts';
import { type WebhookEvent, bytesOfPayload } from './event.ts';
import type { WebhookSettings } from './settings.ts';
import { type Webhook, subscribesTo, webhooks } from './webhook.ts';

export type Attempt = {
  readonly when: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly response: string | null;
  /** Absent if there was no response. */
  readonly responseHeaders?: Readonly<Record<string, string>>;
  /** Only the last attempt of a delivery has it. */
  readonly request?: SentRequest;
};

/** The request of an attempt. Its body follows from the event and these values. */
export type SentRequest = {
  readonly url: string;
  /** The values of custom headers are masked. */
  readonly headers: Readonly<Record<string, string>>;
  readonly webhookName: string;
};

export type Delivery = {
  readonly id: string;
  readonly webhookId: string;
  readonly event: WebhookEvent;
  readonly isPing: boolean;
  readonly state: 'pending' | 'delivered' | 'failed' | 'discarded';
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly attempts: readonly Attempt[];
};

const noAttempts: readonly Attempt[] = Object.freeze([]);

export type NewDelivery = Pick<Delivery, 'id' | 'webhookId' | 'event' | 'isPing'>;

export function newDelivery({ id, webhookId, event, isPing }: NewDelivery, at: number): Delivery {
  // There may be many deliveries, and an object made with spread syntax takes three times the memory.
  return {
    id,
    webhookId,
    event,
    isPing,
    state: 'pending',
    createdAt: at,
    endedAt: null,
    attempts: noAttempts,
  };
}

/** The new deliveries of an event: one for each active webhook that subscribes to it. */
export function deliveriesOf(reader: Reader, event: WebhookEvent, newId: () => string): Delivery[] {
  const made: Delivery[] = [];
  for (const webhook of reader.all(webhooks)) {
    if (!subscribesTo(webhook, event)) continue;
    made.push(newDelivery({ id: newId(), webhookId: webhook.id, event, isPing: false }, event.timestamp));
  }
  return made;
}

/**
 * A due delivery with a lower number goes first: a ping, then a retry, then a first attempt. If first attempts went before retries, a
 * receiver that never answers and has many pending deliveries would be deactivated late.
 */
export function priorityOf({ isPing, attempts }: Delivery): 0 | 1 | 2 {
  if (isPing) return 0;
  return attempts.length > 0 ? 1 : 2;
}

/** Since when a pending delivery waits: since its last attempt ended, or since it was created. */
export function waitingSince({ createdAt, attempts }: Delivery): number {
  const last = attempts.at(-1);
  return last ? endOf(last) : createdAt;
}

/** Whether the delivery ended without an attempt. Such deliveries are removed before other finished ones. */
export function isUntried({ state, attempts }: Delivery): boolean {
  return state === 'discarded' && attempts.length === 0;
}

export function retryWaitMs({ notificationElapsedTimeInSeconds }: WebhookSettings): number {
  return notificationElapsedTimeInSeconds * 1000;
}

export function nextAttemptAt(delivery: Delivery, settings: WebhookSettings): number | null {
  if (delivery.state !== 'pending') return null;
  const since = waitingSince(delivery);
  return delivery.attempts.length === 0 ? since : since + retryWaitMs(settings);
}

export function endOf({ when, durationMs }: Attempt): number {
  return when + durationMs;
}

/** `isActive`: whether the webhook is active and was active during the whole attempt. */
export function endAttempt(
  delivery: Delivery,
  attempt: Attempt,
  { notificationAttempts }: WebhookSettings,
  isActive: boolean,
): Delivery {
  const at = endOf(attempt);
  const attempted = replace(delivery, 'pending', null, [...delivery.attempts.map(withoutRequest), attempt]);
  if (attempt.error === null) return end(attempted, 'delivered', at);
  if (delivery.isPing || attempted.attempts.length >= notificationAttempts)
    return end(attempted, 'failed', at);
  return isActive ? attempted : end(attempted, 'discarded', at);
}

function withoutRequest({ request: _request, ...attempt }: Attempt): Attempt {
  return attempt;
}

export function discard(delivery: Delivery, at: number): Delivery {
  return end(delivery, 'discarded', at);
}

function end(delivery: Delivery, state: 'delivered' | 'failed' | 'discarded', at: number): Delivery {
  return replace(delivery, state, at, delivery.attempts);
}

// Without spread syntax, for the same reason as `newDelivery`.
function replace(
  { id, webhookId, event, isPing, createdAt }: Delivery,
  state: Delivery['state'],
  endedAt: number | null,
  attempts: readonly Attempt[],
): Delivery {
  return { id, webhookId, event, isPing, state, createdAt, endedAt, attempts };
}

/** The bytes that a finished delivery takes: its payload, and what its attempts have recorded. */
export function bytesOfFinished({ event, attempts }: Delivery): number {
  return attempts.reduce(
    (sum, { response, responseHeaders, request }) =>
      sum + (response?.length ?? 0) + bytesOfHeaders(responseHeaders) + bytesOfHeaders(request?.headers),
    bytesOfPayload(event),
  );
}

function bytesOfHeaders(headers: Readonly<Record<string, string>> = {}): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

/** `data` is JSON text already, so it is inserted without parsing. */
export function bodyOf(
  { event }: Pick<Delivery, 'event'>,
  { id, name, contentType }: Pick<Webhook, 'id' | 'name' | 'contentType'>,
): string {
  const { type, timestamp, service, data } = event;
  const head = JSON.stringify({ id: event.id, type, timestamp, service, webhookId: id, webhookName: name });
  const json = `${head.slice(0, -1)},"data":${data}}`;
  return contentType === 'application/json' ? json : new URLSearchParams({ payload: json }).toString();
}
