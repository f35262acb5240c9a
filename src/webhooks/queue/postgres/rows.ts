// Converts deliveries to rows and back. `deliveries` has what to send, `queue` the pending ones, `finished` the others.
import { freeze } from '../../../store/changes.ts';
import { type WebhookEvent, bytesOfPayload } from '../../event.ts';
import { lastStatus } from '../delivery-filter.ts';
import type { PendingCounts } from '../delivery-queue.ts';
import { type Attempt, type Delivery, priorityOf, waitingSince } from '../delivery.ts';
import { countedOf } from '../history.ts';
import { type Lane, countHours } from './history.ts';

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
  readonly attempts: readonly Attempt[] | null;
  readonly redelivery_of: string | null;
  readonly redelivered_as: string | null;
};

/** The columns of `DeliveryRow` that `deliveries d` has. */
const contentColumns = `d.id, d.webhook_id, d.event_id, d.event_type, d.event_at, d.service, d.data, d.is_ping, d.created_at,
  d.redelivery_of`;

/** The columns of `DeliveryRow` for a pending delivery, of `deliveries d` and `queue q`. */
export const pendingColumns = `${contentColumns}, 'pending' as state, null::bigint as ended_at, q.attempts, null as redelivered_as`;

/** The same for any delivery, of `deliveries d`, `queue q` and `finished f`. */
export const deliveryColumns = `${contentColumns}, coalesce(f.state, 'pending') as state, f.ended_at,
  coalesce(f.attempts, q.attempts) as attempts, f.redelivered_as`;

const noAttempts: readonly Attempt[] = Object.freeze([]);

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
    attempts: row.attempts ?? noAttempts,
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
    deliveries.map(({ state }) => state === 'missed'),
    deliveries.map(({ redeliveryOf }) => redeliveryOf),
  ];
}

export const insertParameters = 15;

/**
 * The parts of a `with` that insert new deliveries, which are pending or missed and have no attempts. `condition`
 * may refer to the event `e` and the id `e.remembered_as`. Every event has deliveries and every delivery has an
 * event, so the full join finds the same pairs as an inner one. PostgreSQL uses a hash for it; for an inner join it
 * would compare every event with every delivery, because it expects few of both.
 */
export function insertDeliveries(condition = 'true', lane: Lane = 'statement'): string {
  return `chosen as materialized (
      select s.*, nextval('delivery_numbers') as number from (
        select v.id, v.webhook_id, e.id as event_id, e.type, e.at, e.service, e.data, e.bytes, v.is_ping, v.created_at, v.missed,
          v.redelivery_of
        from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::text[])
            e(place, id, type, at, service, data, bytes, remembered_as)
          full join unnest($9::text[], $10::text[], $11::int[], $12::boolean[], $13::bigint[], $14::boolean[], $15::text[])
            with ordinality v(id, webhook_id, place, is_ping, created_at, missed, redelivery_of, index)
            on v.place = e.place
        where ${condition} order by v.index) s),
    ${insertChosen},
    ${countHours('counted', missedRows, lane)}`;
}

const missedRows = `select webhook_id, 'missed' as state, created_at as ended_at, null::bigint as duration_ms from chosen where missed`;

/** Inserts the rows of `chosen`. */
export const insertChosen = `content as (
      insert into deliveries (id, number, webhook_id, event_id, event_type, event_at, service, data, is_ping, created_at, redelivery_of)
      select id, number, webhook_id, event_id, type, at, service, data, is_ping, created_at, redelivery_of from chosen),
    pending as (
      insert into queue (created_at, number, id, webhook_id, event_type, bytes, priority, since)
      select created_at, number, id, webhook_id, type, bytes, case when is_ping then 0 else 2 end, created_at
      from chosen where not missed),
    missed as (
      insert into finished (number, created_at, id, webhook_id, event_type, state, is_ping, ended_at)
      select number, created_at, id, webhook_id, type, 'missed', is_ping, created_at from chosen where missed)`;

/** A claimed delivery and what becomes of it. `number` and `claim` are those of its row in `queue`. */
export type Held = {
  readonly claimed: Delivery;
  readonly delivery: Delivery | 'deleted';
  readonly number: number;
  readonly claim: number;
};

