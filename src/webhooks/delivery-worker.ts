// Sends deliveries to their receivers.
//
// The life of a delivery in the worker (delivery.ts has the rules and the states):
//
// 1. It becomes due: at once when it is stored, or when the wait after a failed attempt ends. An update of the delivery queue
//    wakes the worker, and so does a timer that is set to the next due time.
// 2. The worker claims it. A claimed delivery belongs to this process until it is settled, or until the process is dead. The worker
//    claims only while it has free slots: `concurrency` in total and four per receiver, so that a slow receiver cannot use up the
//    slots of the others.
// 3. The worker attempts it: it composes and signs the request with the webhook and the settings of that moment, sends it, and waits
//    for a complete response or the timeout. If the webhook was deleted or deactivated meanwhile, the worker discards the delivery
//    without an attempt. It sends a ping to an inactive webhook too.
// 4. One update settles it: the update stores the attempt and either ends the delivery or sets its next attempt (back to 1). A
//    failure that deactivates the webhook publishes its event in the same update. While the database is unavailable, the worker
//    repeats the update.
//
// When the process stops, attempts in progress have three seconds to end. The worker then aborts them and settles their deliveries
// unchanged, so that the next process attempts them again. If a claim was lost, because other processes took this one for dead or
// because the webhook was deleted, the worker drops the result of the attempt. A receiver may therefore get a delivery more than once.
import { isUnavailable } from '../errors.ts';
import { EarliestTimer, retryAfterMs, retryWhileUnavailable } from '../lib/async.ts';
import { formatCount } from '../lib/format.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import { LostClaim, type Transaction } from '../store/transaction.ts';
import type { Tasks } from '../tasks.ts';
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
import type { HttpClient, OutgoingRequest } from './http-client.ts';
import { webhookSettings } from './settings.ts';
import { signBody } from './signature.ts';
import { receiverOf } from './target-policy.ts';
import { type Webhook, signingKeys, webhooks } from './webhook.ts';

const slotsPerReceiver = 4;

const graceMs = 3_000;

export type DeliveryWorkerOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  httpClient: HttpClient;
  eventPublisher: EventPublisher;
  concurrency: number;
  /** Finished deliveries to keep per webhook. */
  history: number;
  userAgent: string;
  onAttempt: (attempt: Attempt, delivery: Delivery) => void;
  onDeactivated: (deactivated: Deactivated) => void;
};

type Deadline = { readonly at: number; readonly reason: 'timeout' | 'stopping' };

export class DeliveryWorker {
  readonly #options: DeliveryWorkerOptions;
  readonly #deadlines = new Map<AbortController, Deadline>();
  readonly #nextDeadline: EarliestTimer;
  readonly #nextDue: EarliestTimer;
  readonly #slotsByReceiver = new Map<string, number>();
  #slotsInUse = 0;
  /** Parses each URL once. An edited webhook is a new object, so no entry becomes outdated. */
  readonly #receivers = new WeakMap<Webhook, string>();
  #claimedVersion = -1;
  #isClaiming = false;
  #mustClaim = false;

  constructor(options: DeliveryWorkerOptions) {
    this.#options = options;
    this.#nextDue = new EarliestTimer(options.runtime, () => this.#wake());
    this.#nextDeadline = new EarliestTimer(options.runtime, () => this.#abortOverdue());
  }

