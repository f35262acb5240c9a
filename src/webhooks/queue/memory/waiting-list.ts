// Pending deliveries of one webhook and priority, in the order of the time since which they wait.
import { type Delivery, waitingSince } from '../delivery.ts';

export class WaitingList {
  #deliveries = new Map<string, Delivery>();
  #latest = -Infinity;
  #isSorted = true;

  /**
   * Nearly always, the delivery waits since the latest time. It does not after a claim was released or the clock
   * was set back.
   */
  add(delivery: Delivery): void {
    const since = waitingSince(delivery);
    this.#deliveries.set(delivery.id, delivery);
    if (since < this.#latest) this.#isSorted = false;
    else this.#latest = since;
  }

  delete(id: string): void {
    this.#deliveries.delete(id);
  }

  first(): Delivery | undefined {
    if (!this.#isSorted) this.#sort();
    const [first] = this.#deliveries.values();
    return first;
  }

  #sort(): void {
    const sorted = [...this.#deliveries].sort(([, a], [, b]) => waitingSince(a) - waitingSince(b));
    this.#deliveries = new Map(sorted);
    this.#isSorted = true;
  }
}
