// Webhooks: who is told what, where, and signed with which keys; and the rules for changing them (contract 5).
import { ServiceError } from '../errors.ts';
import type { Reader, Table, Transaction } from '../store/transaction.ts';
import type { News } from './event.ts';
import { type FailurePolicy, type FailureWindow, endOfWindow } from './failure-window.ts';

export const contentTypes = ['application/json', 'application/x-www-form-urlencoded'] as const;

export type WebhookTraits = {
  readonly name: string;
  readonly hookUrl: string;
  /** `*` stands for all. */
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
  readonly window: FailureWindow | null;
  readonly signatureKey: string;
  /** Signs too until its time is over. */
  readonly previousKey: { readonly key: string; readonly until: number } | null;
};

export const webhooks: Table<Webhook> = { name: 'webhooks', keyOf: ({ id }) => id };

/** Oldest first. */
export function listWebhooks(reader: Reader, service?: string): Webhook[] {
  const listed = [...reader.all(webhooks)].filter((webhook) => !service || webhook.service === service);
  return listed.sort((a, b) => a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1));
}

export function wants(webhook: Webhook, { type, service }: Pick<News, 'type' | 'service'>): boolean {
  const isConcerned = webhook.service === null || webhook.service === service;
  return (
    webhook.active && isConcerned && webhook.changeTypes.some((wanted) => wanted === '*' || wanted === type)
  );
}

export type NewWebhook = WebhookTraits & Pick<Webhook, 'id' | 'active' | 'signatureKey'>;

export function createWebhook(transaction: Transaction, given: NewWebhook, at: number): Webhook {
  refuseTakenName(transaction, given);
  const webhook: Webhook = {
    ...given,
    ...{
      createdAt: at,
      updatedAt: at,
      deactivatedAt: null,
      deactivatedBy: null,
      window: null,
      previousKey: null,
    },
  };
  transaction.put(webhooks, webhook);
  return webhook;
}

/** Changes the webhook as it is now, not as it was when it was found. */
export function editWebhook(
  transaction: Transaction,
  id: string,
  change: Partial<Omit<Webhook, 'id'>>,
  at: number,
): Webhook {
  const webhook = transaction.get(webhooks, id);
  if (!webhook) throw noSuchWebhook();
  const edited = { ...webhook, ...change, updatedAt: at };
  refuseTakenName(transaction, edited);
  transaction.put(webhooks, edited);
  return edited;
}

/** Begins with an empty window, whatever there was before. */
export const activation = { active: true, deactivatedAt: null, deactivatedBy: null, window: null } as const;

export function deactivation(by: 'failures' | 'administrator', at: number) {
  return { active: false, deactivatedAt: at, deactivatedBy: by } as const;
}

export function rotateKey(
  transaction: Transaction,
  id: string,
  { key, graceMs }: { key: string; graceMs: number },
  at: number,
): Webhook {
  const former = transaction.get(webhooks, id)?.signatureKey ?? '';
  const previousKey = graceMs === 0 ? null : { key: former, until: at + graceMs };
  return editWebhook(transaction, id, { signatureKey: key, previousKey }, at);
}

export function signingKeys({ signatureKey, previousKey }: Webhook, at: number): string[] {
  return previousKey && at < previousKey.until ? [signatureKey, previousKey.key] : [signatureKey];
}

/** What is told of a webhook: everything but its keys. */
export function describeWebhook(webhook: Webhook, policy: FailurePolicy, at: number) {
  const { id, name, hookUrl, changeTypes, service, active, contentType } = webhook;
  const { createdAt, updatedAt, deactivatedAt, deactivatedBy, window, previousKey } = webhook;
  // A window that is over counts for nothing, but it still tells why a webhook was deactivated.
  const told = window && active && at >= endOfWindow(policy, window) ? null : window;
  return {
    ...{ id, name, hookUrl, changeTypes, service, active, contentType },
    ...{ createdAt, updatedAt, deactivatedAt, deactivatedBy },
    failures: {
      count: told?.count ?? 0,
      windowStart: told?.start ?? null,
      windowEnd: told && endOfWindow(policy, told),
    },
    previousKeyUntil: previousKey && at < previousKey.until ? previousKey.until : null,
  };
}

function refuseTakenName(transaction: Transaction, { id, name }: { id: string; name: string }): void {
  for (const other of transaction.all(webhooks)) {
    if (other.id !== id && other.name.toLowerCase() === name.toLowerCase()) {
      throw new ServiceError('conflict', `A webhook named ${other.name} exists already.`);
    }
  }
}

export function noSuchWebhook(): ServiceError {
  return new ServiceError('not-found', 'There is no such webhook.');
}
