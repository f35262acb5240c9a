// Reads what the copy does not hold: rows of queues, and archives.
import type { Store } from '../store.ts';
import type { Archive, Queue } from '../transaction.ts';
import { nameOf, namesOf, toRow } from './columns.ts';
import type { Database } from './database.ts';
import { rowOf, selectionOf } from './queue-rows.ts';
import type { Secrets } from './secrets.ts';

type Fields = Record<string, unknown> & { key: string };

export function createReads(
  { ask }: Database,
  secrets: Secrets,
): Pick<Store, 'find' | 'oldest' | 'page' | 'fetch'> {
  const select = (queue: Queue<never>, rest: string) =>
    `select ${selectionOf(queue)} from ${nameOf(queue.name)} q ${rest}`;

  return {
    find: async <T>(queue: Queue<T>, key: string) => {
      const [record] = await ask<Fields>(select(queue, 'where q.key = $1'), [key]);
      return record && rowOf(queue, record, secrets);
    },
    oldest: async <T>(queue: Queue<T>) => {
      const [record] = await ask<Fields>(
        select(queue, 'where q.due_at is not null order by q.placed limit 1'),
      );
      return record && rowOf(queue, record, secrets);
    },
    page: async <T>(queue: Queue<T>, owner: string, start: number, num: number) => {
      // The inner query finds the keys. Without it, PostgreSQL would also build the lists of the rows that `offset` skips.
      const newestFirst = `where q.key in (select p.key from ${nameOf(queue.name)} p
        where p.owner = $1 order by p.placed desc offset $2 limit $3) order by q.placed desc`;
      const [records, counted] = await Promise.all([
        ask<Fields>(select(queue, newestFirst), [owner, start, num]),
        ask<{ count: number }>(`select count(*) from ${nameOf(queue.name)} where owner = $1`, [owner]),
      ]);
      return {
        rows: records.map((record) => rowOf(queue, record, secrets)),
        total: counted[0]?.count ?? 0,
      };
    },
    fetch: async <T>(archive: Archive<T>, key: string) => {
      const from = `select ${namesOf(archive.shape)} from ${nameOf(archive.name)}`;
      const [record] = await ask<Fields>(`${from} where key = $1`, [key]);
      return record && (toRow(archive, record, secrets) as T);
    },
  };
}
