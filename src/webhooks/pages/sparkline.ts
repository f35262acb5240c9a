// A small chart of the newest deliveries: delivered ones point up and failed ones down, so that it can be read
// without colours.
import { formatCount } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Delivery } from '../queue/delivery.ts';

type State = Delivery['state'];

export const maxCharted = 20;

const columnWidth = 7;
const middle = 12;
const width = maxCharted * columnWidth;

type Mark = { x: number; y: number; width: number; height: number };

const marks: Readonly<Record<State, Mark>> = {
  delivered: { x: 1, y: middle - 11, width: 5, height: 11 },
  failed: { x: 1, y: middle, width: 5, height: 11 },
  pending: { x: 2, y: middle - 1.5, width: 3, height: 3 },
  discarded: { x: 3, y: middle - 5, width: 1, height: 10 },
  missed: { x: 2, y: middle + 5, width: 3, height: 3 },
};

export function sparkline(newestFirst: readonly Pick<Delivery, 'state'>[]): Html {
  const charted = newestFirst.slice(0, maxCharted).reverse();
  const firstColumn = maxCharted - charted.length;
  const description = formatOutcomes(charted.map(({ state }) => state));
  return html`<svg
    class="spark"
    role="img"
    aria-label="${description}"
    width="${width}"
    height="${2 * middle}"
    viewBox="0 0 ${width} ${2 * middle}"
  >
    <title>${description}</title>
    <rect class="axis" x="0" y="${middle - 0.25}" width="${width}" height="0.5" />
    ${charted.map(({ state }, index) => {
      const mark = marks[state];
      const x = (firstColumn + index) * columnWidth + mark.x;
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

export function formatOutcomes(oldestFirst: readonly State[]): string {
  if (oldestFirst.length === 0) return 'No deliveries yet';
  const runs: { state: State; count: number }[] = [];
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
