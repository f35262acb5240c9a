// The place of a pending delivery in the queue. The counts read the indexes of claims.
import type { Database } from '../../../store/postgres/database.ts';
import { maxCountedDeliveries } from '../delivery-filter.ts';
import type { QueueOfReceiver, QueuePosition } from '../delivery-queue.ts';

const selectPosition = `select o.claimed_by is not null as is_claimed,
    (select count(*) from processes p join queue q on q.claimed_by = p.id
     where q.claimed_by is not null and q.webhook_id = any($2::text[])) as claimed,
    (select count(*) from (
      select from queue q where q.claimed_by is null and o.claimed_by is null and q.webhook_id = o.webhook_id
      and (q.priority, q.since, q.number) < (o.priority, o.since, o.number)
      and (q.priority <> 1 or q.since <= $3::bigint) limit ${maxCountedDeliveries}) counted) as ahead
  from deliveries d join queue o on o.created_at = d.created_at and o.number = d.number where d.id = $1`;

type Row = { readonly is_claimed: boolean; readonly claimed: number; readonly ahead: number };

export async function readQueuePosition(
  database: Database,
  id: string,
  { at, retryWaitMs, webhookIds }: QueueOfReceiver,
): Promise<QueuePosition | undefined> {
  const [row] = await database.ask<Row>(selectPosition, [id, webhookIds, at - retryWaitMs]);
  return row && { isClaimed: row.is_claimed, claimed: row.claimed, ahead: row.ahead };
}
