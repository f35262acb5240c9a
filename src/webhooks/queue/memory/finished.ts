// The finished deliveries in memory, in the order in which they finished. The first are removed when a webhook has too
// many of a kind, or when all webhooks together have too many bytes of it.
import { type DeliveryRetention, keptOf } from '../delivery-queue.ts';
import {
  type Delivery,
  type FinishedKind,
  bytesOfFinished,
  finishedKinds,
  isRecoverable,
  kindOf,
} from '../delivery.ts';

const maxBytesPerKind = 64 * 1024 ** 2;

type ById = Map<string, Delivery>;

type ByKind = Record<FinishedKind, ById>;

const noDeliveries = (): ByKind => ({ history: new Map(), recoverable: new Map(), redelivered: new Map() });

export class FinishedDeliveries {
  readonly #retention: DeliveryRetention;
  readonly #all = noDeliveries();
  readonly #byWebhook = new Map<string, ByKind>();
  readonly #bytes: Record<FinishedKind, number> = { history: 0, recoverable: 0, redelivered: 0 };
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
    const ofWebhook = this.#byWebhook.get(webhookId);
    for (const kind of ['recoverable', 'history', 'redelivered'] as const)
      for (const delivery of ofWebhook?.[kind].values() ?? []) yield delivery;
  }

  ids(): string[] {
    return finishedKinds.flatMap((kind) => [...this.#all[kind].keys()]);
  }

  add(delivery: Delivery): void {
    const { id, webhookId } = delivery;
    const kind = kindOf(delivery);
    const ofWebhook = this.#byWebhook.get(webhookId) ?? noDeliveries();
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

  /** Redelivered deliveries were just added to the end of their kind, but they finished earlier. */
  sortRedelivered(webhookIds: Iterable<string>): void {
    const all = [...webhookIds].flatMap((id) => this.#byWebhook.get(id) ?? []);
    for (const byKind of [this.#all, ...all])
      for (const kind of ['history', 'redelivered'] as const) byKind[kind] = inOrderOfEnd(byKind[kind]);
  }

  /** Deletes what exceeds the limits of the webhook or of all webhooks, and returns it. */
  takeSurplus(webhookId: string): readonly Delivery[] {
    const evicted: Delivery[] = [];
    for (const kind of finishedKinds) {
      const ofWebhook = this.#byWebhook.get(webhookId)?.[kind] ?? new Map<string, Delivery>();
      const evictFirst = (list: ById, isTooMuch: () => boolean) => {
        for (const delivery of list.values()) {
          if (!isTooMuch()) return;
          this.delete(delivery);
          evicted.push(delivery);
        }
      };
      evictFirst(ofWebhook, () => ofWebhook.size > keptOf(kind, this.#retention));
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