  start(): void {
    const { store, tasks } = this.#options;
    const stopListening = store.onUpdate(() => {
      if (store.version(deliveries) !== this.#claimedVersion) this.#wake();
    });
    tasks.start('delivery worker', async (stopping) => {
      await new Promise((resolve) => stopping.addEventListener('abort', resolve));
      stopListening();
      this.#nextDue.cancel();
      this.#limitAttempts();
    });
    this.#wake();
  }

  #wake(): void {
    this.#mustClaim = true;
    if (this.#isClaiming) return;
    this.#isClaiming = true;
    this.#options.tasks.start('delivery worker', (stopping) => this.#claim(stopping));
  }

  async #claim(stopping: AbortSignal): Promise<void> {
    const { store, runtime, tasks, concurrency } = this.#options;
    const isStopping = () => stopping.aborted;
    try {
      while (this.#mustClaim && !isStopping()) {
        // Without this, attempts that end at the same time would each cause a claim.
        await runtime.yieldToEventLoop();
        this.#mustClaim = false;
        this.#claimedVersion = store.version(deliveries);
        const { rows, nextAt } = await store.claim(deliveries, {
          at: runtime.now(),
          most: concurrency - this.#slotsInUse,
          laneOf: (webhookId) => this.#receiverOf(webhookId),
          roomIn: (receiver) => slotsPerReceiver - (this.#slotsByReceiver.get(receiver) ?? 0),
        });
        if (isStopping()) return await this.#putBack(rows, stopping);
        for (const delivery of rows) {
          const receiver = this.#receiverOf(delivery.webhookId);
          this.#changeSlots(receiver, 1);
          tasks.start('delivery', (signal) => this.#attempt(delivery, receiver, signal));
        }
        if (nextAt !== undefined) this.#nextDue.fireAt(nextAt);
      }
    } catch (error) {
      if (!isStopping()) this.#nextDue.fireAt(runtime.now() + retryAfterMs);
      // The store logs that it is unavailable.
      if (!isUnavailable(error)) throw error;
    } finally {
      this.#isClaiming = false;
    }
  }

  #receiverOf(webhookId: string): string {
    const webhook = this.#options.store.get(webhooks, webhookId);
    if (!webhook) return '';
    const receiver = this.#receivers.get(webhook) ?? receiverOf(webhook.hookUrl);
    this.#receivers.set(webhook, receiver);
    return receiver;
  }

  #changeSlots(receiver: string, by: 1 | -1): void {
    const inUse = (this.#slotsByReceiver.get(receiver) ?? 0) + by;
    if (inUse === 0) this.#slotsByReceiver.delete(receiver);
    else this.#slotsByReceiver.set(receiver, inUse);
    this.#slotsInUse += by;
  }

  async #attempt(delivery: Delivery, receiver: string, stopping: AbortSignal): Promise<void> {
    const { store, eventPublisher, history, onAttempt, onDeactivated } = this.#options;
    const webhook = store.get(webhooks, delivery.webhookId);
    if (!webhook || !(webhook.active || delivery.isPing)) {
      this.#changeSlots(receiver, -1);
      return this.#discard(delivery, stopping);
    }
    const attempt = await this.#send(delivery, webhook);
    this.#changeSlots(receiver, -1);
    if (attempt === 'interrupted') return this.#putBack([delivery], stopping);
    const recorded = await this.#record(stopping, (transaction) => {
      const result = settleAttempt(transaction, delivery, attempt, { sentTo: webhook, keep: history });
      if (result.deactivated)
        eventPublisher.publishWithin(transaction, deactivatedEvent(result.deactivated), endOf(attempt));
      return result;
    });
    if (!recorded) return;
    onAttempt(attempt, recorded.delivery);
    if (recorded.deactivated) onDeactivated(recorded.deactivated);
  }

  async #discard(delivery: Delivery, stopping: AbortSignal): Promise<void> {
    const { runtime, history } = this.#options;
    const at = runtime.now();
    await this.#record(stopping, (transaction) => {
      const webhook = transaction.get(webhooks, delivery.webhookId);
      // Another process may have created or activated the webhook before this one received the change.
      if (webhook && (webhook.active || delivery.isPing)) transaction.settle(deliveries, delivery, delivery);
      else discardClaimed(transaction, delivery, { keep: history, at });
    });
  }

  async #putBack(claimed: readonly Delivery[], stopping: AbortSignal): Promise<void> {
    await Promise.all(
      claimed.map((delivery) =>
        this.#record(stopping, (transaction) => transaction.settle(deliveries, delivery, delivery)),
      ),
    );
  }

  async #record<T>(stopping: AbortSignal, change: (transaction: Transaction) => T): Promise<T | undefined> {
    const { store, runtime } = this.#options;
    try {
      return await retryWhileUnavailable(() => store.update(change), runtime, stopping);
    } catch (error) {
      if (error instanceof LostClaim) return undefined;
      throw error;
    }
  }

  async #send(delivery: Delivery, webhook: Webhook): Promise<Attempt | 'interrupted'> {
    const { store, runtime, httpClient } = this.#options;
    const seconds = store.read(webhookSettings).notificationTimeOutInSeconds;
    const when = runtime.now();
    const abort = new AbortController();
    this.#setDeadline(abort, { at: when + seconds * 1000, reason: 'timeout' });
    const end = (outcome: Pick<Attempt, 'status' | 'error' | 'response'>): Attempt => ({
      when,
      durationMs: Math.max(0, runtime.now() - when),
      ...outcome,
    });
    const fail = (error: string) => end({ status: null, error, response: null });
    try {
      const request = this.#composeRequest(delivery, webhook, when);
      const { status, body } = await httpClient.post(request, abort.signal);
      const error = status >= 200 && status < 300 ? null : `The receiver answered ${status}.`;
      return end({ status, error, response: toText(body) });
    } catch (error) {
      if (abort.signal.reason === 'timeout')
        return fail(`There was no complete answer within ${formatCount(seconds, 'second')}.`);
      return abort.signal.aborted ? 'interrupted' : fail((error as Error).message);
    } finally {
      this.#deadlines.delete(abort);
      if (this.#deadlines.size === 0) this.#nextDeadline.cancel();
    }
  }

  #composeRequest(delivery: Delivery, webhook: Webhook, at: number): OutgoingRequest {
    const { id } = delivery.event;
    const body = bodyOf(delivery, webhook);
    const timestampSeconds = Math.floor(at / 1000);
    const headers = {
      'content-type': webhook.contentType,
      'user-agent': this.#options.userAgent,
      'webhook-id': id,
      'webhook-timestamp': String(timestampSeconds),
      'webhook-signature': signBody({ id, timestampSeconds, body, keys: signingKeys(webhook, at) }),
    };
    return { url: webhook.hookUrl, headers, body };
  }

  #setDeadline(abort: AbortController, deadline: Deadline): void {
    this.#deadlines.set(abort, deadline);
    this.#nextDeadline.fireAt(deadline.at);
  }

  #abortOverdue(): void {
    const now = this.#options.runtime.now();
    for (const [abort, { at, reason }] of this.#deadlines) {
      if (at <= now) abort.abort(reason);
      else this.#nextDeadline.fireAt(at);
    }
  }

  #limitAttempts(): void {
    const end = this.#options.runtime.now() + graceMs;
    for (const [abort, { at }] of this.#deadlines) {
      if (at > end) this.#setDeadline(abort, { at: end, reason: 'stopping' });
    }
  }
}

function toText(bytes: Buffer): string {
  return (
    bytes
      .toString()
      .replaceAll('\0', '\uFFFD')
      // The client may have cut the last character in two.
      .replace(/\uFFFD$/, '')
  );
}
