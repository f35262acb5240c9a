// Charts of the newest deliveries of a webhook, each with a text alternative: outcomes and latency over time with a
// table, and a small one for a list.
import { formatTime } from '../../console/time.ts';
import { type Row, renderTable } from '../../console/table.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Delivery, DeliveryState } from '../queue/delivery.ts';

/** How many deliveries the charts show. */
export const maxCharted = 100;

const minute = 60_000;
const hour = 60 * minute;
const steps = [minute, 5 * minute, 15 * minute, hour, 3 * hour, 6 * hour, 24 * hour, 7 * 24 * hour];
const fewestColumns = 24;
const maxColumns = 48;

/** The deliveries that were created within one step of time. */
type Column = {
  readonly from: number;
  readonly counts: Readonly<Partial<Record<DeliveryState, number>>>;
  /** How long the last attempts took, shortest first. */
  readonly durations: readonly number[];
};

function columnsOf(deliveries: readonly Delivery[], now: number): Column[] {
  const oldest = Math.min(now, ...deliveries.map(({ createdAt }) => createdAt));
  const step = steps.find((one) => (now - oldest) / one < maxColumns - 1) ?? now - oldest + 1;
  const last = Math.floor(now / step);
  const first = Math.min(Math.floor(oldest / step), last - fewestColumns + 1);
  const columns = new Map<number, Delivery[]>();
  for (let index = first; index <= last; index += 1) columns.set(index, []);
  // A clock that was set back leaves deliveries in the future.
  for (const delivery of deliveries)
    columns.get(Math.min(last, Math.floor(delivery.createdAt / step)))?.push(delivery);
  return Array.from(columns, ([index, within]) => ({
    from: index * step,
    counts: countStates(within),
    durations: within
      .flatMap(({ attempts }) => attempts.at(-1)?.durationMs ?? [])
      .sort((one, other) => one - other),
  }));
}

