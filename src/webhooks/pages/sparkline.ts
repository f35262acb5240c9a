// A small picture of the newest deliveries of a webhook, with a text alternative.
import { formatCount } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { Delivery, DeliveryState } from '../queue/delivery.ts';

/** How many deliveries the picture shows. */
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
  const fullHeight = 2 * sparkMiddle;
  return html`<svg class="spark" role="img" aria-label="${description}" width="${total}" height="${fullHeight}" viewBox="0 0 ${total} ${fullHeight}">
    <title>${description}</title>
    <rect class="axis" x="0" y="${sparkMiddle - 0.25}" width="${total}" height="0.5" />
    ${charted.map(({ state }, index) => {
      const { x, y, width, height } = marks[state];
      return html`<rect class="${state}" x="${(firstColumn + index) * sparkWidth + x}" y="${y}" width="${width}" height="${height}" />`;
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