export function completeValues(completed: readonly Held[]): unknown[] {
  const deliveries = completed.map(({ claimed, delivery }) => (delivery === 'deleted' ? claimed : delivery));
  return [
    completed.map(({ claimed }) => claimed.createdAt),
    completed.map(({ number }) => number),
    completed.map(({ claim }) => claim),
    completed.map(({ claimed }) => waitingSince(claimed)),
    completed.map(({ delivery }) => (delivery === 'deleted' ? delivery : delivery.state)),
    deliveries.map(({ endedAt }) => endedAt),
    deliveries.map(priorityOf),
    deliveries.map(waitingSince),
    deliveries.map((delivery) => toStatusColumn(lastStatus(delivery))),
    // One document: the quotation marks of each element of an array would have to be escaped.
    JSON.stringify(deliveries.map(({ attempts }) => attempts)),
    deliveries.map(({ webhookId }) => webhookId),
    completed.map(({ claimed, delivery }) => attemptedMs(claimed, delivery)),
  ];
}

/** How long the attempt took that was made. Null: none was, or it was a ping, which is not counted. */
function attemptedMs(claimed: Delivery, delivery: Delivery | 'deleted'): number | null {
  if (delivery === 'deleted' || delivery.isPing) return null;
  return countedOf(claimed, delivery)?.attempts ? (delivery.attempts.at(-1)?.durationMs ?? null) : null;
}

export const completeParameters = 12;

/**
 * SQL condition: nobody has claimed the delivery `q` since the claim `v`. If a crash of the database has undone the
 * claim, or another process has released it, the row is as it was before: no attempt has changed `since`.
 */
const isHeld = `q.created_at = v.created_at and q.number = v.number
  and (q.claim = v.claim or (q.claim is null and q.since = v.claimed_since))`;

/** Null is stored as 0. */
export function toStatusColumn(status: number | null): number {
  return status ?? 0;
}

/**
 * The parts of a `with` that replace claimed deliveries with those of `completeValues`, and release the claims.
 * `done` has the numbers of these deliveries, without those whose claim is lost.
 */
export function completeDeliveries(condition = 'true', lane: Lane = 'statement'): string {
  return `given as materialized (
      select * from rows from (
        unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::smallint[], $8::bigint[], $9::smallint[], $11::text[], $12::bigint[]),
        json_array_elements($10::json))
      v(created_at, number, claim, claimed_since, state, ended_at, priority, since, status, webhook_id, duration_ms, attempts)
      where ${condition}),
    retried as (
      update queue q set priority = v.priority, since = v.since, status = v.status, attempts = v.attempts, claimed_by = null, claim = null
      from given v where v.state = 'pending' and ${isHeld} returning q.number),
    ended as (
      delete from queue q using given v where v.state <> 'pending' and ${isHeld}
      returning q.number, q.created_at, q.id, q.webhook_id, q.event_type, v.state, q.priority = 0 as is_ping, v.ended_at, v.attempts, v.status),
    inserted as (
      insert into finished (number, created_at, id, webhook_id, event_type, state, is_ping, ended_at, attempts, status)
      select * from ended where state <> 'deleted'),
    content as (delete from deliveries d using ended e where d.id = e.id and e.state = 'deleted'),
    done as (select number from retried union all select number from ended),
    ${countHours(
      'counted',
      `select v.webhook_id, v.state, coalesce(v.ended_at, v.since) as ended_at, v.duration_ms
       from done d join given v on v.number = d.number where v.priority <> 0 and v.state <> 'deleted'`,
      lane,
    )}`;
}

/** The counts of the deliveries that are pending. */
export function countsOf(deliveries: readonly Delivery[]): PendingCounts {
  const pending = deliveries.filter(({ state }) => state === 'pending');
  return {
    count: pending.length,
    bytes: pending.reduce((sum, { event }) => sum + bytesOfPayload(event), 0),
    oldestAt: pending.reduce((oldest, { createdAt }) => Math.min(oldest, createdAt), Infinity),
  };
}

/** The parameters of a statement after the first `count`, by name. */
export function parametersAfter<N extends string>(count: number, ...names: readonly N[]): Record<N, string> {
  const named = names.map((name, index) => [name, `$${count + index + 1}`] as const);
  return Object.fromEntries(named) as Record<N, string>;
}