function countStates(deliveries: readonly Delivery[]): Partial<Record<DeliveryState, number>> {
  const counts: Partial<Record<DeliveryState, number>> = {};
  for (const { state } of deliveries) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

function median(sorted: readonly number[]): number {
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}

export function renderCharts(deliveries: readonly Delivery[], now: number): Html {
  const columns = columnsOf(deliveries, now);
  const from = formatTime(columns[0]?.from ?? now);
  const ends = html`<div class="ends"><span>${from}</span> <span>now</span></div>`;
  return html`<div class="charts">
      ${outcomeChart(columns, ends)} ${latencyChart(columns, ends)}
    </div>
    <details id="chart-table">
      <summary>The charts as a table</summary>
      ${renderTable('Deliveries over time', ['From', 'Delivered', 'Not delivered', 'Median latency', 'Longest'], tableRows(columns))}
    </details>`;
}

const width = 10;
const half = 50;

/** Below the middle. Deliveries that were not attempted have narrower bars, so that no colour is needed. */
const undelivered = ['failed', 'discarded', 'missed'] as const;

function sum(columns: readonly Column[], state: DeliveryState): number {
  return columns.reduce((total, { counts }) => total + (counts[state] ?? 0), 0);
}

function belowOf({ counts }: Column): number {
  return undelivered.reduce((total, state) => total + (counts[state] ?? 0), 0);
}

function describeOutcomes(columns: readonly Column[]): string {
  const named = (states: readonly DeliveryState[]) =>
    states
      .map((state) => ({ state, count: sum(columns, state) }))
      .filter(({ count }) => count > 0)
      .map(({ state, count }) => `${count} ${state}`)
      .join(', ');
  const above = `Up: ${sum(columns, 'delivered')} delivered.`;
  const below = named(undelivered);
  const pending = sum(columns, 'pending');
  return [above, below !== '' && `Down: ${below}.`, pending > 0 && `${pending} pending.`]
    .filter(Boolean)
    .join(' ');
}

function outcomeChart(columns: readonly Column[], ends: Html): Html {
  const most = Math.max(1, ...columns.map((one) => Math.max(one.counts.delivered ?? 0, belowOf(one))));
  const scale = (half - 1) / most;
  const description = describeOutcomes(columns);
  const bars = columns.map((column, index) => {
    const x = index * width + 1;
    const above = (column.counts.delivered ?? 0) * scale;
    let y = half;
    const below = undelivered.map((state) => {
      const height = (column.counts[state] ?? 0) * scale;
      const isWide = state === 'failed';
      y += height;
      return bar(state, x + (isWide ? 0 : 2), y - height, isWide ? width - 2 : width - 6, height);
    });
    return html`${bar('delivered', x, half - above, width - 2, above)}${below}`;
  });
  return chart(
    'Outcomes',
    description,
    columns.length,
    html`<rect class="axis" x="0" y="${half - 0.25}" width="${columns.length * width}" height="0.5" />${bars}`,
    ends,
  );
}

function bar(name: string, x: number, y: number, barWidth: number, height: number): Html | false {
  return (
    height > 0 &&
    html`<rect class="${name}" x="${x}" y="${round(y)}" width="${barWidth}" height="${round(height)}" />`
  );
}

function round(number: number): number {
  return Math.round(number * 100) / 100;
}

function latencyChart(columns: readonly Column[], ends: Html): Html {
  const all = columns.flatMap(({ durations }) => durations).sort((one, other) => one - other);
  const longest = all.at(-1) ?? 0;
  const description =
    all.length === 0
      ? 'No attempts yet.'
      : `Median ${formatDuration(median(all))}, longest ${formatDuration(longest)}.`;
  const scale = (2 * half - 1) / Math.max(1, longest);
  const bars = columns.map(({ durations }, index) => {
    if (durations.length === 0) return false;
    const x = index * width + 1;
    // A short latency still gets a visible bar.
    const [most, middle] = [durations.at(-1) ?? 0, median(durations)].map((ms) => Math.max(1, ms * scale));
    return html`${bar('longest', x + 2, 2 * half - (most ?? 0), width - 6, most ?? 0)}${bar('median', x, 2 * half - (middle ?? 0), width - 2, middle ?? 0)}`;
  });
  return chart('Latency', description, columns.length, html`${bars}`, ends);
}

function chart(title: string, description: string, columns: number, marks: Html, ends: Html): Html {
  return html`<figure class="chart">
    <figcaption><strong>${title}</strong> <span class="hint">${description}</span></figcaption>
    <svg role="img" aria-label="${title}: ${description}" viewBox="0 0 ${columns * width} ${2 * half}" preserveAspectRatio="none">${marks}</svg>
    ${ends}
  </figure>`;
}

function tableRows(columns: readonly Column[]): Row[] {
  return columns
    .filter(({ counts }) => Object.keys(counts).length > 0)
    .map((column) => [
      formatTime(column.from),
      String(column.counts.delivered ?? 0),
      String(belowOf(column)),
      column.durations.length === 0 ? '–' : formatDuration(median(column.durations)),
      column.durations.length === 0 ? '–' : formatDuration(column.durations.at(-1) ?? 0),
    ]);
}

/** How many deliveries the small chart shows. */
export const maxSparks = 20;

const sparkWidth = 7;
const sparkMiddle = 12;

type Mark = { x: number; y: number; width: number; height: number };

const marks: Readonly<Record<DeliveryState, Mark>> = {
  delivered: { x: 1, y: sparkMiddle - 11, width: 5, height: 11 },
  failed: { x: 1, y: sparkMiddle, width: 5, height: 11 },
  pending: { x: 2, y: sparkMiddle - 1.5, width: 3, height: 3 },
  discarded: { x: 3, y: sparkMiddle - 5, width: 1, height: 10 },
  missed: { x: 2, y: sparkMiddle + 5, width: 3, height: 3 },
};

/** Delivered ones point up and failed ones down, so that it can be read without colours. */
export function sparkline(newestFirst: readonly Pick<Delivery, 'state'>[]): Html {
  const charted = newestFirst.slice(0, maxSparks).reverse();
  const firstColumn = maxSparks - charted.length;
  const description = formatOutcomes(charted.map(({ state }) => state));
  const total = maxSparks * sparkWidth;
  const height = 2 * sparkMiddle;
  return html`<svg class="spark" role="img" aria-label="${description}" width="${total}" height="${height}" viewBox="0 0 ${total} ${height}">
    <title>${description}</title>
    <rect class="axis" x="0" y="${sparkMiddle - 0.25}" width="${total}" height="0.5" />
    ${charted.map(({ state }, index) => {
      const mark = marks[state];
      return bar(state, (firstColumn + index) * sparkWidth + mark.x, mark.y, mark.width, mark.height);
    })}
  </svg>`;
}

export function formatOutcomes(oldestFirst: readonly DeliveryState[]): string {
  if (oldestFirst.length === 0) return 'No deliveries yet';
  const runs: { state: DeliveryState; count: number }[] = [];
  for (const state of oldestFirst) {
    const last = runs.at(-1);
    if (last?.state === state) last.count += 1;
    else runs.push({ state, count: 1 });
  }
  const outcomes = runs.map(({ state, count }) => `${count} ${state}`).join(', ');
  const order = runs.length > 1 ? ', oldest first' : '';
  const number = oldestFirst.length === 1 ? 'delivery' : formatCount(oldestFirst.length, 'delivery');
  return `The last ${number}${order}: ${outcomes}`;
}
