// Converts deliveries to rows and back. `events` has what to send, `queue` the pending deliveries, `finished` the others.
import { timeOfId } from '../../../lib/runtime.ts';
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

const eventColumns = 'e.id as event_id, e.type as event_type, e.at as event_at, e.service, e.data';

/** The columns of `DeliveryRow` for a pending delivery, of `queue q` and `events e`. */
export const pendingColumns = `q.id, q.webhook_id, q.created_at, q.redelivery_of, q.priority = 0 as is_ping, 'pending' as state,
  null::bigint as ended_at, q.attempts, null as redelivered_as, ${eventColumns}`;

const finishedColumns = `f.id, f.webhook_id, f.created_at, f.redelivery_of, f.is_ping, f.state,
  f.ended_at, f.attempts, f.redelivered_as, ${eventColumns}`;

/** Selects the `DeliveryRow` of the delivery `t` that the condition describes. */
export function selectDelivery(condition: string): string {
  const where = (table: 'q' | 'f') => `where ${condition.replaceAll('t.', `${table}.`)} limit 1`;
  return `(select ${pendingColumns} from queue q join events e on e.number = q.event_number ${where('q')})
    union all (select ${finishedColumns} from finished f join events e on e.number = f.event_number ${where('f')})`;
}

/** SQL condition: the id of `t` is $1. The parameters are `idValues`. */
export const hasId = `t.id = $1 and t.created_at between $2::bigint and $3::bigint`;

/** Ids of another form than those of the runtime contain no time. */
export function idValues(id: string): [id: string, from: number, to: number] {
  const at = timeOfId(id);
  return at === undefined ? [id, 0, Number.MAX_SAFE_INTEGER] : [id, at, at];
}

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

/** The number of an event that is stored already, or the id by which it is remembered. */
export type EventNote = { readonly number?: number | undefined; readonly rememberedAs?: string | undefined };

/** The values of `insertDeliveries`. Each event is sent once, however many deliveries it has. */
export function insertValues(
  deliveries: readonly Delivery[],
  notes: ReadonlyMap<WebhookEvent, EventNote> = new Map(),
): unknown[] {
  const events = [...new Set(deliveries.map(({ event }) => event))];
  const places = new Map(events.map((event, index) => [event, index]));
  const numbers = events.map((event) => notes.get(event)?.number ?? null);
  return [
    events.map((_event, index) => index),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ timestamp }) => timestamp),
    events.map(({ service }) => service),
    events.map(({ data }, index) => (numbers[index] === null ? data : null)),
    events.map(bytesOfPayload),
    numbers,
    events.map((event) => notes.get(event)?.rememberedAs ?? null),
    deliveries.map(({ id }) => id),
    deliveries.map(({ webhookId }) => webhookId),
    deliveries.map(({ event }) => places.get(event)),
    deliveries.map(({ isPing }) => isPing),
    deliveries.map(({ createdAt }) => createdAt),
    deliveries.map(({ state }) => state === 'missed'),
    deliveries.map(({ redeliveryOf }) => redeliveryOf),
  ];
}

export const insertParameters = 16;

/**
 * The parts of a `with` that insert new deliveries, which are pending or missed and have no attempts, and their events.
 * `condition` may refer to the event `e`, its number `e.stored` and the id `e.remembered_as`. PostgreSQL uses a hash
 * for the full join; for an inner join it would compare every event with every delivery, because it expects few of
 * both. `coalesce` keeps it from finding out that an inner one has the same result.
 */
export function insertDeliveries(condition = 'true', lane: Lane = 'statement'): string {
  return `given as materialized (
      select e.*, coalesce(e.stored, nextval('delivery_numbers')) as number
      from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::int[], $8::bigint[], $9::text[])
        e(place, id, type, at, service, data, bytes, stored, remembered_as)
      where ${condition}),
    content as (
      insert into events (number, id, type, at, service, data)
      select number, id, type, at, service, data from given where stored is null),
    chosen as materialized (
      select s.*, nextval('delivery_numbers') as number from (
        select v.id, v.webhook_id, e.number as event_number, e.type, e.bytes, v.is_ping, v.created_at,
          v.created_at <> e.at as is_late, v.missed, v.redelivery_of
        from given e
          full join unnest($10::text[], $11::text[], $12::int[], $13::boolean[], $14::bigint[], $15::boolean[], $16::text[])
            with ordinality v(id, webhook_id, place, is_ping, created_at, missed, redelivery_of, index)
            on v.place = e.place
        where coalesce(e.place, -1) >= 0 order by v.index) s),
    ${insertChosen},
    ${countHours('counted', missedRows, lane)}`;
}

const missedRows = `select webhook_id, 'missed' as state, created_at as ended_at, null::bigint as duration_ms from chosen where missed`;

/** Inserts the rows of `chosen`. */
export const insertChosen = `pending as (
      insert into queue (created_at, number, event_number, since, bytes, priority, is_late, id, webhook_id, event_type, redelivery_of)
      select created_at, number, event_number, created_at, bytes, case when is_ping then 0 else 2 end, is_late, id, webhook_id, type,
        redelivery_of
      from chosen where not missed),
    missed as (
      insert into finished (created_at, number, event_number, ended_at, is_ping, is_late, id, webhook_id, event_type, state, redelivery_of)
      select created_at, number, event_number, created_at, is_ping, is_late, id, webhook_id, type, 'missed', redelivery_of
      from chosen where missed)`;

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

/** The columns that a delivery keeps when it moves from `queue` to `finished`. */
export function moved(table?: 'q'): string {
  const columns = 'created_at, number, event_number, is_late, id, webhook_id, event_type, redelivery_of';
  return table === undefined ? columns : columns.replaceAll(/\w+/g, `${table}.$&`);
}

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
      returning ${moved('q')}, v.state, v.ended_at, q.priority = 0 as is_ping, v.attempts, v.status),
    inserted as (
      insert into finished (${moved()}, state, ended_at, is_ping, attempts, status)
      select * from ended where state <> 'deleted'),
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
