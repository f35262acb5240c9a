// The place of a pending delivery in the queue. The counts read the indexes of claims.
import type { Database } from '../../../store/postgres/database.ts';
import { maxCountedDeliveries } from '../delivery-filter.ts';
import type { QueueOfReceiver, QueuePosition } from '../delivery-queue.ts';
import { isFree } from './claims.ts';

const selectPosition = `select o.claimed_by is not null as is_claimed,
    (select count(*) from processes p join deliveries d on d.claimed_by = p.id
     where d.claimed_by is not null and d.webhook_id = any($2::text[])) as claimed,
    (select count(*) from (
      select from deliveries d where ${isFree} and o.claimed_by is null and d.webhook_id = o.webhook_id
      and (d.priority, d.since, d.placed) < (o.priority, o.since, o.placed)
      and (d.priority <> 1 or d.since <= $3::bigint) limit ${maxCountedDeliveries}) counted) as ahead
  from deliveries o where o.id = $1 and o.state = 'pending'`;

type Row = { readonly is_claimed: boolean; readonly claimed: number; readonly ahead: number };

export async function readQueuePosition(
  database: Database,
  id: string,
  { at, retryWaitMs, webhookIds }: QueueOfReceiver,
): Promise<QueuePosition | undefined> {
  const [row] = await database.ask<Row>(selectPosition, [id, webhookIds, at - retryWaitMs]);
  return row && { isClaimed: row.is_claimed, claimed: row.claimed, ahead: row.ahead };
}
