// Sends deliveries to their receivers.
//
// The life of a delivery in the worker (delivery.ts has the rules and the states):
//
// 1. It becomes due: at once when it is stored, or when the wait after a failed attempt ends. The delivery queue
//    wakes the worker, and so do changed settings and a timer that is set to the next due time.
// 2. The worker claims it. A claimed delivery belongs to this process until it is completed, or until the
//    process is dead. The worker claims only while it has free slots: `concurrency` in total and fewer per receiver,
//    so that a slow receiver cannot use up the slots of the others. It claims again while a claim leaves due
//    deliveries, and when a slot becomes free after all were in use.
// 3. The worker attempts it: it composes and signs the request with the webhook and the settings of that moment,
//    sends it, and waits for a complete response or the timeout. If the webhook was deleted or deactivated
//    meanwhile, the worker discards the delivery without an attempt. It sends a ping to an inactive webhook too.
// 4. The worker completes it: the queue stores the attempt, and either ends the delivery or keeps it for its next
//    attempt (back to 1). If the end of the delivery is a failure that counts, or the recovery of its webhook, the
//    queue stores nothing. An update then completes the delivery, counts the failure, changes the webhook and
//    publishes the event about it, all together. While the database is unavailable, the worker repeats
//    the call.
//
// An error of this process, such as too many open files, says nothing about the receiver: it is no attempt. The worker
// logs it, keeps the delivery and its slot for ten seconds, and releases the delivery unchanged.
//
// When the process stops, attempts in progress have three seconds to end. The worker then aborts them and releases
// their deliveries unchanged, so that the next process attempts them again. If a claim was lost, because other
// processes took this one for dead or because the webhook was deleted, the worker drops the result of the attempt.
// A receiver may therefore get a delivery more than once.
import { EarliestTimer, retryAfterMs, retryWhileUnavailable } from '../../lib/async.ts';
import { isUnavailable } from '../../lib/errors.ts';
import { formatCount } from '../../lib/format.ts';
import { RequestError } from '../../lib/request-error.ts';
import type { Runtime, Stopwatch } from '../../lib/runtime.ts';
import type { Tasks } from '../../lib/tasks.ts';
import type { Store } from '../../store/store.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { WebhookNotice } from '../own-events.ts';
import { LostClaim } from '../queue/delivery-queue.ts';
import { type Attempt, type Delivery, endOf, nextAttemptAt, retryWaitMs } from '../queue/delivery.ts';
import { webhookSettings } from '../settings.ts';
import { type Webhook, webhooks } from '../webhook.ts';
import { type RequestOptions, composeRequest, toSentRequest } from './delivery-request.ts';
import { type CustomHeader, keepResponseHeaders, maskValues } from './headers.ts';
import type { HttpClient } from './http-client.ts';
import { type Recorded, completeWithin, outcomeOf, unattemptedOutcomeOf } from './outcome.ts';
import { receiverOf } from './target-policy.ts';

const graceMs = 3_000;

const maxResponseBytes = 1024;

const pauseAfterErrorMs = 10_000;

/** Times are whole milliseconds, rounded down. Without this, a wait could be up to a millisecond too short. */
const roundingMs = 1;

type DeliveryWorkerOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  httpClient: HttpClient;
  /** Runs in the update that the notice is about. */
  notify: (transaction: Transaction, notice: WebhookNotice, at: number) => void;
  /** How many attempts are in progress at a time. */
  concurrency: number;
  /**
   * The same for one receiver, so that a slow one cannot use all slots. Several processes may exceed it for a moment: an
   * exact limit would need a lock for each claim.
   */
  slotsPerReceiver: number;
  request: RequestOptions;
  onAttempt: (attempt: Attempt, delivery: Delivery) => void;
  onNotice: (notice: WebhookNotice) => void;
};

export class DeliveryWorker {
  readonly #options: DeliveryWorkerOptions;
  /** The attempts in progress, and what limits their time. */
  readonly #attempts = new Map<AbortController, Stopwatch[]>();
  readonly #nextDue: EarliestTimer;
  readonly #slotsByReceiver = new Map<string, number>();
  #slotsInUse = 0;
  /** Parses each URL once. An edited webhook is a new object, so no entry becomes outdated. */
  readonly #receivers = new WeakMap<Webhook, string>();
  #isClaiming = false;
  #mustClaim = false;

  constructor(options: DeliveryWorkerOptions) {
    this.#options = options;
    this.#nextDue = new EarliestTimer(options.runtime, () => this.#wake());
  }

