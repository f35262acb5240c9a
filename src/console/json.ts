// JSON as text, and times for people.
import { formatAgo } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';
import type { Json } from '../lib/json.ts';
import { truncate } from '../lib/text.ts';

/** A plan may have megabytes. */
const maxJsonLength = 100_000;

export function renderJson(json: Json): Html {
  const text = JSON.stringify(json, null, 2);
  return html`<pre tabindex="0">${truncate(text, maxJsonLength)}</pre>
    ${text.length > maxJsonLength && html`<p>This page shows a part only; <code>f=json</code> returns everything.</p>`}`;
}

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
