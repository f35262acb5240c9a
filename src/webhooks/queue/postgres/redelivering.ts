// Repeats deliveries that match a redelivery, in batches. A batch is one statement that commits by itself, as in
// publishing.ts: it links the matching deliveries to new ones and inserts these. Two processes that run it at the
// same moment get different deliveries.
import type { Database } from '../../../store/postgres/database.ts';
import { webhooks } from '../../webhook.ts';
import type { Redelivered, RedeliveryBatch } from '../delivery-queue.ts';
import { redeliveries, type Redelivery } from '../redelivery.ts';
import { type PublishingOptions, arePublicationsOutdated, onNewestState } from './publishing.ts';
import { insertChosen, parametersAfter } from './rows.ts';
import { type DeliverySearch, isEmptied, ofManyShapes, searchRedelivery } from './search.ts';

export async function redeliver(
  options: PublishingOptions,
  redelivery: Redelivery,
  batch: RedeliveryBatch,
): Promise<Redelivered> {
  const { pending, trimmer } = options;
  const created = await pending.during(() =>
    onNewestState(options, (seen) => createAt(options, redelivery, batch, seen)),
  );
  if (created === 'ended') return { created: 0, isDone: true };
  trimmer.noteRedelivered(redelivery.webhookId, created);
  return { created, isDone: created < batch.most && (await isDone(options.database, redelivery)) };
}

/**
 * Returns how many redeliveries it has created, or that the redelivery has ended or its webhook is inactive; undefined,
 * and creates none, if a webhook has changed since the version `seen`.
 */
async function createAt(
  { reader, database, replica, claims, pending }: PublishingOptions,
  redelivery: Redelivery,
  { most, at, newId }: RedeliveryBatch,
  seen: number,
): Promise<number | 'ended' | undefined> {
  const { id, webhookId } = redelivery;
  if (!reader.get(redeliveries, id) || !reader.get(webhooks, webhookId)?.active) return 'ended';
  const search = searchOf(redelivery);
  const [row] = await database.write<{ is_outdated: boolean; count: number; bytes: number }>(
    createStatement(search),
    [
      ...search.values,
      Array.from({ length: most }, () => newId(at)),
      at,
      seen,
      replica.server,
      database.knownSchema,
    ],
    ofManyShapes,
  );
  if (!row || row.is_outdated) return undefined;
  pending.add({ count: row.count, bytes: row.bytes, oldestAt: at });
  claims.noteAdded(webhookId, at);
  return row.count;
}

/** Without locks: a delivery that another process is repeating still matches, because that process may be killed. */
async function isDone(database: Database, redelivery: Redelivery): Promise<boolean> {
  const [emptied] = await database.ask(`select where ${isEmptied('$1')}`, [redelivery.webhookId]);
  if (emptied) return false;
  const search = searchOf(redelivery);
  const [left] = await database.ask(
    search.keys('d.created_at, d.number', 'asc', { start: '0', num: '1' }),
    search.values,
    ofManyShapes,
  );
  return left === undefined;
}

function searchOf({ webhookId, filter, ...request }: Redelivery): DeliverySearch {
  return searchRedelivery({ filter: { ...filter, webhookId }, ...request });
}

/** The first parameters are those of the search. */
function createStatement(search: DeliverySearch): string {
  const p = parametersAfter(search.values.length, 'ids', 'at', 'seen', 'server', 'known');
  const range = { start: '0', num: `cardinality(${p.ids}::text[])` };
  return `with current as (select ${arePublicationsOutdated(p)} as is_outdated),
    locked as materialized (
      select f.* from finished f
      where f.ctid = any(array(select s.ctid from (${search.keys('d.created_at, d.number, d.ctid', 'asc', range)}) s))
        and f.redelivered_as is null and not (select is_outdated from current)
      order by f.created_at, f.number for update of f skip locked),
    numbered as materialized (select l.*, (${p.ids}::text[])[row_number() over ()] as new_id from locked l),
    marked as (
      update finished f set redelivered_as = n.new_id from numbered n where f.created_at = n.created_at and f.number = n.number),
    chosen as materialized (
      select n.new_id as id, nextval('delivery_numbers') as number, n.webhook_id, n.event_number, n.event_type as type,
        octet_length(e.data) as bytes, false as is_ping, ${p.at}::bigint as created_at, ${p.at}::bigint <> e.at as is_late,
        false as missed, n.id as redelivery_of
      from numbered n cross join lateral (select * from events e where e.number = n.event_number offset 0) e),
    ${insertChosen}
    select is_outdated, (select count(*) from chosen) as count, (select coalesce(sum(bytes), 0)::bigint from chosen) as bytes
    from current`;
}
