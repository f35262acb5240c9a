// The counts of each webhook and hour in PostgreSQL, which are written by the statements that end deliveries.
//
// A row has a lane, so that statements of the same moment rarely wait for each other. Hours that are over are merged into
// one row each.
import { type Database, deleteInBatches } from '../../../store/postgres/database.ts';
import { type History, type HistoryRequest, type Hour, historyMs, hourMs, hourOf } from '../history.ts';

const counts = ['delivered', 'failed', 'missed', 'discarded', 'attempts', 'duration_ms'] as const;
const columns = counts.join(', ');
const sums = counts.map((name) => `sum(${name})::bigint as ${name}`).join(', ');
const upsert = `on conflict (webhook_id, at, lane) do update set
  ${counts.map((name) => `${name} = h.${name} + excluded.${name}`).join(', ')}`;

/** Updates run one after another, so they have a lane of their own. Merged rows have another one. */
const lanes = { statement: 'pg_backend_pid() % 8', update: '8', merged: '-1' };

export type Lane = keyof typeof lanes;

/**
 * A part of a `with` that counts. `rows` selects webhook_id, state, ended_at, and duration_ms of the attempt that was
 * made, or null.
 */
export function countHours(name: string, rows: string, lane: Lane): string {
  const ofState = (state: string) => `count(*) filter (where state = '${state}')`;
  return `${name} as (
      insert into delivery_hours as h (webhook_id, at, lane, ${columns})
      select webhook_id, ended_at - ended_at % ${hourMs} as hour, ${lanes[lane]},
        ${['delivered', 'failed', 'missed', 'discarded'].map(ofState).join(', ')}, count(duration_ms), coalesce(sum(duration_ms), 0)
      from (${rows}) ended group by 1, 2 order by 1, 2
      ${upsert})`;
}

export async function readHistory(
  database: Database,
  { webhookIds, from, to }: HistoryRequest,
): Promise<History> {
  const [webhook, condition] = webhookIds
    ? ['webhook_id', 'webhook_id = any($1)']
    : ["''", '$1::text[] is null'];
  const [hours, [clock]] = await Promise.all([
    database.ask<Hour>(
      `select id as "webhookId", at, delivered, failed, missed, discarded, attempts, duration_ms as "durationMs"
       from (select ${webhook} as id, at, ${sums} from delivery_hours
         where ${condition} and at between $2 and $3 group by 1, 2) h order by at`,
      [webhookIds ?? null, hourOf(from), to],
    ),
    database.ask<{ since: number }>('select counted_since as since from clock'),
  ]);
  return { hours, since: clock?.since ?? 0 };
}

const batch = 1_000;

const mergeStatement = `with merged as (
    delete from delivery_hours where ctid = any(array(
      select ctid from delivery_hours where lane >= 0 and at < $1 order by at limit ${batch} for update skip locked))
    returning *),
  added as (
    insert into delivery_hours as h (webhook_id, at, lane, ${columns})
    select webhook_id, at, ${lanes.merged}, ${sums} from merged group by 1, 2 order by 1, 2 ${upsert})
  select from merged`;

/** Merges the rows of hours that are over, and deletes those that are kept no longer. */
export async function mergeHistory(database: Database, at: number, stopping: AbortSignal): Promise<void> {
  // A statement of the last hour may still run.
  const over = hourOf(at) - hourMs;
  for (let merged = batch; merged === batch && !stopping.aborted;)
    merged = (await database.write(mergeStatement, [over])).length;
  await deleteInBatches(
    database,
    `delete from delivery_hours where ctid = any(array(
       select ctid from delivery_hours where at < $1 order by at limit $2 for update skip locked))`,
    [hourOf(at - historyMs)],
    stopping,
  );
}
