// The deliveryWorker carries deliveries to their receivers: claims what is due while there are slots, sends it, and records what came of it.
// A slow receiver takes up its own few slots and nobody else's.
import { EarliestTimer } from '../lib/async.ts';
import { isUnavailable } from '../errors.ts';
import { retryWhileUnavailable, retryAfterMs } from '../lib/async.ts';
import type { Store } from '../store/store.ts';
import { LostClaim, type Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
import type { Runtime } from '../runtime.ts';
import {
  type Attempt,
  type Deactivated,
  type Delivery,
  bodyOf,
  deliveries,
  discardClaimed,
  endOf,
  settleAttempt,
} from './delivery.ts';
import { deactivatedEvent } from './event.ts';
import type { EventPublisher } from './event-publisher.ts';
import { receiverOf } from './target-policy.ts';
import { webhookSettings } from './settings.ts';
import { signBody } from './signature.ts';
import { type Webhook, signingKeys, webhooks } from './webhook.ts';

const mostPerReceiver = 4;

/** How long attempts under way may take to end when the process stops. */
const graceMs = 3_000;

export type DeliveryWorkerOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  eventPublisher: EventPublisher;
  /** Attempts under way at once. */
  concurrency: number;
  /** Finished deliveries kept of each webhook. */
  history: number;
  userAgent: string;
  /** Told after each attempt, for the metrics. */
  onAttempt: (attempt: Attempt, delivery: Delivery) => void;
  onDeactivated: (deactivated: Deactivated) => void;
};

