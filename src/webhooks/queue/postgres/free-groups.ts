// Which webhooks have free deliveries of which priority, as far as this process knows, in the order of their turns.
//
// A claim gets the first webhooks in turn, and the next one reads what it has left of their groups, however many others
// wait. It reads from the last known delivery on: PostgreSQL cannot remove the index entries of claimed deliveries while
// a backup or a forgotten transaction may still read them, and a claim from the start of the index would read all of
// these again. The process adds the groups of deliveries that it adds itself. It learns of others by reading all groups
// from the start: every half second, when it knows of none, and less often if that takes long.
import { TimeShare } from '../../../lib/time-share.ts';
import { type Client, query } from '../../../store/postgres/database.ts';
import { type Delivery, priorityOf, waitingSince } from '../delivery.ts';

/** A webhook and a priority that may have free deliveries. None of them waits since a moment before `since`. */
export type FreeGroup = { readonly webhookId: string; readonly priority: number; readonly since: number };

const readAllEveryMs = 500;

/**
 * The first free delivery of each group. Jumps from one group to the next in the index instead of reading every
 * delivery.
 */
const selectAll = `with recursive w as (
    (select q.webhook_id, q.priority, q.since from queue q where q.claimed_by is null
     order by q.webhook_id, q.priority, q.since limit 1)
    union all
    select n.* from w cross join lateral (
      select q.webhook_id, q.priority, q.since from queue q
      where q.claimed_by is null and (q.webhook_id, q.priority) > (w.webhook_id, w.priority)
      order by q.webhook_id, q.priority, q.since limit 1) n)
  select webhook_id as "webhookId", priority, since from w`;

/** The first free delivery of each given group, from `since` on. */
const selectKnown = `select g.webhook_id as "webhookId", g.priority, n.since
  from unnest($1::text[], $2::smallint[], $3::bigint[]) g(webhook_id, priority, since) cross join lateral (
    select q.since from queue q
    where q.claimed_by is null and q.webhook_id = g.webhook_id and q.priority = g.priority and q.since >= g.since
    order by q.since limit 1) n`;

export class FreeGroups {
  /** By webhook, in the order of their turns. */
  readonly #known = new Map<string, readonly FreeGroup[]>();
  /** What claims got since the last read, and what may have been discarded. */
  #doubtful: FreeGroup[] = [];
  readonly #reading = new TimeShare();
  /** By the clock of the machine. */
  #readAllAt = 0;

  /** Notes the groups of pending deliveries that became free. */
  add(deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) {
      if (delivery.state !== 'pending') continue;
      const { webhookId } = delivery;
      this.merge({ webhookId, priority: priorityOf(delivery), since: waitingSince(delivery) });
    }
  }

  /** The next `read` reads all groups, unless the last one took long. */
  expire(): void {
    this.#readAllAt = 0;
  }

  /** The known groups by webhook, in the order of their turns. */
  inTurns(): Iterable<readonly [webhookId: string, groups: readonly FreeGroup[]]> {
    return this.#known;
  }

  /** The webhook had its turn, so its next one is after those of all others. */
  use(webhookId: string): void {
    this.doubt(webhookId);
    this.#known.delete(webhookId);
    this.#known.set(webhookId, []);
  }

  /** The next `read` finds out whether the webhook still has free deliveries. */
  doubt(webhookId: string): void {
    const groups = this.#known.get(webhookId);
    if (!groups) return;
    this.#doubtful.push(...groups);
    this.#known.set(webhookId, []);
  }

  /** Reads what is left of the doubtful groups. `onTheWayMs`: how long anything takes on the way to the database. */
  async read(client: Client, onTheWayMs: number): Promise<void> {
    const doubtful = this.#doubtful;
    // What is added meanwhile may not be part of the result.
    this.#doubtful = [];
    try {
      for (const group of await this.#select(client, doubtful, onTheWayMs)) this.merge(group);
      for (const { webhookId } of doubtful)
        if (this.#known.get(webhookId)?.length === 0) this.#known.delete(webhookId);
    } catch (error) {
      this.#doubtful.push(...doubtful);
      throw error;
    }
  }

  async #select(
    client: Client,
    doubtful: readonly FreeGroup[],
    onTheWayMs: number,
  ): Promise<readonly FreeGroup[]> {
    const isDue = this.#known.size === 0 || performance.now() >= this.#readAllAt;
    if (isDue && this.#reading.isAllowed()) {
      this.#readAllAt = performance.now() + readAllEveryMs;
      const read = async () => (await query<FreeGroup>(client, selectAll)).rows;
      return this.#reading.run(read, onTheWayMs);
    }
    if (doubtful.length === 0) return [];
    const { rows } = await query<FreeGroup>(client, selectKnown, [
      doubtful.map(({ webhookId }) => webhookId),
      doubtful.map(({ priority }) => priority),
      doubtful.map(({ since }) => since),
    ]);
    return rows;
  }

  /** Notes a group that has free deliveries, the first of which waits since `since` or longer. */
  merge(group: FreeGroup): void {
    const { webhookId, priority } = group;
    const groups = this.#known.get(webhookId) ?? [];
    const known = groups.find((one) => one.priority === priority);
    if (known && known.since <= group.since) return;
    this.#known.set(webhookId, [...groups.filter((one) => one !== known), group]);
  }
}
