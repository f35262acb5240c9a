// Webhooks: their receivers, subscriptions, states and keys. registry.ts has the rules for changing them.
import { Secret, SecretEntries, SecretUrl } from '../lib/audit-fields.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Reader, Table } from '../store/state.ts';
import {
  type FailurePolicy,
  type FailureWindow,
  endOfWindow,
  failureWindowOf,
  isFailing,
} from './sending/failure-window.ts';
import { serviceTypes } from './event-types.ts';
import { type CustomHeader, maskHeaders } from './sending/headers.ts';
import { webhookSettings } from './settings.ts';

export const contentTypes = ['application/json', 'application/x-www-form-urlencoded'] as const;

/** `payload`: the body is the payload of the event as it was published, and nothing else. */
export const bodyFormats = ['envelope', 'payload'] as const;

export type BodyFormat = (typeof bodyFormats)[number];

export type WebhookTraits = {
  readonly name: string;
  readonly hookUrl: string;
  readonly changeTypes: readonly string[];
  /** `Folder/Name.Type`; null for the whole organization. */
  readonly service: string | null;
  readonly contentType: (typeof contentTypes)[number];
  readonly bodyFormat: BodyFormat;
  readonly headers: readonly CustomHeader[];
};

export type Webhook = WebhookTraits & {
  readonly id: string;
  readonly active: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deactivatedAt: number | null;
  readonly deactivatedBy: 'failures' | 'administrator' | null;
  /** Shows whether the webhook was deactivated and activated again during an attempt. */
  readonly deactivations: number;
  /** What ended until then does not count as undelivered. */
  readonly dismissedAt: number | null;
  /** The last warning that the webhook is failing. */
  readonly warning: FailureWarning | null;
  readonly signatureKey: string;
  readonly previousKeys: readonly { readonly key: string; readonly until: number }[];
};

type FailureWarning = {
  /** The failure window when the warning was published. */
  readonly window: FailureWindow;
  readonly hasRecovered: boolean;
};

export const webhooks: Table<Webhook> = {
  name: 'webhooks',
  keyOf: ({ id }) => id,
  defaults: { bodyFormat: 'envelope' },
  secretFields: ['signatureKey', 'previousKeys', 'headers'],
  auditFields: (webhook) => ({
    name: webhook.name,
    hookUrl: new SecretUrl(webhook.hookUrl),
    changeTypes: webhook.changeTypes,
    service: webhook.service,
    contentType: webhook.contentType,
    bodyFormat: webhook.bodyFormat,
    headers: new SecretEntries(webhook.headers),
    active: webhook.active,
    deactivatedBy: webhook.deactivatedBy,
    signatureKey: new Secret(webhook.signatureKey),
    previousKeys: new Secret(webhook.previousKeys),
  }),
};

export function listWebhooks(reader: Reader, service?: string): Webhook[] {
  const listed = [...reader.all(webhooks)].filter((webhook) => !service || webhook.service === service);
  return listed.sort((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
}

/** The active webhooks that get events of every service. */
export function listForAllServices(reader: Reader): Webhook[] {
  return listWebhooks(reader).filter(
    ({ active, service, changeTypes }) =>
      active && service === null && changeTypes.some((type) => type === '*' || serviceTypes.includes(type)),
  );
}

export function requireWebhook(reader: Reader, id: string): Webhook {
  const webhook = reader.get(webhooks, id);
  if (!webhook) throw webhookNotFound();
  return webhook;
}

export function webhookNotFound(): ServiceError {
  return new ServiceError('not-found', 'There is no such webhook.');
}

export function requireActive(reader: Reader, id: string): void {
  const { name, active } = requireWebhook(reader, id);
  if (!active) throw new ServiceError('conflict', `The webhook ${name} is not active: activate it first.`);
}

export function signingKeys({ signatureKey, previousKeys }: Webhook, at: number): string[] {
  return [signatureKey, ...previousKeys.filter(({ until }) => at < until).map(({ key }) => key)];
}

export function previousKeyUntil({ previousKeys }: Webhook, at: number): number | null {
  const latest = Math.max(0, ...previousKeys.map(({ until }) => until));
  return at < latest ? latest : null;
}

/** Leaves out the keys, which only the response that creates a key shows, and the values of headers. */
export function webhookToJson(reader: Reader, webhook: Webhook, at: number, undelivered = 0) {
  const { id, name, hookUrl, changeTypes, service, active, contentType, bodyFormat } = webhook;
  const { createdAt, updatedAt, deactivatedAt, deactivatedBy } = webhook;
  const { health, failures, windowStart, windowEnd } = readHealth(reader, webhook, at, undelivered);
  return {
    id,
    name,
    hookUrl,
    changeTypes,
    service,
    active,
    contentType,
    bodyFormat,
    headers: maskHeaders(webhook.headers),
    createdAt,
    updatedAt,
    deactivatedAt,
    deactivatedBy,
    health,
    undelivered: Math.min(undelivered, maxUndelivered),
    undeliveredIsExact: undelivered <= maxUndelivered,
    failures: { count: failures, windowStart, windowEnd },
    previousKeyUntil: previousKeyUntil(webhook, at),
  };
}

/** Answers and pages count no further: they are read often. */
export const maxUndelivered = 1_000;

export const healths = ['ok', 'behind', 'failing', 'deactivated', 'inactive'] as const;

export type WebhookHealth = (typeof healths)[number];

/** `failures` are those in the failure window; `left` is how many more deactivate the webhook. */
export type HealthView = {
  readonly webhook: Webhook;
  readonly health: WebhookHealth;
  readonly failures: number;
  readonly left: number;
  readonly windowStart: number | null;
  readonly windowEnd: number | null;
};

/** Without the number of undelivered ones, a webhook that is behind counts as ok. */
export function readHealth(reader: Reader, webhook: Webhook, at: number, undelivered = 0): HealthView {
  const policy = reader.read(webhookSettings);
  const window = failureWindowOf(reader, webhook.id);
  // An ended window is shown only if it explains why the webhook was deactivated.
  const shown = window && webhook.active && at >= endOfWindow(policy, window) ? null : window;
  const failures = shown?.count ?? 0;
  return {
    webhook,
    health: healthOf(webhook, shown, policy, undelivered),
    failures,
    left: Math.max(1, policy.numberOfFailures - failures),
    windowStart: shown?.start ?? null,
    windowEnd: shown && endOfWindow(policy, shown),
  };
}

function healthOf(
  webhook: Webhook,
  window: FailureWindow | null,
  policy: FailurePolicy,
  undelivered: number,
): WebhookHealth {
  if (isDeactivated(webhook)) return 'deactivated';
  if (!webhook.active) return 'inactive';
  if (window && isFailing(policy, window)) return 'failing';
  return undelivered > 0 ? 'behind' : 'ok';
}

/** Whether its failures have deactivated the webhook. */
export function isDeactivated({ active, deactivatedBy }: Webhook): boolean {
  return !active && deactivatedBy === 'failures';
}
