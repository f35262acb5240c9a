// How deliveries have ended over time, as bars of a chart.
import { type Bar, renderChart, renderSparkline } from '../../console/chart.ts';
import { groupBy } from '../../lib/collections.ts';
import { formatDuration, formatNumber } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import {
  type History,
  type HistoryRequest,
  addCounts,
  everyHour,
  hourMs,
  hourOf,
  noCounts,
} from '../queue/history.ts';
import type { Webhook } from '../webhook.ts';
import { webhookHref } from './parts.ts';

/** One bar for so many hours. */
export function barsOf(history: History, request: HistoryRequest, hours: number): Bar[] {
  const all = everyHour(history, request);
  // The first bar may have fewer hours, so that the last one ends with the present hour.
  const first = all.length % hours || hours;
  const bars: Bar[] = [];
  for (let begin = 0, end = first; begin < all.length; begin = end, end += hours) {
    const part = all.slice(begin, end);
    const { delivered, failed, missed, discarded, attempts, durationMs } = part.reduce(addCounts, noCounts);
    bars.push({
      at: (part.at(-1)?.at ?? 0) - (hours - 1) * hourMs,
      good: delivered,
      bad: failed + missed + discarded,
      meanMs: attempts === 0 ? null : Math.round(durationMs / attempts),
    });
  }
  return bars;
}

/** `411 delivered, 97 not.` */
export function sumOf(bars: readonly Bar[]): Html {
  const [good, bad] = countsOf(bars);
  return html`${formatNumber(good)} delivered, <strong class="${bad > 0 && 'bad'}">${formatNumber(bad)} not</strong>.`;
}

function countsOf(bars: readonly Bar[]): [number, number] {
  return [bars.reduce((sum, { good }) => sum + good, 0), bars.reduce((sum, { bad }) => sum + bad, 0)];
}

/** The deliveries of a list that were created in a span. */
export function deliveriesHref(list: string) {
  return (from: number, to: number) =>
    `${list}?${new URLSearchParams({ from: String(from), to: String(to - 1) }).toString()}`;
}

const listedHours = 24;

/** The last day of each webhook of a list. */
export async function readSparklines(
  store: ReadableStore,
  listed: readonly Webhook[],
  now: number,
): Promise<(webhook: Webhook) => Html> {
  const request = { webhookIds: listed.map(({ id }) => id), from: now - (listedHours - 1) * hourMs, to: now };
  const { hours, since } = await store.deliveries.history(request);
  const ofWebhook = groupBy(hours, ({ webhookId }) => webhookId);
  return ({ id }) => {
    const bars = barsOf({ hours: ofWebhook.get(id) ?? [], since }, request, 1);
    const [good, bad] = countsOf(bars);
    return renderSparkline(bars, listedHours, `${formatNumber(good)} delivered, ${formatNumber(bad)} not`);
  };
}

const shownDays = 7;
const hoursOfBar = 6;

/** The last seven days of a webhook, with the mean duration of an attempt as a line. */
export async function renderHistory(
  page: PageContext<unknown>,
  store: ReadableStore,
  webhook: Webhook,
): Promise<Html> {
  const { now } = page;
  const to = hourOf(now) + hourMs;
  const from = to - shownDays * 24 * hourMs;
  const history = await store.deliveries.history({ webhookIds: [webhook.id], from, to: now });
  const since = Math.max(history.since, webhook.createdAt);
  const bars = barsOf({ ...history, since }, { from, to: now }, hoursOfBar);
  const slowest = Math.max(0, ...bars.map(({ meanMs }) => meanMs ?? 0));
  return renderChart({
    id: 'history',
    title: 'Last seven days',
    summary: html`${sumOf(bars)} <span class="hint">Line: mean duration of an attempt, up to ${formatDuration(slowest)}.</span>`,
    bars,
    spanMs: hoursOfBar * hourMs,
    from,
    to,
    now,
    hrefOf: deliveriesHref(webhookHref(page, webhook.id, 'deliveries')),
  });
}
