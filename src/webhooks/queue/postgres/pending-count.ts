// How many deliveries are pending. Every process counts them twice a second, and adds what it has added and completed
// itself since then.
import { type Client, query } from '../../../store/postgres/database.ts';
import { bytesOfPayload } from '../../event.ts';
import type { Delivery } from '../delivery.ts';
import { type PendingCounts, countsOf } from './rows.ts';

/** Counting takes at most this share of the time, unless it is short. */
const maxShare = 1 / 50;
const longMs = 10;

/** How many counts in a row are ignored because a write of this process was in progress during the count. */
const maxIgnored = 4;

const none: PendingCounts = { count: 0, bytes: 0 };

export class PendingCount {
  #value = none;
  /** The deliveries of a batch that is being planned. */
  #planned = none;
  /** How often a write that may change the count has begun or ended, and how many are in progress. */
  #changes = 0;
  #inProgress = 0;
  #ignored = 0;
  /** By the clock of the machine. */
  #nextAt = 0;

  get value(): PendingCounts {
    return sum(this.#value, this.#planned);
  }

  /**
   * Runs a write that may change the count. While it is in progress, it is not known whether a count of the database
   * includes it.
   */
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

  add(counts: PendingCounts): void {
    this.#value = sum(this.#value, counts);
  }

  /** Adds the deliveries that are pending. */
  addAll(deliveries: readonly Delivery[]): void {
    this.add(countsOf(deliveries));
  }

  subtract({ event }: Delivery): void {
    this.add({ count: -1, bytes: -bytesOfPayload(event) });
  }

  /** Counts deliveries until `endPlan`. */
  plan(deliveries: readonly Delivery[]): void {
    this.#planned = sum(this.#planned, countsOf(deliveries));
  }

  endPlan(): void {
    this.#planned = none;
  }

  async poll(client: Client): Promise<void> {
    const started = performance.now();
    if (started < this.#nextAt) return;
    const changes = this.#inProgress > 0 ? -1 : this.#changes;
    const { rows } = await query<PendingCounts>(
      client,
      'select count(*), coalesce(sum(bytes), 0)::bigint as bytes from queue',
    );
    const ended = performance.now();
    const tookMs = ended - started;
    this.#nextAt = tookMs > longMs ? ended + tookMs / maxShare : ended;
    const isUncertain = changes !== this.#changes && this.#ignored < maxIgnored;
    this.#ignored = isUncertain ? this.#ignored + 1 : 0;
    if (!isUncertain && rows[0]) this.#value = rows[0];
  }
}

function sum(a: PendingCounts, b: PendingCounts): PendingCounts {
  return { count: a.count + b.count, bytes: a.bytes + b.bytes };
}
