// The processes at work on one database. Each says again and again that it is alive; one that has not done so for a while is dead,
// and what it had claimed is given free.
import { type Client, type Database, query, soonMs } from './database.ts';

/** How long a process counts as alive after it last said so. */
const leaseSeconds = 10;

export type Peers = {
  /** Says that this process is alive, and buries the dead. Answers whether they had left anything. */
  keepAlive: () => Promise<boolean>;
  /** Looks who is alive; answers whether somebody has come or gone. */
  look: (client: Client) => Promise<boolean>;
  isAlive: (process: string) => boolean;
  /** This process's last word: what it has claimed is free. */
  leave: () => Promise<void>;
};

export function createPeers(database: Database, self: string): Peers {
  let alive = new Set<string>();

  async function bury(client: Client): Promise<boolean> {
    const { rows } = await query<{ freed: number }>(
      client,
      `with dead as (delete from processes where alive_until < clock_timestamp()),
       freed as (delete from claims c where not exists (
         select from processes p where p.id = c.process and p.alive_until >= clock_timestamp()) returning key)
       select count(*) as freed from freed`,
    );
    return (rows[0]?.freed ?? 0) > 0;
  }

  return {
    keepAlive: () =>
      database.use(async (client) => {
        await query(
          client,
          `insert into processes (id, alive_until) values ($1, clock_timestamp() + interval '${leaseSeconds} seconds')
           on conflict (id) do update set alive_until = excluded.alive_until`,
          [self],
          soonMs,
        );
        return bury(client);
      }),
    async look(client) {
      const { rows } = await query<{ id: string }>(
        client,
        'select id from processes where alive_until > clock_timestamp()',
        [],
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
