// Tracks which processes are alive. Every process renews a lease of ten seconds; when the lease of a process has expired, the process is
// dead, and any other process deletes it together with its claims.
//
// While the database is unavailable, no process can renew its lease. When a process renews its own lease after it had expired, it
// ignores for ten seconds that leases of other processes expired before that moment, which gives those processes time to renew theirs.
import { type Client, type Database, query, soonMs } from './database.ts';

const lease = `interval '10 seconds'`;

/** SQL condition: the process with the id $1 may treat the process `p` as dead. `since` is when the lease of $1 last started without a gap. */
const isDead = `p.alive_until < clock_timestamp() and exists (select from processes me where me.id = $1
  and me.alive_until > clock_timestamp() and (p.alive_until >= me.since or me.since < clock_timestamp() - ${lease}))`;

export type Peers = {
  /** Renews the lease of this process and deletes dead processes with their claims. */
  keepAlive: () => Promise<void>;
  /** Reads which processes are alive; returns whether a process has started or ended. */
  look: (client: Client) => Promise<boolean>;
  isAlive: (process: string) => boolean;
  /** Deletes this process and its claims. */
  leave: () => Promise<void>;
};

export function createPeers(database: Database, self: string): Peers {
  let alive = new Set<string>();

  return {
    keepAlive: () =>
      database.use(async (client) => {
        await query(
          client,
          `insert into processes as p (id, alive_until) values ($1, clock_timestamp() + ${lease})
           on conflict (id) do update set alive_until = excluded.alive_until,
             since = case when p.alive_until < clock_timestamp() then clock_timestamp() else p.since end`,
          [self],
          soonMs,
        );
        await query(
          client,
          `with dead as (delete from processes p where ${isDead})
           delete from claims c where not exists (
             select from processes p where p.id = c.process and not (${isDead}))`,
          [self],
        );
      }),
    async look(client) {
      const { rows } = await query<{ id: string }>(
        client,
        `select p.id from processes p where not (${isDead})`,
        [self],
        soonMs,
      );
      const before = alive;
      alive = new Set(rows.map(({ id }) => id));
      return alive.size !== before.size || [...alive].some((id) => !before.has(id));
    },
    isAlive: (process) => process === self || alive.has(process),
    leave: () =>
      database.use(async (client) => {
        await query(client, 'delete from claims where process = $1', [self], soonMs);
        await query(client, 'delete from processes where id = $1', [self], soonMs);
      }),
  };
}
