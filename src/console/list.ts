// The page of a list from one description: search, filters, sortable columns, pages, the number of entries, and what it
// shows instead of no entries. The state of a list is in its address, so that it needs no script.
import { formatCount, formatNumber, pluralOf } from '../lib/format.ts';
import { html, type Html } from '../lib/html.ts';
import type { Option, PageContext } from '../rest/view.ts';
import { hiddenFields } from './action.ts';
import { capitalise } from './labels.ts';
import { type Column, renderTable } from './table.ts';

type Page = Pick<PageContext<unknown>, 'here' | 'query'>;

/** How an order of the list compares two entries, and which direction a first click gives. */
type Order<T> = { readonly compare: (one: T, other: T) => number; readonly isDescending?: true };

type Selection<T, K extends string> = {
  /** The text that the search looks into. */
  readonly textOf?: (entry: T) => string;
  /** The value that a filter compares, by the name of its parameter. */
  readonly filters?: Readonly<Record<string, (entry: T) => string>>;
  /** The first order is the usual one. */
  readonly orders?: Readonly<Record<K, Order<T>>>;
} & PageSize;

type PageSize = {
  readonly usual?: number;
  readonly most?: number;
  /** The parameter with the place in the list. Two lists on one page have two. */
  readonly place?: string;
};

/** The entries that the page shows. */
type Selected<T, K extends string = string> = {
  readonly shown: readonly T[];
  readonly total: number;
  readonly range: PageRange;
  /** What the links of the list repeat: all parameters except the place in the list. */
  readonly keep: ListParameters;
  readonly sorting?: Sorting<K>;
};

type Sorting<K extends string> = { readonly key: K; readonly isDescending: boolean };

type PageRange = { readonly start: number; readonly num: number; readonly place?: string };

export type ListParameters = Readonly<Record<string, string>>;

/** The parameters of the address that are not blank, without the place in the list. */
export function listParameters(query: URLSearchParams, place = 'start'): ListParameters {
  return Object.fromEntries(
    [...query].filter(([name, value]) => name !== place && name !== 'num' && value.trim() !== ''),
  );
}

/** The text that the search of a page asks for. */
export function searchedIn(query: URLSearchParams): string {
  return (query.get('q') ?? '').trim().slice(0, 256);
}

/** Searches, filters, sorts and cuts a list that is in memory. */
export function selectEntries<T, K extends string = never>(
  entries: readonly T[],
  page: Page,
  { textOf, filters = {}, orders, ...size }: Selection<T, K>,
): Selected<T, K> {
  const keep = listParameters(page.query, size.place);
  const words = (keep.q ?? '').trim().toLowerCase();
  const asked = Object.entries(filters).filter(([name]) => keep[name] !== undefined);
  const found = entries.filter(
    (entry) =>
      (!textOf || textOf(entry).toLowerCase().includes(words)) &&
      asked.every(([name, valueOf]) => valueOf(entry) === keep[name]),
  );
  const range = pageRange(page.query, size);
  const cut = (all: readonly T[]) => all.slice(range.start, range.start + range.num);
  const selected = { total: found.length, range, keep };
  if (!orders) return { ...selected, shown: cut(found) };
  const keys = Object.keys(orders) as [K, ...K[]];
  const key = keys.find((one) => one === keep.sort) ?? keys[0];
  const isDescending = keep.order === undefined ? orders[key].isDescending === true : keep.order === 'desc';
  const { compare } = orders[key];
  const sorted = found.toSorted(isDescending ? (one, other) => compare(other, one) : compare);
  return { ...selected, shown: cut(sorted), sorting: { key, isDescending } };
}

/** All entries of a short list, which a page shows beside other things. */
export function allEntries<T>(entries: readonly T[]): Selected<T, never> {
  const total = entries.length;
  return { shown: entries, total, range: { start: 0, num: total }, keep: {} };
}

/** `sort` is the order of a column that can be sorted by. */
export type ListColumn<T, K extends string = string> = {
  readonly label: string;
  readonly cell: (entry: T) => Html | string;
  readonly sort?: K;
  /** Selects all rows. Only a sortable column has one. */
  readonly box?: Html | false;
};

type EntriesView<T, K extends string> = {
  /** One entry, such as `user`. */
  readonly noun: string;
  readonly label?: string;
  readonly columns: readonly ListColumn<T, K>[];
  /** The ids of the rows, for a list that updates itself. */
  readonly idOf?: (entry: T) => string;
  /** Instead of no entries without a search or a filter. */
  readonly empty?: Html;
};

type ListView<T, K extends string> = EntriesView<T, K> &
  Pick<Toolbar, 'filters' | 'count' | 'actions'> & { readonly search?: string };

export function renderListPage<T, K extends string>(
  page: Page,
  selected: Selected<T, K>,
  view: ListView<T, K>,
): Html {
  const { keep, total } = selected;
  const { search, filters, count = formatCount(total, view.noun), actions } = view;
  return html`${renderToolbar({
    action: page.here(),
    search: search === undefined ? undefined : { label: search, value: keep.q ?? '' },
    filters,
    keep: sortingIn(keep),
    count,
    actions,
  })}
  ${renderEntries(page, selected, view)}`;
}

/** What the form of a toolbar keeps. */
export function sortingIn({ sort, order }: ListParameters): ListParameters {
  return { ...(sort !== undefined && { sort }), ...(order !== undefined && { order }) };
}

/** These parameters hide no entry. */
const arrangement = /^(sort|order|start\w*)$/;

