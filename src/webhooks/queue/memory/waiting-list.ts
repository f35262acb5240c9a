// Pending deliveries of one webhook and priority, in the order of the time since which they wait.
//
// Nearly always, a delivery is added at the end and removed from the front. An entry that is removed leaves a hole, and
// the list is rebuilt when it has more holes than deliveries.
import { type Delivery, waitingSince } from '../delivery.ts';

const minRebuilt = 32;

export class WaitingList {
  #entries: (Delivery | undefined)[] = [];
  /** The places of the deliveries in the list, by their ids. */
  readonly #indexes = new Map<string, number>();
  #first = 0;

  /** After a released claim, or after the clock was set back, the place is further ahead. */
  add(delivery: Delivery): void {
    const since = waitingSince(delivery);
    let index = this.#entries.length;
    for (; index > this.#first; index -= 1) {
      const before = this.#entries[index - 1];
      if (before && waitingSince(before) <= since) break;
      this.#put(index, before);
    }
    this.#put(index, delivery);
  }

  delete(id: string): void {
    const index = this.#indexes.get(id);
    if (index === undefined) return;
    this.#entries[index] = undefined;
    this.#indexes.delete(id);
    while (this.#entries.length > 0 && this.#entries.at(-1) === undefined) this.#entries.pop();
    if (this.#entries.length === 0) this.#first = 0;
    while (this.#first < this.#entries.length && this.#entries[this.#first] === undefined) this.#first += 1;
    if (this.#entries.length > Math.max(minRebuilt, 2 * this.#indexes.size)) this.#rebuild();
  }

  first(): Delivery | undefined {
    return this.#entries[this.#first];
  }

  #put(index: number, delivery: Delivery | undefined): void {
    this.#entries[index] = delivery;
    if (delivery) this.#indexes.set(delivery.id, index);
  }

  #rebuild(): void {
    const deliveries = this.#entries.filter((entry) => entry !== undefined);
    this.#entries = [];
    this.#first = 0;
    for (const [index, delivery] of deliveries.entries()) this.#put(index, delivery);
  }
}
