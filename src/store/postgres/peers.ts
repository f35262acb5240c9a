// The processes at work on one database. Each says again and again that it is alive; one that has not done so for a while is dead,
// and what it had claimed is given free.
import { type Client, type Database, query, soonMs } from './database.ts';

/** How long a process counts as alive after it last said so. */
const lease = `interval '10 seconds'`;

/**
 * Whether the process of `p` is dead, as the one of the first value sees it. When the database was away nobody could say anything:
 * whoever could not do so itself gives all others the time of a lease to speak up again.
 */
const isDead = `p.alive_until < clock_timestamp() and exists (select from processes me where me.id = $1
  and me.alive_until > clock_timestamp() and (p.alive_until >= me.since or me.since < clock_timestamp() - ${lease}))`;

export type Peers = {
  /** Says that this process is alive, and buries the dead: what they have claimed is free. */
  keepAlive: () => Promise<void>;
  /** Looks who is alive; answers whether somebody has come or gone. */
  look: (client: Client) => Promise<boolean>;
  isAlive: (process: string) => boolean;
  /** This process's last word: what it has claimed is free. */
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
