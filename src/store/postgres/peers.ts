// Tracks which processes are alive. Every process renews a lease, by default one of ten seconds; when the lease of
// a process has expired, the process is dead, and any other process deletes it and releases its claims.
//
// While the database is unavailable, no process can renew its lease. When a process renews its own lease after it
// had expired, it ignores for the length of a lease that leases of other processes expired before that moment,
// which gives those processes time to renew theirs.
import { type Client, type Database, query, soonMs } from './database.ts';

/** SQL: the length of a lease, which is the parameter $2. */
const lease = `$2::float8 * interval '1 ms'`;

/**
 * SQL condition: the process with the id $1 may treat the process `p` as dead. `since` is when the lease of $1 last
 * started without a gap.
 */
const isDead = `p.alive_until < clock_timestamp() and exists (select from processes me where me.id = $1
  and me.alive_until > clock_timestamp() and (p.alive_until >= me.since or me.since < clock_timestamp() - ${lease}))`;

export class Peers {
  readonly #database: Database;
  readonly #self: string;
  readonly #leaseMs: number;
  #alive = new Set<string>();

  constructor(database: Database, self: string, leaseMs: number) {
    this.#database = database;
    this.#self = self;
    this.#leaseMs = leaseMs;
  }

  /** Short enough for several tries before the lease expires. */
  get renewEveryMs(): number {
    return this.#leaseMs / 5;
  }

  isAlive(process: string): boolean {
    return process === this.#self || this.#alive.has(process);
  }

  /**
   * Renews the lease of this process, deletes dead processes and releases their claims. Returns whether it released
   * any.
   */
  async keepAlive(): Promise<boolean> {
    return this.#database.use(async (client) => {
      await query(
        client,
        `insert into processes as p (id, alive_until) values ($1, clock_timestamp() + ${lease})
         on conflict (id) do update set alive_until = excluded.alive_until,
           since = case when p.alive_until < clock_timestamp() then clock_timestamp() else p.since end`,
        [this.#self, this.#leaseMs],
        { withinMs: soonMs },
      );
      if (this.#database.isOutdated) return false;
      // A process that ended before it released the claims of a dead one leaves the counts of that one. The release
      // may also fail, or the dead process may have committed a claim after it: then claims are left without
      // counts.
      const { rows: dead } = await query<{ id: string }>(
        client,
        `with dead as (delete from processes p where ${isDead} returning p.id)
         select id from dead union
         select c.process from pending_counts c where c.process <> ''
           and not exists (select from processes p where p.id = c.process) union
         select d.claimed_by from deliveries d where d.claimed_by is not null
           and not exists (select from processes p where p.id = d.claimed_by)`,
        [this.#self, this.#leaseMs],
        { withinMs: soonMs },
      );
      if (dead.length === 0) return false;
      return this.#release(
        client,
        dead.map(({ id }) => id),
      );
    });
  }

  /** Reads which processes are alive; returns whether a process has started or ended. */
  async look(client: Client): Promise<boolean> {
    const { rows } = await query<{ id: string }>(
      client,
      `select p.id from processes p where not (${isDead})`,
      [this.#self, this.#leaseMs],
      { withinMs: soonMs },
    );
    const before = this.#alive;
    this.#alive = new Set(rows.map(({ id }) => id));
    return this.#alive.size !== before.size || [...this.#alive].some((id) => !before.has(id));
  }

  /** Deletes this process and releases its claims. */
  async leave(): Promise<void> {
    await this.#database.use(async (client) => {
      await query(client, 'delete from processes where id = $1', [this.#self], { withinMs: soonMs });
      await this.#release(client, [this.#self]);
    });
  }

  /** Also adds the counts of the processes to those of ended ones. */
  async #release(client: Client, processes: readonly string[]): Promise<boolean> {
    const [{ rowCount }] = await Promise.all([
      query(
        client,
        'update deliveries set claimed_by = null, claim = null where claimed_by = any($1::text[])',
        [processes],
      ),
      query(
        client,
        `with gone as (delete from pending_counts where process = any($1::text[]) returning count, bytes)
         insert into pending_counts as p (process, statement, count, bytes)
         select '', '', coalesce(sum(count), 0), coalesce(sum(bytes), 0) from gone
         on conflict (process, statement) do update set count = p.count + excluded.count, bytes = p.bytes + excluded.bytes`,
        [processes],
      ),
    ]);
    return (rowCount ?? 0) > 0;
  }
}
