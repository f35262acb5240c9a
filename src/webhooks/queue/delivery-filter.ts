// Which deliveries a request asks for.
import type { Delivery, DeliveryState } from './delivery.ts';

export type DeliveryFilter = {
  readonly webhookId?: string | undefined;
  readonly states?: readonly DeliveryState[] | undefined;
  readonly changeType?: string | undefined;
  readonly eventId?: string | undefined;
  /**
   * The HTTP status of the last attempt; 1 to 5: any status of this class, such as 5 for 500 to 599; null: there was
   * no attempt, or it got no answer.
   */
  readonly status?: number | null | undefined;
  /** The first and the last moment of `createdAt`. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
};

/** Pages count no further. */
export const maxCountedDeliveries = 10_000;

export type DeliveryPage = {
  readonly deliveries: readonly Delivery[];
  /** How many match, at most `maxCountedDeliveries`. */
  readonly total: number;
  /** Whether `total` is exact, because no more match. */
  readonly isTotalExact: boolean;
};

export function matchesDeliveryFilter(delivery: Delivery, filter: DeliveryFilter): boolean {
  const { webhookId, event, state, createdAt } = delivery;
  return (
    (filter.webhookId === undefined || filter.webhookId === webhookId) &&
    (filter.states === undefined || filter.states.includes(state)) &&
    (filter.changeType === undefined || filter.changeType === event.type) &&
    (filter.eventId === undefined || filter.eventId === event.id) &&
    (filter.status === undefined || isStatus(lastStatus(delivery), filter.status)) &&
    (filter.from === undefined || filter.from <= createdAt) &&
    (filter.to === undefined || createdAt <= filter.to)
  );
}

export function isStatusClass(status: number | null): status is number {
  return status !== null && status < 100;
}

function isStatus(status: number | null, asked: number | null): boolean {
  return isStatusClass(asked) ? Math.floor((status ?? 0) / 100) === asked : status === asked;
}

/** The HTTP status of the last attempt. */
export function lastStatus({ attempts }: Delivery): number | null {
  return attempts.at(-1)?.status ?? null;
}
