// Times for people. The script of the pages shows them in the zone of the reader.
import { formatAgo } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';

export function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** As the API writes it, and `renderSentence` finds it. */
const toIsoTime = (at: number): string => new Date(at).toISOString();

export function renderTime(at: number): Html {
  return html`<time datetime="${toIsoTime(at)}">${formatTime(at)}</time>`;
}

/** Without the day. */
export function renderClock(at: number): Html {
  return html`<time datetime="${toIsoTime(at)}" data-clock>${formatTime(at).slice(11, 19)}</time>`;
}

/** How long ago, or when, with the time as its title. */
export function renderAgo(at: number, now: number): Html {
  return html`<time datetime="${toIsoTime(at)}" title="${formatTime(at)}" data-ago
    >${formatAgo(at, now)}</time
  >`;
}

/** A sentence for people, whose times are those of the API, in ISO 8601, or of `formatTime`. */
export function renderSentence(text: string): Html {
  const parts = text.split(/\b(\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d\.\d{3}Z| \d\d:\d\d:\d\d UTC))\b/);
  // Text of a user may look like a time, such as the month 13.
  return html`${parts.map((part, index) => (index % 2 === 1 && !Number.isNaN(Date.parse(part)) ? renderTime(Date.parse(part)) : part))}`;
}
