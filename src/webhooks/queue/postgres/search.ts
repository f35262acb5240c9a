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
import { selectDelivery, toStatusColumn } from './rows.ts';

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

  /** Selects the newest deliveries. */
  newest(range: Range): string {
    const isKey = 't.created_at = k.created_at and t.number = k.number';
    return `select d.* from (${this.keys('d.created_at, d.number', 'desc', range)}) k
      cross join lateral (${selectDelivery(isKey)}) d
      order by k.created_at desc, k.number desc`;
  }

  /** Selects columns of the newest or oldest deliveries `d`. */
  keys(columns: string, direction: 'asc' | 'desc', { start, num }: Range): string {
    const order = (table: string) =>
      `order by ${table}.created_at ${direction}, ${table}.number ${direction}`;
    const parts = this.#parts(columns, `${order('d')} limit ${start} + ${num}`);
    return `select * from (${parts}) k ${order('k')} offset ${start} limit ${num}`;
  }

  /** Counts the deliveries that match, but stops after `maxCounted`. */
  get countSome(): string {
    const most = `limit ${maxCountedDeliveries + 1}`;
    return `select count(*) from (select from (${this.#parts('d.number', most)}) d ${most}) counted`;
  }

  /** Counts the finished deliveries of each webhook that match. Adds values. */
  countByWebhook({ webhooks, most, withPending = false }: CountRequest): string {
    const limit = `limit ${this.#parameter(most)}::bigint`;
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
    const pending = `union all select from queue q
      where q.webhook_id = w.id and q.redelivery_of is not null and q.created_at > w.ended_after`;
    return `select w.id, c.count, n.is_emptied from unnest(${ids}::text[], ${ends}::bigint[]) w(id, ended_after) cross join lateral (
        select count(*) from (
          select from ${this.#sourceOf(false)} d where ${conditions.join(' and ')} ${withPending ? pending : ''} ${limit}) d) c
      cross join lateral (select ${isEmptied('w.id')} as is_emptied) n
      where c.count > 0 or n.is_emptied`;
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
    const of = (condition: string) =>
      `select t.*, t.ctid from ${table} t where t.event_number = e.number and ${condition}`;
    return `(select t.* from (select number, at from events where id = ${this.#eventId} offset 0) e
      cross join lateral (${of('t.created_at = e.at')} union all ${of('t.is_late')}) t)`;
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
          or d.redelivery_of is null)`,
      value: requestedAt,
    },
    ...(endedAfter === undefined ? [] : [{ text: 'd.ended_at > ?::bigint', value: endedAfter }]),
  ]);
}
