// Tracks which processes are alive. Every process renews a lease, by default one of ten seconds; when the lease of
// a process has expired, the process is dead, and any other process deletes it and releases its claims.
//
// While the database is unavailable, no process can renew its lease. When a process renews its own lease after it
// had expired, it ignores for the length of a lease that leases of other processes expired before that moment,
// which gives those processes time to renew theirs.
import { TimeShare } from '../../lib/time-share.ts';
import { type Client, type Database, query } from './database.ts';

/** SQL: the length of a lease, which is the parameter $2. */
const lease = `$2::float8 * interval '1 ms'`;

/**
 * SQL condition: the process with the id $1 may treat the process `p` as dead. `since` is when the lease of $1 last
 * started without a gap.
 */
const isDead = `p.alive_until < clock_timestamp() and exists (select from processes me where me.id = $1
  and me.alive_until > clock_timestamp() and (p.alive_until >= me.since or me.since < clock_timestamp() - ${lease}))`;

/** What processes hold in the tables of a feature. */
export type Holdings = {
  /** SQL: the ids of processes that hold something but do not exist. */
  readonly selectGone: string;
  /** Releases what the processes hold. The result is whether they held anything that others can take now. */
  readonly release: (client: Client, processes: readonly string[]) => Promise<boolean>;
};

type PeersOptions = {
  readonly database: Database;
  readonly self: string;
  readonly leaseMs: number;
  readonly holdings: Holdings;
};

export class Peers {
  readonly #options: PeersOptions;
  #alive = new Set<string>();
  readonly #looking = new TimeShare();

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  /** Short enough for several tries before the lease expires. */
  get renewEveryMs(): number {
    return this.#options.leaseMs / 5;
  }

  isAlive(process: string): boolean {
    return process === this.#options.self || this.#alive.has(process);
  }

  async renew(client: Client): Promise<void> {
    await query(
      client,
      `insert into processes as p (id, alive_until) values ($1, clock_timestamp() + ${lease})
       on conflict (id) do update set alive_until = excluded.alive_until,
         since = case when p.alive_until < clock_timestamp() then clock_timestamp() else p.since end`,
      [this.#options.self, this.#options.leaseMs],
      { withinMs: this.#options.database.soonMs },
    );
  }

  /**
   * Renews the lease of this process, deletes dead processes and releases their claims. Returns whether it released
   * any.
   */
  async keepAlive(): Promise<boolean> {
    const { database, holdings } = this.#options;
    return database.use(async (client) => {
      await this.renew(client);
      if (database.isOutdated) return false;
      const { rows: dead } = await query<{ id: string }>(
        client,
        `delete from processes p where ${isDead} returning p.id`,
        [this.#options.self, this.#options.leaseMs],
        { withinMs: this.#options.database.soonMs },
      );
      // A process may have ended before it released what a dead one holds, and a dead one may have committed a claim
      // after the release.
      if (this.#looking.isAllowed()) {
        const { rows: gone } = await this.#looking.run(
          () => query<{ id: string }>(client, holdings.selectGone),
          database.probeMs,
        );
        dead.push(...gone);
      }
      if (dead.length === 0) return false;
      const ids = dead.map(({ id }) => id);
      return holdings.release(client, ids);
    });
  }

  /** Reads which processes are alive; returns whether a process has started or ended. */
  async poll(client: Client): Promise<boolean> {
    const { rows } = await query<{ id: string }>(
      client,
      `select p.id from processes p where not (${isDead})`,
      [this.#options.self, this.#options.leaseMs],
      { withinMs: this.#options.database.soonMs },
    );
    const before = this.#alive;
    this.#alive = new Set(rows.map(({ id }) => id));
    return this.#alive.size !== before.size || [...this.#alive].some((id) => !before.has(id));
  }

  /** Deletes this process and releases its claims. */
  async leave(): Promise<void> {
    await this.#options.database.use(async (client) => {
      await query(client, 'delete from processes where id = $1', [this.#options.self], {
        withinMs: this.#options.database.soonMs,
      });
      await this.#options.holdings.release(client, [this.#options.self]);
    });
  }
}