  start(): void {
    const { store, tasks } = this.#options;
    // The settings decide when a retry is due, and the address of a webhook decides whose slots its deliveries use.
    const versions = () => `${store.version(webhookSettings)} ${store.version(webhooks)}`;
    let known = versions();
    const stopListening = [
      store.deliveries.onFree(() => this.#wake()),
      store.onUpdate(() => {
        if (versions() === known) return;
        known = versions();
        this.#wake();
      }),
    ];
    tasks.start('delivery worker', async (stopping) => {
      await new Promise((resolve) => stopping.addEventListener('abort', resolve));
      for (const stop of stopListening) stop();
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
    const { store, runtime, tasks, httpClient, concurrency } = this.#options;
    const isStopping = () => stopping.aborted;
    try {
      while (this.#mustClaim && !isStopping()) {
        // Without this, attempts that end at the same time would each cause a claim.
        await runtime.yieldToEventLoop();
        this.#mustClaim = false;
        if (store.count(webhooks) > 0) await httpClient.load();
        const at = runtime.now();
        const most = concurrency - this.#slotsInUse;
        if (most <= 0) continue;
        const { deliveries, nextAt } = await store.deliveries.claim({
          at,
          most,
          retryWaitMs: retryWaitMs(store.read(webhookSettings)) + roundingMs,
          receiverOf: (webhookId) => this.#receiverOf(webhookId),
          roomFor: (receiver) => this.#options.slotsPerReceiver - (this.#slotsByReceiver.get(receiver) ?? 0),
        });
        if (isStopping()) return await this.#release(deliveries, stopping);
        for (const delivery of deliveries) {
          const receiver = this.#receiverOf(delivery.webhookId);
          this.#changeSlots(receiver, 1);
          tasks.start('delivery', (signal) => this.#attempt(delivery, receiver, signal));
        }
        if (nextAt === undefined) continue;
        if (nextAt > at) this.#nextDue.fireAt(nextAt);
        else if (deliveries.length > 0) this.#mustClaim = true;
        // Without a pause, a claim that gets nothing would be repeated in a tight loop.
        else this.#nextDue.fireAt(at + retryAfterMs);
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

  #freeSlot(receiver: string): void {
    const wasFull =
      this.#slotsInUse >= this.#options.concurrency ||
      (this.#slotsByReceiver.get(receiver) ?? 0) >= this.#options.slotsPerReceiver;
    this.#changeSlots(receiver, -1);
    // Due deliveries may wait for the slot. A claim in progress was made without it.
    if (wasFull || this.#isClaiming) this.#wake();
  }

  async #attempt(claimed: Delivery, receiver: string, stopping: AbortSignal): Promise<void> {
    const { store, runtime, tasks, onAttempt, onNotice } = this.#options;
    const webhook = store.get(webhooks, claimed.webhookId);
    if (!webhook || !(webhook.active || claimed.isPing)) {
      this.#freeSlot(receiver);
      return this.#discard(claimed, stopping);
    }
    const release = (signal: AbortSignal) => {
      this.#freeSlot(receiver);
      return this.#release([claimed], signal);
    };
    const attempt = await this.#send(claimed, webhook).catch((error: unknown) => {
      // Without the pause, the delivery would be claimed again at once.
      tasks.start('delivery', async (signal) => {
        await runtime.sleep(pauseAfterErrorMs, signal).catch(() => undefined);
        await release(signal);
      });
      throw error;
    });
    if (attempt === 'interrupted') return release(stopping);
    // After a failure the slot stays in use until it is recorded: if it deactivates the webhook, no further
    // delivery may be attempted.
    if (attempt.error === null) this.#freeSlot(receiver);
    const recorded = await this.#record(claimed, attempt, webhook, stopping).finally(() => {
      if (attempt.error !== null) this.#freeSlot(receiver);
    });
    // The claim has ended too if the outcome was stored but the connection was lost before the store answered. A
    // retry may then wait.
    if (!recorded) return this.#wake();
    this.#wakeWhenDue(recorded.delivery, stopping);
    onAttempt(attempt, recorded.delivery);
    if (recorded.notice) onNotice(recorded.notice);
  }

  /** Returns undefined if the claim was lost or the webhook was deleted. */
  async #record(
    claimed: Delivery,
    attempt: Attempt,
    sentTo: Webhook,
    stopping: AbortSignal,
  ): Promise<Recorded | undefined> {
    const { store, runtime } = this.#options;
    const complete = () =>
      store.deliveries.complete(claimed, (reader) => outcomeOf(reader, claimed, attempt, sentTo));
    const completed = await retryWhileUnavailable(complete, runtime, stopping);
    if (completed?.needsUpdate) return this.#recordInUpdate(claimed, attempt, sentTo, stopping);
    if (!completed || completed.delivery === 'deleted') return undefined;
    return { delivery: completed.delivery, notice: undefined };
  }

  async #recordInUpdate(
    claimed: Delivery,
    attempt: Attempt,
    sentTo: Webhook,
    stopping: AbortSignal,
  ): Promise<Recorded | undefined> {
    const { store, runtime, notify } = this.#options;
    const update = () =>
      store.update((transaction) => {
        const completed = completeWithin(transaction, claimed, attempt, sentTo);
        if (completed?.notice) notify(transaction, completed.notice, endOf(attempt));
        return completed;
      });
    try {
      const recorded = await retryWhileUnavailable(update, runtime, stopping);
      if (recorded) return recorded;
    } catch (error) {
      if (!(error instanceof LostClaim)) throw error;
    }
    // The claim is lost, or the webhook was deleted. Without this, the queue would still count the delivery as claimed.
    await this.#discard(claimed, stopping);
    return undefined;
  }

  async #discard(claimed: Delivery, stopping: AbortSignal): Promise<void> {
    const { store, runtime } = this.#options;
    const at = runtime.now();
    const complete = () =>
      store.deliveries.complete(claimed, (reader) => unattemptedOutcomeOf(reader, claimed, at));
    const completed = await retryWhileUnavailable(complete, runtime, stopping);
    if (!completed || completed.delivery === 'deleted') return;
    // Without this, the worker could claim the delivery again before this process has received the change of the
    // webhook.
    if (completed.delivery.state === 'pending') await store.refresh();
    this.#wakeWhenDue(completed.delivery, stopping);
  }