export function startDeliveryWorker(options: DeliveryWorkerOptions): void {
  const { store, runtime, tasks, eventPublisher, history } = options;
  /** What ends each attempt that is under way, and when at the latest. */
  const underway = new Map<AbortController, { endsAt: number; why: 'late' | 'stopping' }>();
  /** How many slots each receiver has taken; of all, and from the claim to the end of the attempt. */
  const perReceiver = new Map<string, number>();
  let taken = 0;
  const nextDue = new EarliestTimer(runtime, wake);
  const nextDeadline = new EarliestTimer(runtime, endOverdue);
  let seenVersion = -1;
  let isClaiming = false;
  let hasNews = false;

  /** By the webhook as it is; a changed one is another object. */
  const receivers = new WeakMap<Webhook, string>();

  function receiverOfWebhook(webhookId: string): string {
    const webhook = store.get(webhooks, webhookId);
    if (!webhook) return '';
    const receiver = receivers.get(webhook) ?? receiverOf(webhook.hookUrl);
    receivers.set(webhook, receiver);
    return receiver;
  }

  function take(receiver: string, slots: 1 | -1): void {
    const left = (perReceiver.get(receiver) ?? 0) + slots;
    if (left === 0) perReceiver.delete(receiver);
    else perReceiver.set(receiver, left);
    taken += slots;
  }

  /** Claims again as long as there was news meanwhile. */
  async function claim(stopping: AbortSignal): Promise<void> {
    const isStopping = () => stopping.aborted;
    try {
      while (hasNews && !isStopping()) {
        // What ends at the same time is followed by one claim.
        await runtime.yieldToEventLoop();
        hasNews = false;
        seenVersion = store.version(deliveries);
        const { rows, nextAt } = await store.claim(deliveries, {
          at: runtime.now(),
          most: options.concurrency - taken,
          laneOf: receiverOfWebhook,
          roomIn: (receiver) => mostPerReceiver - (perReceiver.get(receiver) ?? 0),
        });
        if (isStopping()) return await putBack(rows, stopping);
        for (const delivery of rows) {
          const receiver = receiverOfWebhook(delivery.webhookId);
          take(receiver, 1);
          tasks.start('delivery', (signal) => carry(delivery, receiver, signal));
        }
        if (nextAt !== undefined) nextDue.fireAt(nextAt);
      }
    } catch (error) {
      if (!isStopping()) nextDue.fireAt(runtime.now() + retryAfterMs);
      // The store itself tells when it is away.
      if (!isUnavailable(error)) throw error;
    } finally {
      isClaiming = false;
    }
  }

  /** As if they had never been claimed. */
  async function putBack(rows: readonly Delivery[], stopping: AbortSignal): Promise<void> {
    await Promise.all(
      rows.map((delivery) =>
        record(stopping, (transaction) => transaction.settle(deliveries, delivery, delivery)),
      ),
    );
  }

  /** Settles claims, however long the store is away. What is another's by now, or gone, is nobody's concern here. */
  async function record<T>(
    stopping: AbortSignal,
    change: (transaction: Transaction) => T,
  ): Promise<T | undefined> {
    try {
      return await retryWhileUnavailable(() => store.update(change), runtime, stopping);
    } catch (error) {
      if (error instanceof LostClaim) return undefined;
      throw error;
    }
  }

  function wake(): void {
    hasNews = true;
    if (isClaiming) return;
    isClaiming = true;
    tasks.start('deliveryWorker', claim);
  }

  function endOverdue(): void {
    const at = runtime.now();
    for (const [over, { endsAt, why }] of underway) {
      if (endsAt <= at) over.abort(why);
      else nextDeadline.fireAt(endsAt);
    }
  }

  /** One attempt, from the claim to its record. The webhook and the settings are those of this moment. */
  async function carry(delivery: Delivery, receiver: string, stopping: AbortSignal): Promise<void> {
    const webhook = store.get(webhooks, delivery.webhookId);
    if (!webhook || !(webhook.active || delivery.isPing)) {
      take(receiver, -1);
      const at = runtime.now();
      return record(stopping, (transaction) => {
        const current = transaction.get(webhooks, delivery.webhookId);
        // Another process may have known before this one that there is such a webhook, or that it is active.
        if (current && (current.active || delivery.isPing))
          transaction.settle(deliveries, delivery, delivery);
        else discardClaimed(transaction, delivery, { keep: history, at });
      });
    }
    const attempt = await send(delivery, webhook);
    take(receiver, -1);
    if (attempt === 'interrupted') return putBack([delivery], stopping);
    const recorded = await record(stopping, (transaction) => {
      const result = settleAttempt(transaction, delivery, attempt, { sentTo: webhook, keep: history });
      if (result.deactivated)
        eventPublisher.publishWithin(transaction, deactivatedEvent(result.deactivated), endOf(attempt));
      return result;
    });
    if (!recorded) return;
    options.onAttempt(attempt, recorded.delivery);
    if (recorded.deactivated) options.onDeactivated(recorded.deactivated);
  }

  async function send(delivery: Delivery, webhook: Webhook): Promise<Attempt | 'interrupted'> {
    const seconds = store.read(webhookSettings).notificationTimeOutInSeconds;
    const when = runtime.now();
    const over = new AbortController();
    const endsAt = when + seconds * 1000;
    underway.set(over, { endsAt, why: 'late' });
    nextDeadline.fireAt(endsAt);
    const end = (status: number | null, error: string | null, response: string | null): Attempt => ({
      when,
      durationMs: Math.max(0, runtime.now() - when),
      status,
      error,
      response,
    });
    try {
      const { status, body } = await runtime.post(compose(delivery, webhook, when), over.signal);
      const isGood = status >= 200 && status < 300;
      return end(status, isGood ? null : `The receiver answered ${status}.`, readText(body));
    } catch (error) {
      if (over.signal.reason === 'late')
        return end(
          null,
          `There was no complete answer within ${seconds} second${seconds === 1 ? '' : 's'}.`,
          null,
        );
      if (over.signal.aborted) return 'interrupted';
      return end(null, (error as Error).message, null);
    } finally {
      underway.delete(over);
      if (underway.size === 0) nextDeadline.cancel();
    }
  }

  function compose(delivery: Delivery, webhook: Webhook, at: number) {
    const { id } = delivery.event;
    const body = bodyOf(delivery, webhook);
    const timestampSeconds = Math.floor(at / 1000);
    const headers = {
      'content-type': webhook.contentType,
      'user-agent': options.userAgent,
      'webhook-id': id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signBody({ id, timestampSeconds, body, keys: signingKeys(webhook, at) }),
    };
    return { url: webhook.hookUrl, headers, body };
  }

  const stopListening = store.onUpdate(() => {
    if (store.version(deliveries) !== seenVersion) wake();
  });
  tasks.start('deliveryWorker', async (stopping) => {
    await new Promise((resolve) => stopping.addEventListener('abort', resolve));
    stopListening();
    nextDue.cancel();
    const endsAt = runtime.now() + graceMs;
    for (const [over, limit] of underway) {
      if (limit.endsAt > endsAt) underway.set(over, { endsAt, why: 'stopping' });
      nextDeadline.fireAt(endsAt);
    }
  });
  wake();
}

/** As text, without a character that was cut in two at the end. */
function readText(bytes: Buffer): string {
  return bytes
    .toString()
    .replaceAll('\0', '\uFFFD')
    .replace(/\uFFFD$/, '');
}
