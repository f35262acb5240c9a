// Tables, lists with their toolbar and pager, and lists of facts. The first cell of a row is its heading; on a narrow
// page each row becomes a block. The state of a list is in its address, so that it needs no script.
import { formatNumber } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';
import { hiddenFields } from './action.ts';

export type Row = readonly (Html | string)[];

/** A sortable column has a link. `direction` is undefined if the table is sorted by another column. */
type SortableColumn = {
  readonly label: string;
  readonly href: string;
  readonly direction: Direction | undefined;
};

export type Column = string | SortableColumn;

type Direction = 'ascending' | 'descending';

// Without the roles, a screen reader would not see a table in rows that are laid out as blocks.
/** `ids` are those of the rows: with them, an update of a live table moves rows instead of rewriting them. */
export function renderTable(
  label: string,
  columns: readonly Column[],
  rows: readonly Row[],
  ids: readonly string[] = [],
): Html {
  return html`<div class="wide" tabindex="0" role="group" aria-label="${label}">
    <table class="stacked" role="table" aria-label="${label}">
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map(headView)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (cells, row) =>
            html`<tr role="row"${ids[row] !== undefined && html` id="${ids[row]}"`}>
              ${cells.map((cell, index) => cellView(cell, labelOf(columns[index] ?? ''), index === 0))}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

function labelOf(column: Column): string {
  return typeof column === 'string' ? column : column.label;
}

function headView(column: Column): Html {
  if (typeof column === 'string') return html`<th role="columnheader" scope="col">${column}</th>`;
  const { label, href, direction } = column;
  return html`<th role="columnheader" scope="col"${direction && html` aria-sort="${direction}"`}>
    <a href="${href}">${label}</a>
  </th>`;
}

function cellView(cell: Html | string, column: string, isFirst: boolean): Html {
  return isFirst
    ? html`<th role="rowheader" scope="row">${cell}</th>`
    : html`<td role="cell" data-label="${column}"><div>${cell}</div></td>`;
}

/** A table with dense rows, whose head stays in view. */
export function renderList(...table: Parameters<typeof renderTable>): Html {
  return html`<div class="list">${renderTable(...table)}</div>`;
}

export type ListParameters = Readonly<Record<string, string>>;

/** The parameters that the links of a list repeat. Others are left out, because one may be a token. */
export function listParameters(query: URLSearchParams, names: readonly string[]): ListParameters {
  return Object.fromEntries(
    [...query].filter(([name, value]) => names.includes(name) && value.trim() !== ''),
  );
}

/** The address of the list with these parameters. */
export function listAddress({ here, query }: ListPage, names: readonly string[]): string {
  const kept = new URLSearchParams(listParameters(query, [...names, 'q', 'sort', 'order', 'start', 'num']));
  return kept.size === 0 ? here() : `${here()}?${kept.toString()}`;
}

type ListPage = { readonly here: () => string; readonly query: URLSearchParams };

export type Sorting<K extends string> = { readonly key: K; readonly isDescending: boolean };

/** `usual` maps the keys to the order that a first click gives. The list is sorted by the first key unless told. */
export function sortingOf<K extends string>(
  query: URLSearchParams,
  usual: Readonly<Record<K, Direction>>,
): Sorting<K> {
  const keys = Object.keys(usual) as [K, ...K[]];
  const key = keys.find((one) => one === query.get('sort')) ?? keys[0];
  const order = query.get('order');
  return { key, isDescending: order === null ? usual[key] === 'descending' : order === 'desc' };
}

/** The sorted column links to the other direction, the others to their usual one. */
export function sortableColumn<K extends string>(
  label: string,
  key: K,
  sorting: Sorting<K>,
  keep: ListParameters,
): SortableColumn {
  const isSorted = sorting.key === key;
  const { order: _order, ...kept } = keep;
  const order = isSorted ? { order: sorting.isDescending ? 'asc' : 'desc' } : {};
  return {
    label,
    href: `?${new URLSearchParams({ ...kept, sort: key, ...order }).toString()}`,
    direction: isSorted ? (sorting.isDescending ? 'descending' : 'ascending') : undefined,
  };
}

export function sortBy<T, K extends string>(
  rows: readonly T[],
  { key, isDescending }: Sorting<K>,
  comparisons: Readonly<Record<K, (one: T, other: T) => number>>,
): T[] {
  const compare = comparisons[key];
  return rows.toSorted(isDescending ? (one, other) => compare(other, one) : compare);
}

const collator = new Intl.Collator('en', { numeric: true });

/** The order of readers: user2 is before user10. */
export const compareNaturally: (one: string, other: string) => number = collator.compare;

type Toolbar = {
  readonly action: string;
  readonly search?: { readonly label: string; readonly value: string; readonly name?: string };
  /** Selects and inputs of the form. */
  readonly filters?: readonly Html[];
  /** What the form keeps, such as the order. */
  readonly keep?: ListParameters;
  /** Links that filter. */
  readonly chips?: Html;
  readonly count?: Html | string;
  readonly actions?: Html | false;
};

/** The row above a list: what it shows, how many there are, and the main button. */
export function renderToolbar(toolbar: Toolbar): Html {
  const { chips, count, actions } = toolbar;
  return html`<div class="toolbar">
    ${(toolbar.search || toolbar.filters) && toolbarForm(toolbar)} ${chips}
    ${count !== undefined && html`<p class="total">${count}</p>`}
    ${actions && html`<div class="actions">${actions}</div>`}
  </div>`;
}

function toolbarForm({ action, search, filters = [], keep = {} }: Toolbar): Html {
  const { label = '', value = '', name = 'q' } = search ?? {};
  return html`<form role="search" method="get" action="${action}"${!search && html` aria-label="Filter"`}>
    ${hiddenFields(keep)}
    ${
      search &&
      html`<label class="unseen" for="${name}">${label}</label>
        <input id="${name}" name="${name}" type="search" maxlength="128" value="${value}" placeholder="${label}" />`
    }
    ${filters} <button>${search ? 'Search' : 'Filter'}</button>
  </form>`;
}

export type Option = { readonly value: string; readonly label: string };

/** The first option says what the filter is about, so the label is not shown. */
export function renderSelect(name: string, label: string, options: readonly Option[], chosen = ''): Html {
  return html`<label class="unseen" for="filter-${name}">${label}</label>
    <select id="filter-${name}" name="${name}">
      ${options.map(
        ({ value, label: text }) =>
          html`<option value="${value}"${value === chosen && html` selected`}>${text}</option> `,
      )}
    </select>`;
}

type Chip = { readonly label: string; readonly href: string; readonly isCurrent: boolean };

/** Links that filter, for the toolbar. */
export function renderChips(chips: readonly Chip[]): Html {
  return html`${chips.map(
    ({ label, href, isCurrent }) =>
      html`<a class="chip" href="${href}"${isCurrent && html` aria-current="true"`}>${label}</a> `,
  )}`;
}

/** Instead of a list without rows. With filters, its link removes them. */
export function renderEmpty(
  sentence: string,
  link?: { readonly href: string; readonly label: string },
): Html {
  return html`<div class="empty">
    <p>${sentence}</p>
    ${link && html`<p><a href="${link.href}">${link.label}</a></p>`}
  </div>`;
}

/** The actions of a row behind one button. `id` is unique in the page. */
export function renderMenu(id: string, subject: string, items: readonly (Html | false)[]): Html | '' {
  if (items.every((item) => item === false)) return '';
  return html`<button type="button" class="quiet more" popovertarget="menu-${id}" aria-label="Actions for ${subject}"
      >…</button
    >
    <div id="menu-${id}" class="row-menu" popover>${items.map((item) => item && html`${item} `)}</div>`;
}

type PageRange = { readonly start: number; readonly num: number };

export function pageRange(
  query: URLSearchParams,
  { usual = 100, most = 100, name = 'start' } = {},
): PageRange {
  const numberIn = (key: string) => Number(/^\s*(\d{1,9})\s*$/.exec(query.get(key) ?? '')?.[1] ?? 0);
  return { start: numberIn(name), num: Math.min(numberIn('num') || usual, most) };
}

type PagerOptions = { readonly keep?: ListParameters; readonly name?: string };

export function renderPager(
  noun: string,
  { start, num }: PageRange,
  total: number,
  { keep = {}, name = 'start' }: PagerOptions = {},
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
  const current = Math.floor(start / num) + 1;
  const numbers = pageNumbers(current, Math.ceil(total / num)).map((page) => {
    if (page === undefined) return html`<span>…</span> `;
    if (page === current) return html`<strong aria-current="page">${formatNumber(page)}</strong> `;
    return link(formatNumber(page), (page - 1) * num);
  });
  return html`<nav class="pager" aria-label="Pages: ${noun}">
    <p>${place}</p>
    <p>${start > 0 && link('Previous', before)} ${numbers} ${end < total && link('Next', end)}</p>
  </nav>`;
}

/** The first and the last page, and those around the current one; undefined for a gap. */
export function pageNumbers(current: number, last: number): (number | undefined)[] {
  const around = Math.min(Math.max(current, 3), Math.max(3, last - 2));
  const shown = [...new Set([1, around - 1, around, around + 1, last])]
    .filter((page) => page >= 1 && page <= last)
    .sort((one, other) => one - other);
  return shown.flatMap((page, index) => {
    const previous = shown[index - 1] ?? page - 1;
    if (page - previous === 2) return [page - 1, page];
    return page - previous > 2 ? [undefined, page] : [page];
  });
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