  #wakeWhenDue(delivery: Delivery, stopping: AbortSignal): void {
    const at = nextAttemptAt(delivery, this.#options.store.read(webhookSettings));
    if (at !== null && !stopping.aborted) this.#nextDue.fireAt(at + roundingMs);
  }

  async #release(claimed: readonly Delivery[], stopping: AbortSignal): Promise<void> {
    const { store, runtime } = this.#options;
    await retryWhileUnavailable(() => store.deliveries.release(claimed), runtime, stopping);
  }

  async #send(delivery: Delivery, webhook: Webhook): Promise<Attempt | 'interrupted'> {
    const { store, runtime, httpClient, request: requestOptions } = this.#options;
    const seconds = store.read(webhookSettings).notificationTimeOutInSeconds;
    const when = runtime.now();
    const abort = new AbortController();
    const composed = composeRequest(delivery, webhook, when, requestOptions, runtime.timeOfDay?.());
    const request = toSentRequest(composed, webhook);
    const stopwatch = runtime.startTimeout(seconds * 1000, () => abort.abort('timeout'));
    const limits = [stopwatch];
    this.#attempts.set(abort, limits);
    const end = (outcome: Pick<Attempt, 'status' | 'error' | 'response' | 'responseHeaders'>): Attempt => ({
      when,
      durationMs: stopwatch.elapsedMs(),
      ...outcome,
      request,
    });
    const fail = (error: string) => end({ status: null, error, response: null });
    try {
      const { status, headers, body } = await httpClient.post(composed, abort.signal);
      const error = status >= 200 && status < 300 ? null : `The receiver answered ${status}.`;
      return end({
        status,
        error,
        response: toResponseText(body, webhook.headers),
        responseHeaders: keepResponseHeaders(headers, webhook.headers),
      });
    } catch (error) {
      if (abort.signal.reason === 'timeout')
        return fail(`There was no complete answer within ${formatCount(seconds, 'second')}.`);
      if (abort.signal.aborted) return 'interrupted';
      if (error instanceof RequestError) return fail(error.message);
      throw error;
    } finally {
      for (const limit of limits) limit.stop();
      this.#attempts.delete(abort);
    }
  }

  #limitAttempts(): void {
    const { runtime } = this.#options;
    for (const [abort, limits] of this.#attempts)
      limits.push(runtime.startTimeout(graceMs, () => abort.abort('stopping')));
  }
}

/** The beginning of a response. It is masked before it is cut, because the cut may be within a value. */
function toResponseText(body: Buffer, sent: readonly CustomHeader[]): string {
  const text = body.toString().replaceAll('\0', '\uFFFD');
  const beginning = Buffer.from(maskValues(text, sent)).subarray(0, maxResponseBytes);
  // The last character may have been cut in two.
  return beginning.toString().replace(/\uFFFD$/, '');
}
