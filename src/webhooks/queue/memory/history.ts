// The counts of each webhook and hour in memory.
import type { Delivery } from '../delivery.ts';
import {
  type History,
  type HistoryRequest,
  type Hour,
  addCounts,
  countedOf,
  historyMs,
  hourOf,
} from '../history.ts';

type CountedHour = Hour & { readonly webhookId: string };

export type HistoryDump = { readonly since: number; readonly hours: readonly CountedHour[] };

export class DeliveryHistory {
  #since: number;
  #hours = new Map<string, CountedHour>();

  constructor(since: number) {
    this.#since = since;
  }

  count(before: Delivery | undefined, after: Delivery): void {
    const hour = countedOf(before, after);
    if (!hour) return;
    const { webhookId } = after;
    const key = `${hour.at} ${webhookId}`;
    const counted = this.#hours.get(key);
    this.#hours.set(key, { webhookId, at: hour.at, ...(counted ? addCounts(counted, hour) : hour) });
  }

  read({ webhookId, from, to }: HistoryRequest): History {
    const hours = new Map<number, Hour>();
    for (const counted of this.#hours.values()) {
      const { at } = counted;
      if (at < hourOf(from) || at > to || (webhookId ?? counted.webhookId) !== counted.webhookId) continue;
      const { webhookId: _webhookId, ...hour } = counted;
      const known = hours.get(at);
      hours.set(at, known ? { at, ...addCounts(known, hour) } : hour);
    }
    return { hours: [...hours.values()].sort((a, b) => a.at - b.at), since: this.#since };
  }

  forget(at: number): void {
    for (const [key, hour] of this.#hours) if (hour.at < hourOf(at - historyMs)) this.#hours.delete(key);
  }

  dump(): HistoryDump {
    return { since: this.#since, hours: [...this.#hours.values()] };
  }

  load({ since, hours }: HistoryDump): void {
    this.#since = since;
    this.#hours = new Map(hours.map((hour) => [`${hour.at} ${hour.webhookId}`, hour]));
  }
}
