// What the end of an attempt changes: the delivery, the failure window of its webhook, and the webhook if it fails,
// recovers or is deactivated.
import type { Reader } from '../../store/state.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { WebhookNotice } from '../own-events.ts';
import type { Completion } from '../queue/delivery-queue.ts';
import { type Attempt, type Delivery, discard, endAttempt, endOf } from '../queue/delivery.ts';
import { deactivateWebhook } from '../registry.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { type Webhook, webhooks } from '../webhook.ts';
import {
  type FailureWindow,
  countFailure,
  failureWindowOf,
  failureWindows,
  isFailing,
} from './failure-window.ts';

export function outcomeOf(reader: Reader, claimed: Delivery, attempt: Attempt, sentTo: Webhook): Completion {
  const webhook = reader.get(webhooks, claimed.webhookId);
  if (!webhook) return { delivery: 'deleted' };
  const settings = reader.read(webhookSettings);
  // If the webhook was deactivated and activated again during the attempt, its deliveries were discarded: it counts
  // as inactive.
  const isActive = webhook.active && webhook.deactivations === sentTo.deactivations;
  const delivery = endAttempt(claimed, attempt, settings, isActive);
  const recovers = delivery.state === 'delivered' && webhook.warning?.hasRecovered === false;
  const needsUpdate = isActive && !delivery.isPing && (delivery.state === 'failed' || recovers);
  return { delivery, needsUpdate };
}

/** Each window has one warning, and its start identifies it. */
function mustWarn({ warning }: Webhook, window: FailureWindow, settings: WebhookSettings): boolean {
  return isFailing(settings, window) && warning?.window.start !== window.start;
}

/** What becomes of a claimed delivery that this process did not attempt because its webhook is inactive or missing. */
export function unattemptedOutcomeOf(reader: Reader, claimed: Delivery, at: number): Completion {
  const webhook = reader.get(webhooks, claimed.webhookId);
  if (!webhook) return { delivery: 'deleted' };
  // Another process may have created or activated the webhook before this one received the change.
  return { delivery: webhook.active || claimed.isPing ? claimed : discard(claimed, at) };
}

export type Recorded = { readonly delivery: Delivery; readonly notice: WebhookNotice | undefined };

/** Completes a delivery whose end may change its webhook. The result is undefined if the webhook was deleted. */
export function completeWithin(
  transaction: Transaction,
  claimed: Delivery,
  attempt: Attempt,
  sentTo: Webhook,
): Recorded | undefined {
  const outcome = outcomeOf(transaction, claimed, attempt, sentTo);
  const webhook = transaction.get(webhooks, claimed.webhookId);
  if (outcome.delivery === 'deleted' || !webhook) return undefined;
  const { delivery, needsUpdate } = outcome;
  transaction.deliveries.complete(claimed, delivery);
  if (!needsUpdate) return { delivery, notice: undefined };
  const notice =
    delivery.state === 'failed'
      ? recordFailure(transaction, webhook, endOf(attempt))
      : recordRecovery(transaction, webhook);
  return { delivery, notice };
}

function recordFailure(transaction: Transaction, webhook: Webhook, at: number): WebhookNotice | undefined {
  const settings = transaction.read(webhookSettings);
  const { window, deactivates } = countFailure(settings, failureWindowOf(transaction, webhook.id), at);
  transaction.put(failureWindows, { webhookId: webhook.id, ...window });
  const notice = { webhook, window, numberOfFailures: settings.numberOfFailures };
  if (deactivates) {
    deactivateWebhook(transaction, webhook.id, 'failures', at);
    return { kind: 'Deactivated', ...notice };
  }
  if (!mustWarn(webhook, window, settings)) return undefined;
  transaction.put(webhooks, { ...webhook, warning: { window, hasRecovered: false } });
  return { kind: 'Failing', ...notice };
}

function recordRecovery(transaction: Transaction, webhook: Webhook): WebhookNotice | undefined {
  const { warning } = webhook;
  if (!warning) return undefined;
  transaction.put(webhooks, { ...webhook, warning: { ...warning, hasRecovered: true } });
  const current = failureWindowOf(transaction, webhook.id);
  // The window has more failures now, or it has ended and another one is open.
  const window = current?.start === warning.window.start ? current : warning.window;
  const { numberOfFailures } = transaction.read(webhookSettings);
  return { kind: 'Recovered', webhook, window, numberOfFailures };
}
