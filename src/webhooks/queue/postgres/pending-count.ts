// How many deliveries are pending. Every process counts them twice a second, or less often if that takes long, and adds
// what it has added and completed itself since then.
import { TimeShare } from '../../../lib/time-share.ts';
import type { Database } from '../../../store/postgres/database.ts';
import type { PendingCounts } from '../delivery-queue.ts';
import type { Delivery } from '../delivery.ts';
import { countsOf } from './rows.ts';

/** How many counts in a row are ignored because a write of this process was in progress during the count. */
const maxIgnored = 4;

const countPending = `select count(*), coalesce(sum(bytes), 0)::bigint as bytes, min(created_at) as "oldestAt" from queue`;

export class PendingCount {
  #value: PendingCounts = { count: 0, bytes: 0 };
  /** How often a write that may change the count has begun or ended, and how many are in progress. */
  #changes = 0;
  #inProgress = 0;
  #ignored = 0;
  readonly #counting = new TimeShare();

  get value(): PendingCounts {
    const { count, bytes, oldestAt } = this.#value;
    return { count, bytes, oldestAt: count > 0 ? (oldestAt ?? undefined) : undefined };
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

  /** The oldest one stays the oldest until the next count, also if it is completed. */
  add({ count, bytes, oldestAt = Infinity }: PendingCounts): void {
    const known = this.value;
    this.#value = {
      count: known.count + count,
      bytes: known.bytes + bytes,
      oldestAt: Math.min(known.oldestAt ?? Infinity, oldestAt),
    };
  }

  /** Adds the deliveries that are pending. */
  addAll(deliveries: readonly Delivery[]): void {
    this.add(countsOf(deliveries));
  }

  subtractAll(deliveries: readonly Delivery[]): void {
    const { count, bytes } = countsOf(deliveries);
    this.add({ count: -count, bytes: -bytes });
  }

  /** Counts, unless the last count took long and was made a moment ago. */
  async read(database: Database): Promise<void> {
    if (!this.#counting.isAllowed()) return;
    const changes = this.#inProgress > 0 ? -1 : this.#changes;
    const count = () => database.ask<PendingCounts>(countPending);
    const [counted] = await this.#counting.run(count, database.probeMs);
    const isIgnored = changes !== this.#changes && this.#ignored < maxIgnored;
    this.#ignored = isIgnored ? this.#ignored + 1 : 0;
    if (!isIgnored && counted) this.#value = counted;
  }
}
