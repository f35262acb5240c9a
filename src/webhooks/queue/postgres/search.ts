// Finds deliveries by filter.
//
// A search reads the newest or oldest deliveries of each state, in the order of the index that fits the filter, and
// merges them. It finds the keys first, and then reads the rows of one page: an index may contain all that the
// filter needs. The text alone must lead to the right index: the state is a constant, because most indexes have no
// pending deliveries. The finished deliveries of an event are few, and are read before the other conditions are
// checked.
import type { QueryOptions } from '../../../store/postgres/database.ts';
import { type DeliveryFilter, maxCountedDeliveries } from '../delivery-filter.ts';
import { type DeliveryState, deliveryStates } from '../delivery.ts';
import { toStatusColumn } from './rows.ts';

/** The value replaces every `?` in the text. */
type Condition = { readonly text: string; readonly value: unknown };

/** There are thousands of combinations of filters. */
export const ofManyShapes: QueryOptions = { isPrepared: false };

export class DeliverySearch {
  readonly #states: readonly DeliveryState[];
  readonly #ofEvent: string | undefined;
  readonly #conditions: readonly string[];
  readonly #values: unknown[] = [];

  constructor(
    { states = deliveryStates, eventId, ...filter }: DeliveryFilter,
    more: readonly Condition[] = [],
  ) {
    this.#states = deliveryStates.filter((state) => states.includes(state));
    this.#ofEvent = eventId === undefined ? undefined : `event_id = ${this.#parameter(eventId)}`;
    this.#conditions = [...conditionsOf(filter), ...more].map(({ text, value }) =>
      text.replaceAll('?', this.#parameter(value)),
    );
  }

  get values(): readonly unknown[] {
    return this.#values;
  }

  /** Selects the newest, or oldest, deliveries. `columns` are those of the table `d`. */
  select(
    columns: string,
    order: 'newest' | 'oldest',
    { start, num }: { start: string; num: string },
  ): string {
    const direction = order === 'newest' ? 'desc' : 'asc';
    const orderBy = (table: string) =>
      `order by ${table}.created_at ${direction}, ${table}.placed ${direction}`;
    const parts = this.#parts('d.state, d.created_at, d.placed', `${orderBy('d')} limit ${start} + ${num}`);
    return `select ${columns}
      from (select * from (${parts}) k ${orderBy('k')} offset ${start} limit ${num}) k
      cross join lateral (
        select *, ctid from deliveries r
        where r.state = k.state and r.created_at = k.created_at and r.placed = k.placed offset 0) d
      ${orderBy('k')}`;
  }

  /** Counts the deliveries that match, but stops after `maxCounted`. */
  get countSome(): string {
    const most = `limit ${maxCountedDeliveries + 1}`;
    return `select count(*) from (select from (${this.#parts('', most)}) d ${most}) counted`;
  }

  get countByWebhook(): string {
    return `select d.webhook_id, count(*) from (${this.#parts('d.webhook_id', '')}) d group by d.webhook_id`;
  }

  #parts(columns: string, end: string): string {
    return this.#states
      .map((state) => {
        const conditions = [`d.state = '${state}'`, ...this.#conditions].join(' and ');
        return `(select ${columns} from ${this.#sourceOf(state)} d where ${conditions} ${end})`;
      })
      .join(' union all ');
  }

  #sourceOf(state: DeliveryState): string {
    if (this.#ofEvent === undefined) return 'deliveries';
    const isPending = state === 'pending' ? `state = 'pending'` : `state <> 'pending'`;
    return `(select * from deliveries where ${this.#ofEvent} and ${isPending} offset 0)`;
  }

  #parameter(value: unknown): string {
    return `$${this.#values.push(value)}`;
  }
}

function conditionsOf({ webhookId, changeType, status, from, to }: DeliveryFilter): Condition[] {
  const all: readonly Condition[] = [
    { text: 'd.webhook_id = ?', value: webhookId },
    { text: 'd.event_type = ?', value: changeType },
    { text: 'd.status = ?::smallint', value: status === undefined ? undefined : toStatusColumn(status) },
    { text: 'd.created_at >= ?::bigint', value: from },
    { text: 'd.created_at <= ?::bigint', value: to },
  ];
  return all.filter(({ value }) => value !== undefined);
}

/** The conditions of `matchesRedelivery`. */
export function searchRedelivery(filter: DeliveryFilter, requestedAt: number): DeliverySearch {
  return new DeliverySearch(filter, [
    {
      text: `not d.is_ping and d.redelivered_as is null and d.ended_at <= ?::bigint and d.created_at <= ?::bigint
        and (d.redelivery_of is null or d.created_at < ?::bigint)`,
      value: requestedAt,
    },
  ]);
}
