// Finds the webhooks that get an event by its type and service, without reading the others.
import type { Reader } from '../../store/state.ts';
import type { EventDraft } from '../event.ts';
import { type Webhook, webhooks } from '../webhook.ts';

const everyType = '*';

type ByService = Map<string | null, Webhook[]>;

export class Subscriptions {
  #version = NaN;
  #byType = new Map<string, ByService>();

  /** The webhooks that get the event while they are active. */
  *to(reader: Reader, { type, service }: Pick<EventDraft, 'type' | 'service'>): Iterable<Webhook> {
    const byType = this.#index(reader);
    for (const subscribed of [everyType, type]) {
      const byService = byType.get(subscribed);
      yield* byService?.get(null) ?? [];
      if (service !== null) yield* byService?.get(service) ?? [];
    }
  }

  #index(reader: Reader): ReadonlyMap<string, ByService> {
    const version = reader.version(webhooks);
    // A transaction that has changed a webhook has no version, so nothing equals it.
    if (version === this.#version) return this.#byType;
    this.#version = version;
    this.#byType = new Map();
    for (const webhook of reader.all(webhooks)) {
      const { changeTypes, service } = webhook;
      for (const type of changeTypes.includes(everyType) ? [everyType] : changeTypes) {
        const byService: ByService = this.#byType.get(type) ?? new Map();
        this.#byType.set(type, byService);
        const webhooksOf = byService.get(service);
        if (webhooksOf) webhooksOf.push(webhook);
        else byService.set(service, [webhook]);
      }
    }
    return this.#byType;
  }
}
