// The processes at work on one database. Each says again and again that it is alive; one that has not done so for a while is dead,
// and what it had claimed is given free.
import type { Queue } from '../transaction.ts';
import { nameOf } from './columns.ts';
import { type Client, type Database, query } from './database.ts';

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

export function createPeers(database: Database, queues: readonly Queue<never>[], self: string): Peers {
  let alive = new Set<string>();

  /** Rows that are just being settled are left for the next time. */
  async function free(client: Client, dead: readonly string[]): Promise<number> {
    let freed = 0;
    for (const { name } of queues) {
      const table = nameOf(name);
      const { rowCount } = await query(
        client,
        `update ${table} set claim = null, claimed_by = null where key in (
           select key from ${table} where claimed_by = any($1::text[]) and claim is not null
           for update skip locked)`,
        [dead],
      );
      freed += rowCount ?? 0;
    }
    return freed;
  }

  async function bury(client: Client): Promise<boolean> {
    const { rows } = await query<{ id: string }>(
      client,
      'select id from processes where alive_until < clock_timestamp()',
    );
    const dead = rows.map(({ id }) => id);
    if (dead.length === 0) return false;
    const freed = await free(client, dead);
    const stillClaimed = queues.map(
      ({ name }) =>
        `and not exists (select from ${nameOf(name)} where claimed_by = p.id and claim is not null)`,
    );
    await query(
      client,
      `delete from processes p where id = any($1::text[]) and alive_until < clock_timestamp() ${stillClaimed.join(' ')}`,
      [dead],
    );
    return freed > 0;
  }

  return {
    keepAlive: () =>
      database.use(async (client) => {
        await query(
          client,
          `insert into processes (id, alive_until) values ($1, clock_timestamp() + interval '${leaseSeconds} seconds')
           on conflict (id) do update set alive_until = excluded.alive_until`,
          [self],
        );
        return bury(client);
      }),
    async look(client) {
      const { rows } = await query<{ id: string }>(
        client,
        'select id from processes where alive_until > clock_timestamp()',
      );
      const before = alive;
      alive = new Set(rows.map(({ id }) => id));
      return alive.size !== before.size || [...alive].some((id) => !before.has(id));
    },
    isAlive: (process) => process === self || alive.has(process),
    leave: () =>
      database.use(async (client) => {
        await free(client, [self]);
        await query(client, 'delete from processes where id = $1', [self]);
      }),
  };
}
