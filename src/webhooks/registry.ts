// The rules for changing webhooks and their settings.
import { maskedValue } from '../lib/audit-fields.ts';
import { invalid, problemsOf, requireVersion, ServiceError } from '../lib/errors.ts';
import { versionOf } from '../lib/json.ts';
import { updated } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';
import { endRedeliveries } from './queue/redelivery.ts';
import { clearFailures } from './sending/failure-window.ts';
import { type CustomHeader, type HeadersResult, keepMasked } from './sending/headers.ts';
import { receiverOf } from './sending/target-policy.ts';
import { type WebhookSettings, webhookSettings } from './settings.ts';
import { type Webhook, type WebhookTraits, requireWebhook, webhooks } from './webhook.ts';

type NewWebhook = WebhookTraits & Pick<Webhook, 'id' | 'active' | 'signatureKey'>;

/** Every process holds all webhooks in memory, and reads them all for some pages and answers. */
export const maxWebhooks = 100_000;

export function createWebhook(transaction: Transaction, given: NewWebhook, at: number): Webhook {
  if (transaction.count(webhooks) >= maxWebhooks)
    throw new ServiceError('conflict', `There can be at most ${maxWebhooks} webhooks: delete one first.`);
  refuseTakenName(transaction, given);
  const webhook: Webhook = {
    ...given,
    createdAt: at,
    updatedAt: at,
    deactivatedAt: null,
    deactivatedBy: null,
    deactivations: 0,
    dismissedAt: null,
    warning: null,
    previousKeys: [],
  };
  transaction.put(webhooks, webhook);
  return webhook;
}

/** The rules read the webhook again, because it may have changed since the request found it. */
export function editWebhook(
  transaction: Transaction,
  id: string,
  { active, ...traits }: Partial<WebhookTraits & Pick<Webhook, 'active'>>,
  { at, version }: { at: number; version: number | undefined },
): void {
  const webhook = requireWebhook(transaction, id);
  requireVersion('The webhook was', webhook.updatedAt, version);
  // The request was checked before, but the webhook may have changed since.
  const kept = headersAfter(traits, webhook);
  if ('problems' in kept) throw invalid(problemsOf('headers', kept.problems));
  const edited = updated(webhook, { ...traits, headers: kept.headers }, at);
  refuseTakenName(transaction, edited);
  transaction.put(webhooks, edited);
  if (active === false) deactivateWebhook(transaction, id, 'administrator', at);
  // Saving the form of an active webhook must not clear its failures.
  if (active === true && !edited.active) activateWebhook(transaction, id, at);
}

/** The headers after an edit. An administrator could read the stored values by sending them to another origin. */
export function headersAfter(
  { hookUrl, headers }: { hookUrl?: string | undefined; headers?: readonly CustomHeader[] | undefined },
  stored: Webhook,
): HeadersResult {
  const isSameOrigin = hookUrl === undefined || receiverOf(hookUrl) === receiverOf(stored.hookUrl);
  if (isSameOrigin) return headers ? keepMasked(headers, stored.headers) : { headers: stored.headers };
  const entered = headers ?? stored.headers.map(({ name }) => ({ name, value: maskedValue }));
  const problems = entered
    .filter(({ value }) => value === maskedValue)
    .map(
      ({ name }) =>
        `the value of ${name} must be entered again, or ${name} removed: hookUrl has another origin.`,
    );
  return problems.length > 0 ? { problems } : { headers: entered };
}

/** Clears the failure window, also of a webhook that is active. */
export function activateWebhook(transaction: Transaction, id: string, at: number): void {
  const webhook = requireWebhook(transaction, id);
  const activation = {
    active: true,
    deactivatedAt: null,
    deactivatedBy: null,
    warning: null,
  };
  transaction.put(webhooks, updated(webhook, activation, at));
  clearFailures(transaction, id);
}

export function deactivateWebhook(
  transaction: Transaction,
  id: string,
  by: 'failures' | 'administrator',
  at: number,
): void {
  const webhook = requireWebhook(transaction, id);
  const { active, deactivations } = webhook;
  const deactivation = {
    active: false,
    deactivatedAt: at,
    deactivatedBy: by,
    deactivations: deactivations + 1,
  };
  if (active) transaction.put(webhooks, updated(webhook, deactivation, at));
  endRedeliveries(transaction, id);
  transaction.deliveries.discardPending(id, at);
}

/** What has ended until `at` counts as undelivered no more. Nothing changes that `edit` shows, so `updatedAt` stays. */
export function dismissUndelivered(transaction: Transaction, id: string, at: number): void {
  transaction.put(webhooks, { ...requireWebhook(transaction, id), dismissedAt: at });
}

/** Returns how many webhooks it has activated: `activateWebhook` would clear the failures of active ones. */
export function activateAll(transaction: Transaction, chosen: readonly Webhook[], at: number): number {
  const inactive = chosen.filter(({ active }) => !active);
  for (const { id } of inactive) activateWebhook(transaction, id, at);
  return inactive.length;
}

/** Likewise. */
export function deactivateAll(transaction: Transaction, chosen: readonly Webhook[], at: number): number {
  const active = chosen.filter((webhook) => webhook.active);
  for (const { id } of active) deactivateWebhook(transaction, id, 'administrator', at);
  return active.length;
}

export function deleteWebhook(transaction: Transaction, id: string): void {
  requireWebhook(transaction, id);
  transaction.remove(webhooks, id);
  endRedeliveries(transaction, id);
  clearFailures(transaction, id);
  transaction.deliveries.deleteAll(id);
}

/** Keys may be rotated faster than receivers change theirs. */
const maxPreviousKeys = 4;

/** Without a grace period, all previous keys stop signing, because any of them may have leaked. */
export function rotateKey(
  transaction: Transaction,
  id: string,
  { key, graceMs }: { key: string; graceMs: number },
  at: number,
): Webhook {
  const webhook = requireWebhook(transaction, id);
  const stillSigning = webhook.previousKeys.filter(({ until }) => at < until);
  const kept = [{ key: webhook.signatureKey, until: at + graceMs }, ...stillSigning];
  const previousKeys = graceMs === 0 ? [] : kept.slice(0, maxPreviousKeys);
  const rotated = { ...webhook, signatureKey: key, previousKeys, updatedAt: at };
  transaction.put(webhooks, rotated);
  return rotated;
}

export function changeSettings(
  transaction: Transaction,
  { version, ...change }: Partial<WebhookSettings> & { readonly version?: number },
): WebhookSettings {
  const present = transaction.read(webhookSettings);
  if (version !== undefined) requireVersion('The webhook settings were', versionOf(present), version);
  const settings = { ...present, ...change };
  transaction.write(webhookSettings, settings);
  return settings;
}

function refuseTakenName(transaction: Transaction, { id, name }: { id: string; name: string }): void {
  for (const other of transaction.all(webhooks)) {
    if (other.id !== id && other.name.toLowerCase() === name.toLowerCase()) {
      throw new ServiceError('conflict', `A webhook named ${other.name} exists already.`);
    }
  }
}
