// Converts deliveries to rows of the table `deliveries` and back.
import { freeze } from '../../../store/changes.ts';
import { type WebhookEvent, bytesOfPayload } from '../../event.ts';
import { lastStatus } from '../delivery-filter.ts';
import { type Attempt, type Delivery, priorityOf, waitingSince } from '../delivery.ts';

export type DeliveryRow = {
  readonly id: string;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly event_at: number;
  readonly service: string | null;
  readonly data: string;
  readonly is_ping: boolean;
  readonly state: Delivery['state'];
  readonly created_at: number;
  readonly ended_at: number | null;
  readonly attempts: readonly Attempt[];
  readonly redelivery_of: string | null;
  readonly redelivered_as: string | null;
};

/** The columns of `DeliveryRow`, of the table `d`. */
export const deliveryColumns = `d.id, d.webhook_id, d.event_id, d.event_type, d.event_at, d.service, d.data, d.is_ping, d.state,
  d.created_at, d.ended_at, d.attempts, d.redelivery_of, d.redelivered_as`;

export function toDelivery(row: DeliveryRow): Delivery {
  return freeze({
    id: row.id,
    webhookId: row.webhook_id,
    event: {
      id: row.event_id,
      type: row.event_type,
      timestamp: row.event_at,
      service: row.service,
      data: row.data,
    },
    isPing: row.is_ping,
    state: row.state,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    attempts: row.attempts,
    redeliveryOf: row.redelivery_of,
    redeliveredAs: row.redelivered_as,
  });
}

/** The values of `insertDeliveries`. Each event is sent once, however many deliveries it has. */
export function insertValues(
  deliveries: readonly Delivery[],
  rememberedAs: ReadonlyMap<WebhookEvent, string> = new Map(),
): unknown[] {
  const events = [...new Set(deliveries.map(({ event }) => event))];
  const places = new Map(events.map((event, index) => [event, index]));
  return [
    events.map((_event, index) => index),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ timestamp }) => timestamp),
    events.map(({ service }) => service),
    events.map(({ data }) => data),
    events.map(bytesOfPayload),
    events.map((event) => rememberedAs.get(event) ?? null),
    deliveries.map(({ id }) => id),
    deliveries.map(({ webhookId }) => webhookId),
    deliveries.map(({ event }) => places.get(event)),
    deliveries.map(({ isPing }) => isPing),
    deliveries.map(({ createdAt }) => createdAt),
    deliveries.map(priorityOf),
    deliveries.map(waitingSince),
    deliveries.map(({ state }) => state === 'missed'),
    deliveries.map((delivery) => delivery.redeliveryOf),
  ];
}

export const insertParameters = 17;

/** Counts the pending rows of `added`, the result of `insertDeliveries`. */
export const countAdded = `select count(*) as count, coalesce(sum(bytes), 0) as bytes from added where state = 'pending'`;

/**
 * Inserts new deliveries, which are pending or missed and have no attempts. `condition` may refer to the event `e`
 * and the id `e.remembered_as`. Every event has deliveries and every delivery has an event, so the full join finds
 * the same pairs as an inner one. PostgreSQL uses a hash for it; for an inner join it would compare every event
 * with every delivery, because it expects few of both.
 */
export function insertDeliveries(condition = 'true'): string {
  return `insert into deliveries (id, webhook_id, event_id, event_type, event_at, service, data, bytes, is_ping, state, created_at,
      ended_at, attempts, priority, since, redelivery_of)
    select v.id, v.webhook_id, e.id, e.type, e.at, e.service, e.data, e.bytes, v.is_ping,
      case when v.missed then 'missed' else 'pending' end, v.created_at, case when v.missed then v.created_at end, '[]', v.priority,
      v.since, v.redelivery_of
    from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[])
        e(place, id, type, at, service, data, bytes, remembered_as)
      full join unnest($9::text[], $10::text[], $11::int[], $12::boolean[], $13::bigint[], $14::smallint[], $15::bigint[],
          $16::boolean[], $17::text[])
        with ordinality v(id, webhook_id, place, is_ping, created_at, priority, since, missed, redelivery_of, index)
        on v.place = e.place
    where ${condition} order by v.index returning bytes, state`;
}

export type Held = { readonly delivery: Delivery; readonly claim: number };

export function completeValues(completed: readonly Held[]): unknown[] {
  const deliveries = completed.map(({ delivery }) => delivery);
  return [
    deliveries.map(({ id }) => id),
    completed.map(({ claim }) => claim),
    deliveries.map(({ state }) => state),
    deliveries.map(({ endedAt }) => endedAt),
    deliveries.map(priorityOf),
    deliveries.map(waitingSince),
    deliveries.map((delivery) => toStatusColumn(lastStatus(delivery))),
    // One document: the quotation marks of each element of an array would have to be escaped.
    JSON.stringify(deliveries.map(({ attempts }) => attempts)),
  ];
}

/** Null is stored as 0. */
export function toStatusColumn(status: number | null): number {
  return status ?? 0;
}

export const completeParameters = 8;

/**
 * Replaces claimed deliveries with those of `completeValues`, and releases the claims. Leaves out deliveries whose
 * claim is lost.
 */
export function completeDeliveries(condition = 'true'): string {
  return `update deliveries d set state = v.state, ended_at = v.ended_at, attempts = v.attempts, priority = v.priority, since = v.since,
      status = v.status, claimed_by = null, claim = null
    from rows from (
        unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::smallint[], $6::bigint[], $7::smallint[]),
        json_array_elements($8::json))
      v(id, claim, state, ended_at, priority, since, status, attempts)
    where d.id = v.id and d.claim = v.claim and ${condition}
    returning d.id, d.state, d.bytes`;
}

export type PendingCounts = { readonly count: number; readonly bytes: number };

/** The counts of the deliveries that are pending. */
export function countsOf(deliveries: readonly Delivery[]): PendingCounts {
  const pending = deliveries.filter(({ state }) => state === 'pending');
  return {
    count: pending.length,
    bytes: pending.reduce((sum, { event }) => sum + bytesOfPayload(event), 0),
  };
}

/** Adds to the counts of pending deliveries. `from` is a query with the columns `count` and `bytes`. */
export function pendingCountStatement(
  process: string,
  statement: 'publish' | 'complete' | 'update' | 'redeliver',
  from: string,
): string {
  return `insert into pending_counts as p (process, statement, count, bytes)
    select ${process}, '${statement}', s.count, s.bytes from (${from}) s
    on conflict (process, statement) do update set count = p.count + excluded.count, bytes = p.bytes + excluded.bytes`;
}
