// Times for people.
import { formatAgo } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';

export function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** With a script, the title of the element is the local time. */
export function renderTime(at: number): Html {
  return html`<time datetime="${new Date(at).toISOString()}">${formatTime(at)}</time>`;
}

/** How long ago, with the time as its title. */
export function renderAgo(at: number, now: number): Html {
  return html`<time datetime="${new Date(at).toISOString()}" title="${formatTime(at)}" data-ago
    >${formatAgo(now - at)}</time
  >`;
}
