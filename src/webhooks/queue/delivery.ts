// A delivery is one event for one webhook.
//
// It is `pending` from the moment its event is stored. A successful attempt ends it as `delivered`. After a failed
// attempt it stays pending until the next attempt is due; if the settings at the end of the attempt allow no
// further one, it ends as `failed`. If the webhook is deactivated, its pending deliveries end as `discarded`; if it
// is deleted, they are deleted too. If the webhook is inactive when the event is stored, or too many deliveries are
// pending for an event of the server itself, the delivery is `missed` from the start. A failed delivery counts
// towards the deactivation of its webhook (failure-window.ts). A ping is attempted once, even if the webhook is
// inactive, and its failure never counts.
//
// A redelivery is a new delivery of the same event. `redeliveryOf` of the new one and `redeliveredAs` of the other
// one link the two. Failed, discarded and missed deliveries can be recovered by a redelivery, until they have one;
// pings cannot.
//
// The time of the next attempt is not stored. It follows from the last attempt and the settings of the moment, so a
// changed wait applies to deliveries that already wait.
import type { Runtime } from '../../lib/runtime.ts';
import { type WebhookEvent, bytesOfPayload } from '../event.ts';
import type { WebhookSettings } from '../settings.ts';
import type { BodyFormat, Webhook } from '../webhook.ts';

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
  /** Absent: the envelope. */
  readonly bodyFormat?: BodyFormat;
  /** The field of the body with its signature. */
  readonly signatureField?: string;
};

export const deliveryStates = ['pending', 'delivered', 'failed', 'discarded', 'missed'] as const;

export type DeliveryState = (typeof deliveryStates)[number];

/** The states that a redelivery can recover. */
export const recoverableStates = ['failed', 'discarded', 'missed'] as const satisfies DeliveryState[];

export type Delivery = {
  /** Made for the time of its creation, with which a store may find it. */
  readonly id: string;
  readonly webhookId: string;
  readonly event: WebhookEvent;
  readonly isPing: boolean;
  readonly state: DeliveryState;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly attempts: readonly Attempt[];
  /** The id of the delivery that this one repeats. */
  readonly redeliveryOf: string | null;
  /** The id of the newest delivery that repeats this one. */
  readonly redeliveredAs: string | null;
};

const noAttempts: readonly Attempt[] = Object.freeze([]);

type NewDelivery = Pick<Delivery, 'id' | 'webhookId' | 'event' | 'isPing'>;

export function newDelivery(given: NewDelivery, at: number): Delivery {
  return create(given, 'pending', at, null);
}

export function redeliveryOf(delivery: Delivery, id: string, at: number): Delivery {
  const { webhookId, event, isPing } = delivery;
  return create({ id, webhookId, event, isPing }, 'pending', at, delivery.id);
}

function create(
  { id, webhookId, event, isPing }: NewDelivery,
  state: 'pending' | 'missed',
  at: number,
  redeliveryOf: string | null,
): Delivery {
  // There may be many deliveries, and an object made with spread syntax takes three times the memory.
  return {
    id,
    webhookId,
    event,
    isPing,
    state,
    createdAt: at,
    endedAt: state === 'pending' ? null : at,
    attempts: noAttempts,
    redeliveryOf,
    redeliveredAs: null,
  };
}

export type AnnounceOptions = {
  /** The webhook that the event is about, which does not get it. */
  readonly about?: string | undefined;
  /** Whether active webhooks miss the event too. */
  readonly isMissed?: boolean;
};

/** The new deliveries of an event: one for each webhook that gets it, pending or missed. */
export function deliveriesOf(
  subscribers: Iterable<Webhook>,
  event: WebhookEvent,
  newId: Runtime['newId'],
  { about, isMissed = false }: AnnounceOptions = {},
): Delivery[] {
  const made: Delivery[] = [];
  for (const webhook of subscribers) {
    if (webhook.id === about) continue;
    const given = { id: newId(event.timestamp), webhookId: webhook.id, event, isPing: false };
    // Nothing of a missed delivery is sent until it is redelivered.
    made.push(create(given, webhook.active && !isMissed ? 'pending' : 'missed', event.timestamp, null));
  }
  return made;
}

export function countPending(deliveries: readonly Delivery[]): number {
  return deliveries.reduce((count, { state }) => (state === 'pending' ? count + 1 : count), 0);
}

/**
 * A due delivery with a lower number goes first: a ping, then a retry, then a first attempt. If first attempts went
 * before retries, a receiver that never answers and has many pending deliveries would be deactivated late.
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

/** Retention limits each kind of finished deliveries by itself, so that none of them pushes out another. */
export const finishedKinds = ['history', 'recoverable', 'redelivered'] as const;

export type FinishedKind = (typeof finishedKinds)[number];

export function kindOf({ state, isPing, redeliveredAs }: Delivery): FinishedKind {
  if (state === 'delivered' || isPing) return 'history';
  return redeliveredAs === null ? 'recoverable' : 'redelivered';
}

/** Whether a redelivery can recover the delivery. */
export function isRecoverable(delivery: Delivery): boolean {
  return delivery.state !== 'pending' && kindOf(delivery) === 'recoverable';
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

/**
 * `isActive`: whether the webhook is active and was active during the whole attempt. If not, the outcome is kept all the
 * same, because the receiver may have got the request.
 */
export function endAttempt(
  delivery: Delivery,
  attempt: Attempt,
  { notificationAttempts }: WebhookSettings,
  isActive: boolean,
): Delivery {
  const at = endOf(attempt);
  const attempts = [...delivery.attempts.map(withoutRequest), attempt];
  const attempted = replace(delivery, { attempts });
  if (attempt.error === null) return end(attempted, 'delivered', at);
  if (delivery.isPing || attempts.length >= notificationAttempts) return end(attempted, 'failed', at);
  return isActive ? attempted : end(attempted, 'discarded', at);
}

export function withRedelivery(delivery: Delivery, redeliveredAs: string): Delivery {
  return replace(delivery, { redeliveredAs });
}

function withoutRequest({ request: _request, ...attempt }: Attempt): Attempt {
  return attempt;
}

export function discard(delivery: Delivery, at: number): Delivery {
  return end(delivery, 'discarded', at);
}

function end(delivery: Delivery, state: 'delivered' | 'failed' | 'discarded', endedAt: number): Delivery {
  return replace(delivery, { state, endedAt });
}

type Changes = Partial<Pick<Delivery, 'state' | 'endedAt' | 'attempts' | 'redeliveredAs'>>;

// Without spread syntax, for the same reason as `create`.
function replace(delivery: Delivery, changes: Changes): Delivery {
  const { createdAt, redeliveryOf, state, endedAt, attempts, redeliveredAs } = delivery;
  const copy = create(delivery, 'pending', createdAt, redeliveryOf);
  return Object.assign(copy, { state, endedAt, attempts, redeliveredAs }, changes);
}

/** What a finished delivery takes besides its texts. */
const recordBytes = 400;

/** The bytes that a finished delivery takes: its record, its payload, and what its attempts have recorded. */
export function bytesOfFinished({ event, attempts }: Delivery): number {
  return attempts.reduce(
    (sum, { response, responseHeaders, request }) =>
      sum + (response?.length ?? 0) + bytesOfHeaders(responseHeaders) + bytesOfHeaders(request?.headers),
    recordBytes + bytesOfPayload(event),
  );
}

function bytesOfHeaders(headers: Readonly<Record<string, string>> = {}): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}
