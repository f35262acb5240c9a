// Webhooks: their receivers, subscriptions and keys, and the rules for changing them.
import { ServiceError } from '../errors.ts';
import type { Shape } from '../store/shape.ts';
import type { Reader, Table, Transaction } from '../store/transaction.ts';
import type { EventDraft } from './event.ts';
import { type FailurePolicy, type FailureWindow, endOfWindow } from './failure-window.ts';

export const contentTypes = ['application/json', 'application/x-www-form-urlencoded'] as const;

export type WebhookTraits = {
  readonly name: string;
  readonly hookUrl: string;
  readonly changeTypes: readonly string[];
  /** `Folder/Name.Type`; null for the whole organization. */
  readonly service: string | null;
  readonly contentType: (typeof contentTypes)[number];
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
  readonly window: FailureWindow | null;
  readonly signatureKey: string;
  readonly previousKeys: readonly { readonly key: string; readonly until: number }[];
};

export const webhooks: Table<Webhook> = {
  name: 'webhooks',
  keyOf: ({ id }) => id,
  shape: {
    id: 'key',
    name: 'text',
    hookUrl: 'text',
    changeTypes: 'json',
    service: 'text',
    contentType: 'text',
    active: 'flag',
    createdAt: 'number',
    updatedAt: 'number',
    deactivatedAt: 'number',
    deactivatedBy: 'text',
    deactivations: 'number',
    window: 'json',
    signatureKey: 'secret',
    previousKeys: 'secret',
  } satisfies Shape<Webhook>,
};

export function listWebhooks(reader: Reader, service?: string): Webhook[] {
  const listed = [...reader.all(webhooks)].filter((webhook) => !service || webhook.service === service);
  return listed.sort((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
}

export function subscribesTo(
  webhook: Webhook,
  { type, service }: Pick<EventDraft, 'type' | 'service'>,
): boolean {
  const matchesService = webhook.service === null || webhook.service === service;
  const matchesType = webhook.changeTypes.some((subscribed) => subscribed === '*' || subscribed === type);
  return webhook.active && matchesService && matchesType;
}

export type NewWebhook = WebhookTraits & Pick<Webhook, 'id' | 'active' | 'signatureKey'>;

export function createWebhook(transaction: Transaction, given: NewWebhook, at: number): Webhook {
  refuseTakenName(transaction, given);
  const webhook: Webhook = {
    ...given,
    createdAt: at,
    updatedAt: at,
    deactivatedAt: null,
    deactivatedBy: null,
    deactivations: 0,
    window: null,
    previousKeys: [],
  };
  transaction.put(webhooks, webhook);
  return webhook;
}

export function requireWebhook(reader: Reader, id: string): Webhook {
  const webhook = reader.get(webhooks, id);
  if (!webhook) throw new ServiceError('not-found', 'There is no such webhook.');
  return webhook;
}

/** Reads the webhook again, because it may have changed since the request found it. */
export function editWebhook(
  transaction: Transaction,
  id: string,
  changeOf: (webhook: Webhook) => Partial<Omit<Webhook, 'id'>>,
  at: number,
): Webhook {
  const webhook = requireWebhook(transaction, id);
  const edited = { ...webhook, ...changeOf(webhook), updatedAt: at };
  refuseTakenName(transaction, edited);
  transaction.put(webhooks, edited);
  return edited;
}

export const activation = { active: true, deactivatedAt: null, deactivatedBy: null, window: null } as const;

export function deactivation({ deactivations }: Webhook, by: 'failures' | 'administrator', at: number) {
  const counted = { deactivations: deactivations + 1, updatedAt: at };
  return { active: false, deactivatedAt: at, deactivatedBy: by, ...counted } as const;
}

const maxPreviousKeys = 4;

/** Without a grace period, all previous keys stop signing, because any of them may have leaked. */
export function rotateKey(
  transaction: Transaction,
  id: string,
  { key, graceMs }: { key: string; graceMs: number },
  at: number,
): Webhook {
  const change = ({ signatureKey: previous, previousKeys }: Webhook) => {
    const kept = [{ key: previous, until: at + graceMs }, ...previousKeys.filter(({ until }) => at < until)];
    return { signatureKey: key, previousKeys: graceMs === 0 ? [] : kept.slice(0, maxPreviousKeys) };
  };
  return editWebhook(transaction, id, change, at);
}

export function signingKeys({ signatureKey, previousKeys }: Webhook, at: number): string[] {
  return [signatureKey, ...previousKeys.filter(({ until }) => at < until).map(({ key }) => key)];
}

export function previousKeyUntil({ previousKeys }: Webhook, at: number): number | null {
  const latest = Math.max(0, ...previousKeys.map(({ until }) => until));
  return at < latest ? latest : null;
}

/** Leaves out the keys: only the response that creates a key shows it. */
export function webhookToJson(webhook: Webhook, policy: FailurePolicy, at: number) {
  const { id, name, hookUrl, changeTypes, service, active, contentType } = webhook;
  const { createdAt, updatedAt, deactivatedAt, deactivatedBy, window } = webhook;
  // An ended window is shown only if it explains why the webhook was deactivated.
  const shown = window && active && at >= endOfWindow(policy, window) ? null : window;
  return {
    id,
    name,
    hookUrl,
    changeTypes,
    service,
    active,
    contentType,
    createdAt,
    updatedAt,
    deactivatedAt,
    deactivatedBy,
    failures: {
      count: shown?.count ?? 0,
      windowStart: shown?.start ?? null,
      windowEnd: shown && endOfWindow(policy, shown),
    },
    previousKeyUntil: previousKeyUntil(webhook, at),
  };
}

function refuseTakenName(transaction: Transaction, { id, name }: { id: string; name: string }): void {
  for (const other of transaction.all(webhooks)) {
    if (other.id !== id && other.name.toLowerCase() === name.toLowerCase()) {
      throw new ServiceError('conflict', `A webhook named ${other.name} exists already.`);
    }
  }
}
