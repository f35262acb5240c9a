// The finished deliveries in memory, in the order in which they finished. The first are removed when a webhook has too
// many of a kind, or when all webhooks together have too many bytes of it. Recoverable deliveries are a kind of their
// own: many delivered events must not remove what a redelivery can still recover.
import type { DeliveryRetention } from '../delivery-queue.ts';
import { type Delivery, bytesOfFinished, isRecoverable } from '../delivery.ts';

const maxBytesPerKind = 64 * 1024 ** 2;

type Kind = keyof DeliveryRetention;

const kinds: readonly Kind[] = ['history', 'recoverable'];

type ById = Map<string, Delivery>;

export class FinishedDeliveries {
  readonly #retention: DeliveryRetention;
  readonly #all: Record<Kind, ById> = { history: new Map(), recoverable: new Map() };
  readonly #byWebhook = new Map<string, Record<Kind, ById>>();
  readonly #bytes: Record<Kind, number> = { history: 0, recoverable: 0 };
  #evicted = 0;

  constructor(retention: DeliveryRetention) {
    this.#retention = retention;
  }

  /** How many recoverable deliveries were evicted. */
  get evicted(): number {
    return this.#evicted;
  }

  /** The finished deliveries of a webhook, those that can be recovered first. */
  *of(webhookId: string): Iterable<Delivery> {
    const { recoverable = [], history = [] } = this.#byWebhook.get(webhookId) ?? {};
    for (const [, delivery] of recoverable) yield delivery;
    for (const [, delivery] of history) yield delivery;
  }

  ids(): string[] {
    return kinds.flatMap((kind) => [...this.#all[kind].keys()]);
  }

  add(delivery: Delivery): void {
    const { id, webhookId } = delivery;
    const kind = kindOf(delivery);
    const ofWebhook = this.#byWebhook.get(webhookId) ?? { history: new Map(), recoverable: new Map() };
    this.#byWebhook.set(webhookId, ofWebhook);
    ofWebhook[kind].set(id, delivery);
    this.#all[kind].set(id, delivery);
    this.#bytes[kind] += bytesOfFinished(delivery);
  }

  delete(delivery: Delivery): void {
    const { id, webhookId } = delivery;
    const kind = kindOf(delivery);
    if (!this.#all[kind].delete(id)) return;
    this.#byWebhook.get(webhookId)?.[kind].delete(id);
    this.#bytes[kind] -= bytesOfFinished(delivery);
  }

  /** Call it when a webhook is deleted, after its deliveries are. */
  forget(webhookId: string): void {
    this.#byWebhook.delete(webhookId);
  }

  /** A redelivered delivery was just added to the end of the history, but it finished earlier. */
  sortHistory(webhookIds: Iterable<string>): void {
    this.#all.history = inOrderOfEnd(this.#all.history);
    for (const webhookId of webhookIds) {
      const ofWebhook = this.#byWebhook.get(webhookId);
      if (ofWebhook) ofWebhook.history = inOrderOfEnd(ofWebhook.history);
    }
  }

  /** Deletes what exceeds the limits of the webhook or of all webhooks, and returns it. */
  takeSurplus(webhookId: string): readonly Delivery[] {
    const evicted: Delivery[] = [];
    for (const kind of kinds) {
      const ofWebhook = this.#byWebhook.get(webhookId)?.[kind] ?? new Map<string, Delivery>();
      const evictFirst = (list: ById, isTooMuch: () => boolean) => {
        for (const delivery of list.values()) {
          if (!isTooMuch()) return;
          this.delete(delivery);
          evicted.push(delivery);
        }
      };
      evictFirst(ofWebhook, () => ofWebhook.size > this.#retention[kind]);
      evictFirst(this.#all[kind], () => this.#bytes[kind] > maxBytesPerKind);
    }
    this.#evicted += evicted.filter(isRecoverable).length;
    return evicted;
  }
}

function inOrderOfEnd(deliveries: ById): ById {
  const sorted = [...deliveries.values()].sort((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0));
  return new Map(sorted.map((delivery) => [delivery.id, delivery]));
}

function kindOf(delivery: Delivery): Kind {
  return isRecoverable(delivery) ? 'recoverable' : 'history';
}
