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

export type HistoryDump = { readonly since: number; readonly hours: readonly Hour[] };

export class DeliveryHistory {
  #since: number;
  #hours = new Map<string, Hour>();

  constructor(since: number) {
    this.#since = since;
  }

  count(before: Delivery | undefined, after: Delivery): void {
    const hour = countedOf(before, after);
    if (!hour) return;
    const key = keyOf(hour);
    const counted = this.#hours.get(key);
    this.#hours.set(key, { ...hour, ...(counted && addCounts(counted, hour)) });
  }

  read({ webhookIds, from, to }: HistoryRequest): History {
    const chosen = webhookIds && new Set(webhookIds);
    const hours = new Map<string, Hour>();
    for (const counted of this.#hours.values()) {
      const { at } = counted;
      if (at < hourOf(from) || at > to || chosen?.has(counted.webhookId) === false) continue;
      const hour = chosen ? counted : { ...counted, webhookId: '' };
      const known = hours.get(keyOf(hour));
      hours.set(keyOf(hour), { ...hour, ...(known && addCounts(known, hour)) });
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
    this.#hours = new Map(hours.map((hour) => [keyOf(hour), hour]));
  }
}

function keyOf({ at, webhookId }: Hour): string {
  return `${at} ${webhookId}`;
}
