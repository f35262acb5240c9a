// The generic view of JSON: records as lists of terms, lists of records as tables, times as dates.
import { formatAgo } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';
import type { Json } from '../lib/json.ts';

const maxRows = 500;
const maxColumns = 40;

/** A manifest of 10 MiB would become a page of 100 MiB. */
const maxValues = 20_000;

export function renderJson(json: Json): Html {
  const page = { left: maxValues };
  const view = valueView(json, page);
  return page.left > 0
    ? view
    : html`${view}
        <p>This page shows a part only; <code>f=json</code> returns everything.</p>`;
}

/** How many more values the page may show. */
type Page = { left: number };

function valueView(json: Json, page: Page): Html {
  page.left -= 1;
  if (page.left <= 0) return html`<span class="none">…</span>`;
  if (Array.isArray(json)) return listView(json as readonly Json[], page);
  if (isRecord(json)) return recordView(json, page);
  return scalarView(json as string | number | boolean | null);
}

type JsonRecord = { readonly [key: string]: Json };

function isRecord(json: Json): json is JsonRecord {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

function recordView(record: JsonRecord, page: Page): Html {
  const entries = Object.entries(record);
  if (entries.length === 0) return html`<span class="none">nothing</span>`;
  return html`<dl class="record">
      ${entries.slice(0, maxRows).map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${valueView(value, page)}</dd>
          </div> `,
      )}
    </dl>
    ${restView(entries.length)}`;
}

function restView(length: number): Html | false {
  return length > maxRows && html`<p>… and ${length - maxRows} more.</p>`;
}

function listView(list: readonly Json[], page: Page): Html {
  if (list.length === 0) return html`<span class="none">none</span>`;
  const shown = list.slice(0, maxRows);
  const records = shown.filter(isRecord);
  const columns = records.length < shown.length ? undefined : columnsOf(records);
  if (!columns) {
    return html`<ul class="plain">
        ${shown.map((entry) => html`<li>${valueView(entry, page)}</li> `)}
      </ul>
      ${restView(list.length)}`;
  }
  return html`<div class="wide" tabindex="0" role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            ${columns.map((column) => html`<th scope="col">${column}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${records.map(
            (record) =>
              html`<tr>
                ${columns.map((column) => html`<td>${cellView(record[column] ?? null, page)}</td>`)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${restView(list.length)}`;
}

/** Undefined if there are too many for a table. */
function columnsOf(records: readonly JsonRecord[]): string[] | undefined {
  const columns = new Set<string>();
  for (const record of records) {
    for (const name of Object.keys(record)) columns.add(name);
    if (columns.size > maxColumns) return undefined;
  }
  return [...columns];
}

/** Long values are folded, so that the row stays short. */
function cellView(value: Json, page: Page): Html {
  const size = Array.isArray(value) ? value.length : isRecord(value) ? Object.keys(value).length : 0;
  if (size < 3) return valueView(value, page);
  return html`<details>
    <summary>${size} entries</summary>
    ${valueView(value, page)}
  </details>`;
}

function scalarView(value: string | number | boolean | null): Html {
  if (value === null || value === '') return html`<span class="none">–</span>`;
  if (typeof value === 'number' && isTime(value)) return renderTime(value);
  return html`${String(value)}`;
}

/** Times in our JSON are milliseconds since the epoch; no other number in it is that large. */
function isTime(value: number): boolean {
  return value >= Date.UTC(2000, 0) && value < Date.UTC(2200, 0) && Number.isInteger(value);
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
