// Tables, menus and lists of facts. The first cell of a row is its heading; on a narrow page each row becomes a block.
import { html, type Html } from '../lib/html.ts';

export type Row = readonly (Html | string)[];

/** A sortable column has a link. `direction` is undefined if the table is sorted by another column. */
export type Column =
  | string
  | {
      readonly label: string;
      readonly href: string;
      readonly direction: 'ascending' | 'descending' | undefined;
      readonly box?: Html | false | undefined;
    };

// Without the roles, a screen reader would not see a table in rows that are laid out as blocks.
/** `ids` are those of the rows: with them, an update of a live table moves rows instead of rewriting them. */
export function renderTable(
  label: string,
  columns: readonly Column[],
  rows: readonly Row[],
  ids: readonly string[] = [],
): Html {
  const labels = columns.map((column) => (typeof column === 'string' ? column : column.label));
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
              ${cells.map((cell, index) => cellView(cell, labels[index], index === 0))}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

function headView(column: Column): Html {
  if (typeof column === 'string') return html`<th role="columnheader" scope="col">${column}</th>`;
  const { label, href, direction, box } = column;
  return html`<th role="columnheader" scope="col"${direction && html` aria-sort="${direction}"`}>
    ${box} <a href="${href}">${label}</a>
  </th>`;
}

function cellView(cell: Html | string, column: string | undefined, isFirst: boolean): Html {
  return isFirst
    ? html`<th role="rowheader" scope="row">${cell}</th>`
    : html`<td role="cell" data-label="${column}"><div>${cell}</div></td>`;
}

/** Instead of a value. */
export function renderMissing(text = '–'): Html {
  return html`<span class="none">${text}</span>`;
}

/** The actions of a row behind one button. `id` is unique in the page. */
export function renderMenu(id: string, subject: string, items: readonly (Html | false)[]): Html | '' {
  if (items.every((item) => item === false)) return '';
  return html`<button type="button" class="quiet more" popovertarget="menu-${id}" aria-label="Actions for ${subject}"
      >…</button
    >
    <div id="menu-${id}" class="row-menu" popover>${items.map((item) => item && html`${item} `)}</div>`;
}

/** Created when it is first used, because Node.js then reads megabytes of language data. */
let collator: Intl.Collator | undefined;

/** The order of readers: user2 is before user10. */
export function compareNaturally(one: string, other: string): number {
  collator ??= new Intl.Collator('en', { numeric: true });
  return collator.compare(one, other);
}

/** `figures` are beside each other, the facts of a record below each other. */
export function renderFacts(
  facts: readonly (readonly [name: string, value: Html | string])[],
  style: 'record' | 'figures' = 'record',
): Html {
  return html`<dl class="${style}">
    ${facts.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div> `,
    )}
  </dl>`;
}
