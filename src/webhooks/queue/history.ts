// How deliveries to a webhook have ended over time: counts for each hour. Pings are not counted.
import { type Delivery, endOf } from './delivery.ts';

export type HourCounts = {
  readonly delivered: number;
  readonly failed: number;
  readonly missed: number;
  readonly discarded: number;
  /** How many attempts ended in this hour, and how long they took together. */
  readonly attempts: number;
  readonly durationMs: number;
};

/** `at` is the beginning of the hour. `webhookId` is empty for all webhooks together. */
export type Hour = HourCounts & { readonly at: number; readonly webhookId: string };

export type History = {
  /** Oldest first, without those in which nothing has ended. */
  readonly hours: readonly Hour[];
  /** Since when the store counts. */
  readonly since: number;
};

export type HistoryRequest = {
  /** Undefined: all webhooks together, deleted ones included. */
  readonly webhookIds?: readonly string[] | undefined;
  /** The first and the last moment. Their hours are part of the result. */
  readonly from: number;
  readonly to: number;
};

export const hourMs = 3_600_000;
export const historyMs = 35 * 24 * hourMs;

export const hourOf = (at: number): number => at - (at % hourMs);

export const noCounts: HourCounts = {
  delivered: 0,
  failed: 0,
  missed: 0,
  discarded: 0,
  attempts: 0,
  durationMs: 0,
};

export function addCounts(one: HourCounts, other: HourCounts): HourCounts {
  return {
    delivered: one.delivered + other.delivered,
    failed: one.failed + other.failed,
    missed: one.missed + other.missed,
    discarded: one.discarded + other.discarded,
    attempts: one.attempts + other.attempts,
    durationMs: one.durationMs + other.durationMs,
  };
}

/** What the change of a delivery adds to which hour. Undefined: nothing. */
export function countedOf(before: Delivery | undefined, after: Delivery): Hour | undefined {
  const { webhookId, state, isPing, endedAt, attempts } = after;
  const attempt = attempts.length > (before?.attempts.length ?? 0) ? attempts.at(-1) : undefined;
  const hasEnded = state !== 'pending' && (before === undefined || before.state === 'pending');
  if (isPing || (!hasEnded && !attempt)) return undefined;
  return {
    ...noCounts,
    webhookId,
    at: hourOf(endedAt ?? (attempt ? endOf(attempt) : 0)),
    ...(hasEnded && { [state]: 1 }),
    ...(attempt && { attempts: 1, durationMs: attempt.durationMs }),
  };
}

/** Every hour of the request that the store knows, of one webhook or of all together. */
export function everyHour({ hours, since }: History, { from, to }: HistoryRequest): readonly Hour[] {
  const known = new Map(hours.map((hour) => [hour.at, hour]));
  const first = hourOf(Math.max(from, since));
  const count = Math.max(0, Math.floor((to - first) / hourMs) + 1);
  return Array.from({ length: count }, (_, index) => {
    const at = first + index * hourMs;
    return known.get(at) ?? { ...noCounts, at, webhookId: '' };
  });
}
