// Tables, pagers and lists of facts for pages. The first cell of a row is its heading; on a narrow page each row
// becomes a block.
import { formatNumber } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';

export type Row = readonly (Html | string)[];

// Without the roles, a screen reader would not see a table in rows that are laid out as blocks.
/** `ids` are those of the rows: with them, an update of a live table moves rows instead of rewriting them. */
export function renderTable(
  label: string,
  columns: readonly string[],
  rows: readonly Row[],
  ids: readonly string[] = [],
): Html {
  return html`<div class="wide" tabindex="0" role="group" aria-label="${label}">
    <table class="stacked" role="table" aria-label="${label}">
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map((column) => html`<th role="columnheader" scope="col">${column}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (cells, row) =>
            html`<tr role="row"${ids[row] !== undefined && html` id="${ids[row]}"`}>
              ${cells.map((cell, index) => cellView(cell, columns[index] ?? '', index === 0))}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

function cellView(cell: Html | string, column: string, isFirst: boolean): Html {
  return isFirst
    ? html`<th role="rowheader" scope="row">${cell}</th>`
    : html`<td role="cell" data-label="${column}"><div>${cell}</div></td>`;
}

type PageRange = { readonly start: number; readonly num: number };

export function pageRange(
  query: URLSearchParams,
  { usual = 100, most = 100, name = 'start' } = {},
): PageRange {
  const numberIn = (key: string) => Number(/^\s*(\d{1,9})\s*$/.exec(query.get(key) ?? '')?.[1] ?? 0);
  return { start: numberIn(name), num: Math.min(numberIn('num') || usual, most) };
}

type PagerOptions = {
  readonly keep?: Readonly<Record<string, string>>;
  readonly name?: string;
  /** Distinguishes the two pagers of one list. */
  readonly position?: string;
};

export function renderPager(
  noun: string,
  { start, num }: PageRange,
  total: number,
  { keep = {}, name = 'start', position = '' }: PagerOptions = {},
): Html | false {
  if (start === 0 && total <= num) return false;
  const end = Math.min(start + num, total);
  const link = (label: string, to: number) => {
    const query = new URLSearchParams({ ...keep, [name]: String(to), num: String(num) });
    return html`<a href="?${query.toString()}">${label}</a> `;
  };
  const place =
    end > start
      ? `${noun} ${formatNumber(start + 1)} to ${formatNumber(end)} of ${formatNumber(total)}.`
      : `There are ${formatNumber(total)}.`;
  // From beyond the end, Previous leads to the last part.
  const before = Math.max(0, Math.min(start, total) - num);
  return html`<nav class="pager" aria-label="Pages: ${noun}${position && ` ${position}`}">
    <p>${place} ${start > 0 && link('Previous', before)} ${end < total && link('Next', end)}</p>
  </nav>`;
}

export function renderFacts(facts: readonly (readonly [name: string, value: Html | string])[]): Html {
  return html`<dl class="record">
    ${facts.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div> `,
    )}
  </dl>`;
}
