// Stores events with their deliveries, and remembers given event ids, so that publishing an id again has no effect.
import { ServiceError, tooLarge } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import type { Tasks } from '../../lib/tasks.ts';
import type { Reader } from '../../store/state.ts';
import type { Store } from '../../store/store.ts';
import type { Transaction } from '../../store/transaction.ts';
import { type EventDraft, bytesOfPayload, eventOf } from '../event.ts';
import { type PublishResult, forgetEveryMs } from './delivery-queue.ts';
import { type Delivery, countPending, deliveriesOf } from './delivery.ts';
import { Subscriptions } from './subscriptions.ts';

/** At this multiple of a limit, the events of the server itself are stored as missed. */
const reserve = 2;

type EventPublisherOptions = {
  store: Store;
  runtime: Runtime;
  tasks: Tasks;
  limits: PublishLimits;
};

export type PublishLimits = {
  /** Pending deliveries. */
  readonly pending: number;
  /** The payloads of pending deliveries. A payload counts once for each delivery. */
  readonly pendingBytes: number;
};

export class EventPublisher {
  readonly #options: EventPublisherOptions;
  readonly #subscriptions = new Subscriptions();

  constructor(options: EventPublisherOptions) {
    this.#options = options;
    const { store, runtime, tasks } = options;
    store.deliveries.distributeWith((reader, event, announced) =>
      deliveriesOf(this.#subscriptions.to(reader, event), event, runtime.newId, announced),
    );
    const forget = (stopping: AbortSignal) => store.deliveries.forgetEvents(runtime.now(), stopping);
    // Processes may have been stopped for longer than the interval.
    tasks.start('sweep of remembered event ids', forget);
    tasks.every('sweep of remembered event ids', forgetEveryMs, forget);
  }

  /**
   * For events of the server itself. It refuses nothing: receivers must not prevent the change that causes the event.
   * Missed deliveries have a limit of their own, so many changes do not fill the memory.
   */
  publishWithin(transaction: Transaction, draft: EventDraft, at: number): void {
    const [subscriber] = this.#subscriptions.to(transaction, draft);
    if (!subscriber) return;
    const event = eventOf(draft, this.#options.runtime.newId(at), at);
    transaction.deliveries.announce(event, { about: draft.about, isMissed: this.#isReserveUsed() });
  }

  #isReserveUsed(): boolean {
    const { store, limits } = this.#options;
    const { count, bytes } = store.deliveries.pending();
    return count >= reserve * limits.pending || bytes >= reserve * limits.pendingBytes;
  }

  async publish(draft: EventDraft, givenId: string | undefined): Promise<PublishResult> {
    const { now, newId } = this.#options.runtime;
    const at = now();
    const eventId = givenId ?? newId(at);
    const event = eventOf(draft, eventId, at);
    let refusal: ServiceError | undefined;
    const rule = (reader: Reader): readonly Delivery[] => {
      const deliveries = deliveriesOf(this.#subscriptions.to(reader, event), event, newId);
      refusal = this.#refusalOf(countPending(deliveries) * bytesOfPayload(event));
      if (refusal) throw refusal;
      return deliveries;
    };
    const remember = givenId === undefined ? undefined : { eventId, at };
    try {
      return { eventId, deliveries: await this.#options.store.deliveries.publish(rule, remember) };
    } catch (error) {
      // A repeated event gets the first answer, also while new events are refused.
      const isRefused = remember !== undefined && error === refusal;
      const earlier = isRefused ? await this.#options.store.deliveries.findEvent(eventId, at) : undefined;
      if (!earlier) throw error;
      return { eventId, deliveries: earlier.deliveries };
    }
  }

  #refusalOf(addedBytes: number): ServiceError | undefined {
    const { pending, pendingBytes } = this.#options.limits;
    const { count, bytes } = this.#options.store.deliveries.pending();
    if (count >= pending) {
      const message = `Too many deliveries are pending: WEBHOOK_MAX_PENDING allows ${pending}.`;
      return new ServiceError('unavailable', message, { retryAfterSeconds });
    }
    if (addedBytes > pendingBytes) {
      const message = `is too large for all subscribed webhooks together: WEBHOOK_MAX_PENDING_BYTES allows ${pendingBytes} bytes.`;
      return tooLarge({ field: 'payload', message });
    }
    if (bytes + addedBytes > pendingBytes) {
      const message = `The payloads of pending deliveries are too large: WEBHOOK_MAX_PENDING_BYTES allows ${pendingBytes} bytes.`;
      return new ServiceError('unavailable', message, { retryAfterSeconds });
    }
    return undefined;
  }
}

const retryAfterSeconds = 5;
