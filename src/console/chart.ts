// Charts over time as inline SVG: a bar for each span, what went well below what did not. They need no script. A
// pointer follows a bar to what it counts, everybody else the table of the same numbers.
import { formatDuration, formatNumber } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';
import { renderTable } from './table.ts';
import { formatTime, renderAgo, renderTime } from './time.ts';

export type Bar = {
  readonly at: number;
  readonly good: number;
  readonly bad: number;
  /** The duration of an attempt, for a line over the bars. Null: there was none. Absent: there is no line. */
  readonly meanMs?: number | null;
};

type Band = { readonly from: number; readonly to: number };

type Chart = {
  /** Unique in the page. */
  readonly id: string;
  readonly title: string;
  readonly summary: Html;
  /** Oldest first, all of the same length. The spans between `from` and the first one were not counted. */
  readonly bars: readonly Bar[];
  readonly spanMs: number;
  readonly from: number;
  readonly to: number;
  readonly now: number;
  /** Marks behind the bars, such as jobs. */
  readonly bands?: readonly Band[];
  readonly hrefOf: (from: number, to: number) => string;
};

const height = 100;

export function renderChart(chart: Chart): Html {
  const { id, title, summary, bars, spanMs, from, to, now, hrefOf } = chart;
  const used = bars.filter(({ good, bad }) => good + bad > 0);
  const numbers = used.map(({ at, good, bad, meanMs }) => [
    html`<a href="${hrefOf(at, at + spanMs)}">${renderTime(at)}</a>`,
    formatNumber(good),
    formatNumber(bad),
    ...(meanMs === undefined ? [] : [meanMs === null ? '–' : formatDuration(meanMs)]),
  ]);
  const heads = ['From', 'Delivered', 'Not delivered', 'Mean duration'].slice(0, numbers[0]?.length);
  const ticks = [0, 1, 2, 3].map((part) => from + ((to - from) * part) / 4);
  return html`<figure class="chart" aria-labelledby="${id}">
    <figcaption><h2 id="${id}">${title}</h2> <span>${summary}</span></figcaption>
    ${barsOf(chart)}
    <div class="ends" aria-hidden="true">${ticks.map((at) => html`<span>${renderAgo(at, now)}</span> `)}<span>now</span></div>
    ${
      used.length > 0 &&
      html`<details>
        <summary>Numbers</summary>
        ${renderTable(title, heads, numbers)}
      </details>`
    }
  </figure>`;
}

function barsOf({ id, bars, spanMs, from, to, bands = [], hrefOf }: Chart): Html {
  const placeOf = (at: number) => Math.max(0, Math.round((100 * (at - from)) / spanMs) / 100);
  const width = placeOf(to);
  const unknown = placeOf(bars[0]?.at ?? to);
  const most = highestOf(bars);
  const slowest = Math.max(1, ...bars.map(({ meanMs }) => meanMs ?? 0));
  const points = bars
    .filter(({ meanMs = null }) => meanMs !== null)
    .map(({ at, meanMs }) => `${placeOf(at) + 0.5},${height - Math.round((90 * (meanMs ?? 0)) / slowest)}`);
  return html`<svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" aria-hidden="true">
    <pattern id="${id}-unknown" width="0.2" height="8" patternUnits="userSpaceOnUse"><path d="M0 8 0.2 0" /></pattern>
    ${unknown > 0 && html`<rect fill="url(#${id}-unknown)" class="unknown" width="${unknown}" height="${height}"><title>Not counted</title></rect>`}
    ${bands.map((band) => html`<rect class="band" x="${placeOf(band.from)}" width="${Math.max(0.1, placeOf(band.to) - placeOf(band.from))}" height="${height}" />`)}
    ${bars.map(({ at, good, bad }) => {
      if (good + bad === 0) return false;
      return html`<a href="${hrefOf(at, at + spanMs)}" tabindex="-1"
        ><title>${formatNumber(good)} delivered, ${formatNumber(bad)} not, from ${formatTime(at)}</title
        >${stackOf({ at, good, bad }, placeOf(at) + 0.1, most)}</a
      >`;
    })}
    ${points.length > 1 && html`<polyline points="${points.join(' ')}" />`}
  </svg>`;
}

/** The newest `places` bars alone, for a row of a list. */
export function renderSparkline(bars: readonly Bar[], places: number, label: string): Html {
  const most = highestOf(bars);
  return html`<svg class="sparkline" role="img" aria-label="${label}" viewBox="0 0 ${places} ${height}" preserveAspectRatio="none">
    ${bars.map((bar, index) => stackOf(bar, places - bars.length + index, most))}
  </svg>`;
}

function highestOf(bars: readonly Bar[]): number {
  return Math.max(1, ...bars.map(({ good, bad }) => good + bad));
}

function stackOf({ good, bad }: Bar, x: number, most: number): Html {
  const [low, high] = [(height * good) / most, (height * bad) / most];
  const part = (tone: string, y: number, size: number) =>
    size > 0 &&
    html`<rect class="${tone}" x="${x}" y="${y.toFixed(1)}" width="0.8" height="${size.toFixed(1)}" />`;
  return html`${part('good', height - low, low)}${part('bad', height - low - high, high)}`;
}