/** The table and its pager. */
export function renderEntries<T, K extends string>(
  page: Page,
  { shown, total, range, keep, sorting }: Selected<T, K>,
  view: EntriesView<T, K>,
): Html {
  const { noun, columns, idOf, empty } = view;
  const name = capitalise(pluralOf(noun));
  const isFiltered = Object.keys(keep).some((parameter) => !arrangement.test(parameter));
  if (total === 0) return isFiltered || !empty ? renderEmpty(`No ${noun} matches.`, page.here()) : empty;
  const heads = columns.map(({ label, sort, box }): Column =>
    sort === undefined || !sorting ? label : { ...sortableColumn(label, sort, sorting, keep), box },
  );
  const rows = shown.map((entry) => columns.map(({ cell }) => cell(entry)));
  const table = renderTable(view.label ?? name, heads, rows, idOf ? shown.map(idOf) : []);
  return html`${shown.length > 0 && html`<div class="list">${table}</div>`} ${renderPager(name, range, total, keep)}`;
}

/** The sorted column links to the other direction, the others to their usual one. */
function sortableColumn<K extends string>(
  label: string,
  key: K,
  sorting: Sorting<K>,
  keep: ListParameters,
): Exclude<Column, string> {
  const isSorted = sorting.key === key;
  const { order: _order, ...kept } = keep;
  const order = isSorted ? { order: sorting.isDescending ? 'asc' : 'desc' } : {};
  return {
    label,
    href: `?${new URLSearchParams({ ...kept, sort: key, ...order }).toString()}`,
    direction: isSorted ? (sorting.isDescending ? 'descending' : 'ascending') : undefined,
  };
}

type Toolbar = {
  readonly action: string;
  readonly search?: { readonly label: string; readonly value: string } | undefined;
  /** Selects and inputs of the form. */
  readonly filters?: readonly Html[] | undefined;
  /** What the form keeps, such as the order. */
  readonly keep?: ListParameters;
  /** Links that filter. */
  readonly chips?: Html;
  readonly count?: Html | string;
  readonly actions?: Html | false | undefined;
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
  return html`<form role="search" method="get" action="${action}"${!search && html` aria-label="Filter"`}>
    ${hiddenFields(keep)}
    ${
      search &&
      html`<label class="unseen" for="q">${search.label}</label>
        <input id="q" name="q" type="search" maxlength="128" value="${search.value}" placeholder="${search.label}" />`
    }
    ${filters.length > 1 && folds} ${filters} <button>${search ? 'Search' : 'Filter'}</button>
  </form>`;
}

/** Shows the filters on a narrow page. */
const folds = html`<label class="folds"><input type="checkbox" autocomplete="off" /> Filters</label>`;

/** The first option says what the filter is about, so the label is not shown. A given value that is unknown is offered too. */
export function renderSelect(
  name: string,
  label: string,
  all: string,
  values: readonly (string | Option)[],
  chosen = '',
): Html {
  const known = values.map((value) => (typeof value === 'string' ? { value, label: value } : value));
  const isKnown = chosen === '' || known.some(({ value }) => value === chosen);
  const options = [
    { value: '', label: all },
    ...known,
    ...(isKnown ? [] : [{ value: chosen, label: chosen.split(',').join(', ') }]),
  ];
  return html`<label class="unseen" for="filter-${name}">${label}</label>
    <select id="filter-${name}" name="${name}">
      ${options.map(
        ({ value, label: text }) =>
          html`<option value="${value}"${value === chosen && html` selected`}>${text}</option> `,
      )}
    </select>`;
}

type Chip = {
  readonly label: string;
  readonly href: string;
  readonly isCurrent: boolean;
  /** The script asks for these days in the zone of the reader. */
  readonly days?: readonly [number, number];
};

/** Links that filter, for the toolbar. */
export function renderChips(chips: readonly Chip[]): Html {
  return html`${chips.map(
    ({ label, href, isCurrent, days }) =>
      html`<a class="chip" href="${href}"${isCurrent && html` aria-current="true"`} ${days && html`data-days="${days.join(' ')}"`}>${label}</a> `,
  )}`;
}

/** Instead of a list without rows. A link to the list without filters removes them. */
export function renderEmpty(sentence: string | Html, unfiltered?: string): Html {
  return html`<div class="empty">
    <p>${sentence}</p>
    ${unfiltered !== undefined && html`<p><a href="${unfiltered}">Remove the filters</a></p>`}
  </div>`;
}

export function pageRange(
  query: URLSearchParams,
  { usual = 100, most = 100, place = 'start' }: PageSize = {},
): PageRange {
  const numberIn = (key: string) => Number(/^\s*(\d{1,9})\s*$/.exec(query.get(key) ?? '')?.[1] ?? 0);
  return { start: numberIn(place), num: Math.min(numberIn('num') || usual, most), place };
}

function renderPager(name: string, range: PageRange, total: number, keep: ListParameters): Html | false {
  const { start, num, place = 'start' } = range;
  if (start === 0 && total <= num) return false;
  const end = Math.min(start + num, total);
  const link = (label: string, to: number) => {
    const query = new URLSearchParams({ ...keep, [place]: String(to), num: String(num) });
    return html`<a href="?${query.toString()}">${label}</a> `;
  };
  const sentence =
    end > start
      ? `${name} ${formatNumber(start + 1)} to ${formatNumber(end)} of ${formatNumber(total)}.`
      : `There are ${formatNumber(total)}.`;
  // From beyond the end, Previous leads to the last part.
  const before = Math.max(0, Math.min(start, total) - num);
  const last = Math.floor((total - 1) / num) * num;
  return html`<nav class="pager" aria-label="Pages: ${name}">
    <p>${sentence}</p>
    <p>
      ${start > 0 && html`${link('First', 0)} ${link('Previous', before)}`}
      ${end < total && html`${link('Next', end)} ${link('Last', last)}`}
    </p>
  </nav>`;
}
