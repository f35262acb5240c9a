// How many deliveries are pending. Every process counts what it adds and completes, and twice a second reads the
// counts of the others.
import { type Client, query } from '../../../store/postgres/database.ts';
import { bytesOfPayload } from '../../event.ts';
import type { Delivery } from '../delivery.ts';
import { type PendingCounts, countsOf } from './rows.ts';

/**
 * How many polls in a row leave the count of this process unchanged, because the process has changed it during the
 * poll.
 */
const maxIgnoredPolls = 4;

const none: PendingCounts = { count: 0, bytes: 0 };

export class PendingCount {
  readonly #self: string;
  #own = none;
  #others = none;
  /** The deliveries of a batch that is being planned. */
  #planned = none;
  /** How often a write that may change the count has begun or ended, and how many are in progress. */
  #changes = 0;
  #inProgress = 0;
  #ignoredPolls = 0;

  constructor(self: string) {
    this.#self = self;
  }

  get value(): PendingCounts {
    return sum(sum(this.#own, this.#others), this.#planned);
  }

  /**
   * Runs a write that may change the count. While it is in progress, it is not known whether the database has
   * counted it already.
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
    this.#own = sum(this.#own, counts);
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
    const changes = this.#inProgress > 0 ? -1 : this.#changes;
    const { rows } = await query<PendingCounts & { is_own: boolean }>(
      client,
      `select process = $1 as is_own, sum(count)::bigint as count, sum(bytes)::bigint as bytes from pending_counts group by 1`,
      [this.#self],
    );
    const countsIn = (isOwn: boolean) => rows.find((row) => row.is_own === isOwn) ?? none;
    this.#others = countsIn(false);
    const isOutdated = changes !== this.#changes && this.#ignoredPolls < maxIgnoredPolls;
    this.#ignoredPolls = isOutdated ? this.#ignoredPolls + 1 : 0;
    if (!isOutdated) this.#own = countsIn(true);
  }
}

function sum(a: PendingCounts, b: PendingCounts): PendingCounts {
  return { count: a.count + b.count, bytes: a.bytes + b.bytes };
}
