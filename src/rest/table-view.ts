// Tables and facts for people, for views that know better than JSON what is worth showing. The first cell of a row names it,
// and on a narrow page each row becomes a block of its own.
import { html, type Html } from './html.ts';

export type Row = readonly Html[];

// Laid out as blocks, a table is none any more to a screen reader: the roles say that it is.
export function tableView(label: string, columns: readonly string[], rows: readonly Row[]): Html {
  return html`<div class="wide" tabindex="0" role="region" aria-label="${label}">
    <table class="stacked" role="table" aria-label="${label}">
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map((column) => html`<th role="columnheader" scope="col">${column}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (cells) =>
            html`<tr role="row">
              ${cells.map((cell, index) => cellView(cell, columns[index] ?? '', index === 0))}
            </tr> `,
        )}
      </tbody>
    </table>
  </div>`;
}

function cellView(cell: Html, column: string, isFirst: boolean): Html {
  return isFirst
    ? html`<th role="rowheader" scope="row">${cell}</th>`
    : html`<td role="cell" data-label="${column}"><div>${cell}</div></td>`;
}

/** The way through a list that is shown in parts: where this part lies, and the ones beside it. */
export function pagerView(noun: string, start: number, num: number, total: number): Html | false {
  if (start === 0 && total <= num) return false;
  const end = Math.min(start + num, total);
  const link = (label: string, to: number) => html`<a href="?start=${to}&amp;num=${num}">${label}</a> `;
  const place = end > start ? `${noun} ${start + 1} to ${end} of ${total}.` : `There are ${total}.`;
  return html`<nav class="pager" aria-label="Pages">
    <p>
      ${place} ${start > 0 && link('Previous', Math.max(0, start - num))} ${end < total && link('Next', end)}
    </p>
  </nav>`;
}

/** Names and what they are, one beneath the other. */
export function factsView(facts: readonly (readonly [name: string, value: Html | string])[]): Html {
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
