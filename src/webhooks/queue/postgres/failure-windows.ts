// Reads and writes the failure windows of webhooks. Only updates write them, one after another.
import { type Client, query } from '../../../store/postgres/database.ts';
import type { FailureWindow } from '../../sending/failure-window.ts';

type WindowRow = {
  readonly webhook_id: string;
  readonly start: number;
  readonly count: number;
};

/** Null removes the window. */
export async function setFailureWindows(
  client: Client,
  windows: ReadonlyMap<string, FailureWindow | null>,
): Promise<void> {
  await query(
    client,
    `with given as materialized (
       select * from unnest($1::text[], $2::bigint[], $3::bigint[]) g(webhook_id, start, count)),
     removed as (
       delete from failure_windows w using given g where w.webhook_id = g.webhook_id and g.start is null)
     insert into failure_windows (webhook_id, start, count) select * from given where start is not null
     on conflict (webhook_id) do update set start = excluded.start, count = excluded.count`,
    [
      [...windows.keys()],
      [...windows.values()].map((window) => window?.start ?? null),
      [...windows.values()].map((window) => window?.count ?? null),
    ],
  );
}

export async function readFailureWindows(
  client: Client,
  webhookIds?: readonly string[],
): Promise<ReadonlyMap<string, FailureWindow>> {
  const select = 'select webhook_id, start, count from failure_windows';
  const { rows } = webhookIds
    ? await query<WindowRow>(client, `${select} where webhook_id = any($1::text[])`, [webhookIds])
    : await query<WindowRow>(client, select);
  return new Map(rows.map(({ webhook_id: id, start, count }) => [id, { start, count }]));
}
