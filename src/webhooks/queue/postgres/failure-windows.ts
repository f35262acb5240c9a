// Reads and writes the failure windows of webhooks.
import { type Client, query } from '../../../store/postgres/database.ts';
import type { FailureWindow } from '../../sending/failure-window.ts';

type WindowRow = {
  readonly webhook_id: string;
  readonly start: number | null;
  readonly count: number | null;
};

/** Locks the windows until the transaction ends, also those of webhooks that have none yet. */
export async function lockFailureWindows(
  client: Client,
  webhookIds: readonly string[],
): Promise<ReadonlyMap<string, FailureWindow>> {
  // Sorted, so that two transactions that lock several windows do not wait for each other.
  const sorted = [...new Set(webhookIds)].sort();
  const [, { rows }] = await Promise.all([
    query(
      client,
      'insert into failure_windows (webhook_id) select unnest($1::text[]) on conflict do nothing',
      [sorted],
    ),
    query<WindowRow>(
      client,
      `select webhook_id, start, count from failure_windows where webhook_id = any($1::text[])
       order by webhook_id for update`,
      [sorted],
    ),
  ]);
  return toWindows(rows);
}

export async function setFailureWindows(
  client: Client,
  windows: ReadonlyMap<string, FailureWindow | null>,
): Promise<void> {
  await query(
    client,
    `insert into failure_windows (webhook_id, start, count)
     select * from unnest($1::text[], $2::bigint[], $3::bigint[])
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
  webhookId?: string,
): Promise<ReadonlyMap<string, FailureWindow>> {
  const select = 'select webhook_id, start, count from failure_windows where start is not null';
  const { rows } =
    webhookId === undefined
      ? await query<WindowRow>(client, select)
      : await query<WindowRow>(client, `${select} and webhook_id = $1`, [webhookId]);
  return toWindows(rows);
}

function toWindows(rows: readonly WindowRow[]): ReadonlyMap<string, FailureWindow> {
  return new Map(
    rows.flatMap(({ webhook_id: id, start, count }) =>
      start === null || count === null ? [] : [[id, { start, count }] as const],
    ),
  );
}
