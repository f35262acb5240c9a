// A small picture of what became of the newest deliveries: up is delivered, down is failed, so that it tells without colour too.
import { html, type Html } from '../../rest/html/html.ts';
import { formatCount } from '../../lib/format.ts';
import type { Delivery } from '../delivery.ts';

type State = Delivery['state'];

export const mostPictured = 20;

const step = 7;
const middle = 12;
const width = mostPictured * step;

/** Where in its column the mark of a state stands. */
const marks: Readonly<Record<State, { x: number; y: number; width: number; height: number }>> = {
  delivered: { x: 1, y: middle - 11, width: 5, height: 11 },
  failed: { x: 1, y: middle, width: 5, height: 11 },
  pending: { x: 2, y: middle - 1.5, width: 3, height: 3 },
  discarded: { x: 3, y: middle - 5, width: 1, height: 10 },
};

const shapes: Readonly<Record<State, string>> = {
  delivered: 'up',
  failed: 'down',
  pending: 'a dot',
  discarded: 'a line',
};

/** The rows come newest first and are drawn newest right. */
export function sparkline(newestFirst: readonly Delivery[], scale = 1): Html {
  const pictured = newestFirst.slice(0, mostPictured).reverse();
  const first = mostPictured - pictured.length;
  const words = formatOutcomes(pictured.map(({ state }) => state));
  return html`<svg
    class="spark"
    role="img"
    aria-label="${words}"
    width="${width * scale}"
    height="${2 * middle * scale}"
    viewBox="0 0 ${width} ${2 * middle}"
  >
    <title>${words}</title>
    <rect class="axis" x="0" y="${middle - 0.25}" width="${width}" height="0.5" />
    ${pictured.map(({ state }, index) => {
      const mark = marks[state];
      const x = (first + index) * step + mark.x;
      return html`<rect
        class="${state}"
        x="${x}"
        y="${mark.y}"
        width="${mark.width}"
        height="${mark.height}"
      /> `;
    })}
  </svg>`;
}

/** Runs of the same outcome are told together: nothing that the picture shows is lost. */
export function formatOutcomes(oldestFirst: readonly State[]): string {
  if (oldestFirst.length === 0) return 'No deliveries yet';
  const runs: { state: State; count: number }[] = [];
  for (const state of oldestFirst) {
    const last = runs.at(-1);
    if (last?.state === state) last.count += 1;
    else runs.push({ state, count: 1 });
  }
  const told = runs.map(({ state, count }) => `${count} ${state}`).join(', ');
  const order = runs.length > 1 ? ', oldest first' : '';
  const number = oldestFirst.length === 1 ? 'delivery' : formatCount(oldestFirst.length, 'delivery');
  return `The last ${number}${order}: ${told}`;
}

/** The picture with what its marks mean, and how often each is there. */
export function outcomesView(newestFirst: readonly Delivery[]): Html {
  const pictured = newestFirst.slice(0, mostPictured);
  const counts = (Object.keys(marks) as State[]).map((state) => ({
    state,
    count: pictured.filter((delivery) => delivery.state === state).length,
  }));
  const legend = counts
    .filter(({ count }) => count > 0)
    .map(({ state, count }) => `${count} ${state} (${shapes[state]})`);
  return html`<figure class="outcomes">
    ${sparkline(newestFirst, 3)}
    <figcaption class="hint">Newest right: ${legend.join(', ')}.</figcaption>
  </figure>`;
}
