// Finds deliveries by filter.
//
// A search reads the newest or oldest deliveries of each state, in the order of the index that fits the filter, and
// merges them. It finds the keys first, and then reads the rows of one page: an index may contain every
// column that the filter needs. The deliveries of an event are few, and are read before the other conditions are checked.
import type { QueryOptions } from '../../../store/postgres/database.ts';
import { type DeliveryFilter, isStatusClass, maxCountedDeliveries } from '../delivery-filter.ts';
import type { CountRequest } from '../delivery-queue.ts';
import { type DeliveryState, deliveryStates } from '../delivery.ts';
import type { Redelivery } from '../redelivery.ts';
import { toStatusColumn } from './rows.ts';

/** The value replaces every `?` in the text. */
type Condition = { readonly text: string; readonly value: unknown };

type Range = { readonly start: string; readonly num: string };

/** SQL condition: deliveries of the webhook are still being discarded. By their time, they have ended already. */
export const isEmptied = (webhookId: string) =>
  `exists (select from emptied e where e.webhook_id = ${webhookId} and e.discarded_at is not null)`;

/** There are thousands of combinations of filters. */
export const ofManyShapes: QueryOptions = { isPrepared: false };

export class DeliverySearch {
  readonly #states: readonly DeliveryState[];
  readonly #eventId: string | undefined;
  readonly #conditions: readonly string[];
  readonly #values: unknown[] = [];

  constructor(
    { states = deliveryStates, eventId, ...filter }: DeliveryFilter,
    more: readonly Condition[] = [],
  ) {
    this.#states = deliveryStates.filter((state) => states.includes(state));
    this.#eventId = eventId === undefined ? undefined : this.#parameter(eventId);
    this.#conditions = [...conditionsOf(filter), ...more].map(({ text, value }) =>
      text.replaceAll('?', this.#parameter(value)),
    );
  }

  get values(): readonly unknown[] {
    return this.#values;
  }

  /** Selects the newest, or oldest, deliveries. The columns are those of `deliveries d`, `queue q` and `finished f`. */
  select(columns: string, order: 'newest' | 'oldest', range: Range): string {
    const direction = order === 'newest' ? 'desc' : 'asc';
    return `select ${columns} from (${this.#keys(direction, range)}) k
      left join lateral (select * from finished f where f.number = k.number and k.state <> 'pending' offset 0) f on true
      left join lateral (
        select * from queue q where q.created_at = k.created_at and q.number = k.number and k.state = 'pending' offset 0) q on true
      cross join lateral (select * from deliveries d where d.id = coalesce(f.id, q.id) offset 0) d
      order by k.created_at ${direction}, k.number ${direction}`;
  }

  /** Counts the deliveries that match, but stops after `maxCounted`. */
  get countSome(): string {
    const most = `limit ${maxCountedDeliveries + 1}`;
    return `select count(*) from (select from (${this.#parts('d.number', most)}) d ${most}) counted`;
  }

  /** Counts the finished deliveries of each webhook that match. Adds values. */
  countByWebhook({ webhooks, most }: CountRequest): string {
    const ids = this.#parameter(webhooks.map(({ id }) => id));
    const ends = this.#parameter(webhooks.map(({ endedAfter = -1 }) => endedAfter));
    // PostgreSQL expects few matches of a condition that it cannot estimate, and would choose another index.
    const isBounded = webhooks.some(({ endedAfter }) => endedAfter !== undefined);
    const conditions = [
      'd.webhook_id = w.id',
      `d.state = any('{${this.#states.join()}}'::text[])`,
      ...(isBounded ? ['d.ended_at > w.ended_after'] : []),
      ...this.#conditions,
    ];
    return `select w.id, c.count, n.is_emptied from unnest(${ids}::text[], ${ends}::bigint[]) w(id, ended_after) cross join lateral (
        select count(*) from (
          select from ${this.#sourceOf(false)} d where ${conditions.join(' and ')} limit ${this.#parameter(most)}::bigint) d) c
      cross join lateral (select ${isEmptied('w.id')} as is_emptied) n
      where c.count > 0 or n.is_emptied`;
  }

  #keys(direction: 'asc' | 'desc', { start, num }: Range): string {
    const orderBy = `order by created_at ${direction}, number ${direction}`;
    const parts = this.#parts('d.created_at, d.number', `${orderBy} limit ${start} + ${num}`);
    return `select * from (${parts}) k ${orderBy} offset ${start} limit ${num}`;
  }

  #parts(columns: string, end: string): string {
    return this.#states
      .map((state) => {
        const isPending = state === 'pending';
        const conditions = [...(isPending ? [] : [`d.state = '${state}'`]), ...this.#conditions];
        const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : '';
        return `(select '${state}' as state, ${columns} from ${this.#sourceOf(isPending)} d ${where} ${end})`;
      })
      .join(' union all ');
  }

  #sourceOf(isPending: boolean): string {
    const table = isPending ? 'queue' : 'finished';
    if (this.#eventId === undefined) return table;
    const isSame = isPending ? 't.created_at = e.created_at and t.number = e.number' : 't.number = e.number';
    return `(select t.* from (select created_at, number from deliveries where event_id = ${this.#eventId} offset 0) e
      cross join lateral (select * from ${table} t where ${isSame} offset 0) t)`;
  }

  #parameter(value: unknown): string {
    return `$${this.#values.push(value)}`;
  }
}

function conditionsOf({ webhookId, changeType, status, from, to }: DeliveryFilter): Condition[] {
  const all: readonly Condition[] = [
    { text: 'd.webhook_id = ?', value: webhookId },
    { text: 'd.event_type = ?', value: changeType },
    statusCondition(status),
    { text: 'd.created_at >= ?::bigint', value: from },
    { text: 'd.created_at <= ?::bigint', value: to },
  ];
  return all.filter(({ value }) => value !== undefined);
}

function statusCondition(status: DeliveryFilter['status']): Condition {
  if (status === undefined) return { text: '', value: undefined };
  return isStatusClass(status)
    ? { text: 'd.status between ?::smallint * 100 and ?::smallint * 100 + 99', value: status }
    : { text: 'd.status = ?::smallint', value: toStatusColumn(status) };
}

/** The conditions of `matchesRedelivery`. */
export function searchRedelivery({
  filter: { states = deliveryStates, ...filter },
  requestedAt,
  endedAfter,
}: Omit<Redelivery, 'id' | 'webhookId'>): DeliverySearch {
  return new DeliverySearch({ ...filter, states: states.filter((state) => state !== 'pending') }, [
    {
      text: `not d.is_ping and d.redelivered_as is null and d.ended_at <= ?::bigint and d.created_at <= ?::bigint
        and (d.created_at < ?::bigint
          or not exists (select from deliveries c where c.id = d.id and c.redelivery_of is not null))`,
      value: requestedAt,
    },
    ...(endedAfter === undefined ? [] : [{ text: 'd.ended_at > ?::bigint', value: endedAfter }]),
  ]);
}
