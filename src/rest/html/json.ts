// The generic view of JSON: records as lists of terms, lists of records as tables, times as dates.
import { html, type Html } from './html.ts';
import type { Json } from '../../lib/json.ts';

const mostRows = 500;

export function renderJson(json: Json): Html {
  if (Array.isArray(json)) return listView(json as readonly Json[]);
  if (isRecord(json)) return recordView(json);
  return scalarView(json as string | number | boolean | null);
}

type JsonRecord = { readonly [key: string]: Json };

function isRecord(json: Json): json is JsonRecord {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

function recordView(record: JsonRecord): Html {
  const entries = Object.entries(record);
  if (entries.length === 0) return html`<span class="none">nothing</span>`;
  return html`<dl class="record">
    ${entries.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${renderJson(value)}</dd>
        </div> `,
    )}
  </dl>`;
}

function listView(list: readonly Json[]): Html {
  if (list.length === 0) return html`<span class="none">none</span>`;
  const shown = list.slice(0, mostRows);
  const rest = list.length > mostRows && html`<p>… and ${list.length - mostRows} more.</p>`;
  const records = shown.filter(isRecord);
  if (records.length < shown.length) {
    return html`<ul class="plain">
        ${shown.map((entry) => html`<li>${renderJson(entry)}</li> `)}
      </ul>
      ${rest}`;
  }
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return html`<div class="wide" tabindex="0" role="region" aria-label="Table">
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
                ${columns.map((column) => html`<td>${cellView(record[column] ?? null)}</td>`)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
    ${rest}`;
}

/** Long values are folded, so that the row stays short. */
function cellView(value: Json): Html {
  const size = Array.isArray(value) ? value.length : isRecord(value) ? Object.keys(value).length : 0;
  if (size < 3) return renderJson(value);
  return html`<details>
    <summary>${size} entries</summary>
    ${renderJson(value)}
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

export function renderTime(at: number): Html {
  const text = new Date(at).toISOString();
  return html`<time datetime="${text}" title="${at}">${text.slice(0, 19).replace('T', ' ')} UTC</time>`;
}
