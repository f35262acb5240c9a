// What the end of an attempt changes: the delivery, the failure window of its webhook, and the webhook if the failure deactivates it.
import type { Reader } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Attempt, type Delivery, discard, endAttempt, endOf } from './delivery.ts';
import { type FailureWindow, countFailure } from './failure-window.ts';
import type { Deactivated } from './own-events.ts';
import { deactivateWebhook } from './registry.ts';
import { webhookSettings } from './settings.ts';
import { type Webhook, webhooks } from './webhook.ts';

export type AttemptOutcome = {
  readonly delivery: Delivery;
  /** Present if the delivery is a failure that counts towards the deactivation of its webhook. */
  readonly count?: (window: FailureWindow | null) => ReturnType<typeof countFailure>;
};

/** The deliveries of a deleted webhook are deleted too. */
type Deleted = { readonly delivery: 'deleted' };

export function outcomeOf(
  reader: Reader,
  claimed: Delivery,
  attempt: Attempt,
  sentTo: Webhook,
): AttemptOutcome | Deleted {
  const webhook = reader.get(webhooks, claimed.webhookId);
  if (!webhook) return { delivery: 'deleted' };
  const settings = reader.read(webhookSettings);
  // If the webhook was deactivated and activated again during the attempt, its deliveries were discarded: it counts as inactive.
  const isActive = webhook.active && webhook.deactivations === sentTo.deactivations;
  const delivery = endAttempt(claimed, attempt, settings, isActive);
  const isCounted = delivery.state === 'failed' && !delivery.isPing && isActive;
  if (!isCounted) return { delivery };
  return { delivery, count: (window) => countFailure(settings, window, endOf(attempt)) };
}

/** What becomes of a claimed delivery that this process did not attempt because its webhook is inactive or missing. */
export function unattemptedOutcomeOf(
  reader: Reader,
  claimed: Delivery,
  at: number,
): { readonly delivery: Delivery } | Deleted {
  const webhook = reader.get(webhooks, claimed.webhookId);
  if (!webhook) return { delivery: 'deleted' };
  // Another process may have created or activated the webhook before this one received the change.
  return { delivery: webhook.active || claimed.isPing ? claimed : discard(claimed, at) };
}

/**
 * Completes a delivery whose failure may deactivate its webhook. The result is undefined if the webhook was deleted. The update must need
 * the failure window of the webhook.
 */
export function completeWithin(
  transaction: Transaction,
  claimed: Delivery,
  attempt: Attempt,
  sentTo: Webhook,
): { readonly delivery: Delivery; readonly deactivated: Deactivated | undefined } | undefined {
  const outcome = outcomeOf(transaction, claimed, attempt, sentTo);
  const webhook = transaction.get(webhooks, claimed.webhookId);
  if (outcome.delivery === 'deleted' || !webhook) return undefined;
  const { delivery, count } = outcome;
  transaction.deliveries.complete(claimed, delivery);
  if (!count) return { delivery, deactivated: undefined };
  const { window, deactivates } = count(transaction.failures(webhook.id));
  transaction.deliveries.setFailures(webhook.id, window);
  if (!deactivates) return { delivery, deactivated: undefined };
  void deactivateWebhook(transaction, webhook.id, 'failures', endOf(attempt));
  return { delivery, deactivated: { webhook, window } };
}
