// How many deliveries are pending. Every process counts what it adds and completes, and reads what the others have counted twice a second.
import { bytesOfPayload } from '../../webhooks/event.ts';
import type { Delivery } from '../../webhooks/delivery.ts';
import { type Client, query } from './database.ts';
import { type Counts, bytesOfAll } from './delivery-rows.ts';

/** Looks whose result would overwrite a newer count are ignored, but not more often than this. */
const mostIgnoredLooks = 4;

const none: Counts = { count: 0, bytes: 0 };

export class PendingCount {
  #known = none;
  /** The deliveries of a batch that is being planned. */
  #planned = none;
  /** How often a write that may change the count has begun or ended, and how many are in progress. */
  #changes = 0;
  #inProgress = 0;
  #ignoredLooks = 0;

  get value(): Counts {
    return sum(this.#known, this.#planned);
  }

  /** Runs a write that may change the count. While it is in progress, it is not known whether the database has counted it already. */
  async during<T>(write: () => Promise<T>): Promise<T> {
    this.#changes += 1;
    this.#inProgress += 1;
    try {
      return await write();
    } finally {
      this.#changes += 1;
      this.#inProgress -= 1;
    }
  }

  add(counts: Counts): void {
    this.#known = sum(this.#known, counts);
  }

  addAll(deliveries: readonly Delivery[]): void {
    this.add({ count: deliveries.length, bytes: bytesOfAll(deliveries) });
  }

  subtract({ event }: Delivery): void {
    this.add({ count: -1, bytes: -bytesOfPayload(event) });
  }

  /** Counts deliveries until `endPlan`. */
  plan(deliveries: readonly Delivery[]): void {
    this.#planned = sum(this.#planned, { count: deliveries.length, bytes: bytesOfAll(deliveries) });
  }

  endPlan(): void {
    this.#planned = none;
  }

  async look(client: Client): Promise<void> {
    const changes = this.#inProgress > 0 ? -1 : this.#changes;
    const { rows } = await query<Counts>(
      client,
      'select coalesce(sum(count), 0)::bigint as count, coalesce(sum(bytes), 0)::bigint as bytes from pending_counts',
    );
    const isOutdated = changes !== this.#changes && this.#ignoredLooks < mostIgnoredLooks;
    this.#ignoredLooks = isOutdated ? this.#ignoredLooks + 1 : 0;
    if (!isOutdated) this.#known = rows[0] ?? none;
  }
}

function sum(a: Counts, b: Counts): Counts {
  return { count: a.count + b.count, bytes: a.bytes + b.bytes };
}
