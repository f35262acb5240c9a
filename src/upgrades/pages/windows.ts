// The page of the maintenance windows: whether one is open, the next seven days, and the inputs of its form.
import { capitalise } from '../../console/labels.ts';
import { html, type Html } from '../../lib/html.ts';
import { parseJson } from '../../lib/json.ts';
import { dayMs } from '../../lib/runtime.ts';
import type { EnteredParts, Parts } from '../../rest/fields.ts';
import type { PageContext } from '../../rest/view.ts';
import type { Reader } from '../../store/state.ts';
import {
  type MaintenanceWindow,
  type OpenTime,
  formatWindow,
  maintenanceWindows,
  maxWindows,
  openTimes,
  readWindows,
  weekdays,
  windowsAt,
} from '../schedule/windows.ts';
import { toInstant, toLocal } from '../schedule/zone-time.ts';

export function windowsView(windows: readonly MaintenanceWindow[], now: number): Html {
  const timeZone = windows[0]?.timeZone ?? 'UTC';
  const { open } = windowsAt(windows, now);
  const text = windowText(windows, now) ?? 'There are no windows: an upgrade may start at any time.';
  return html`<div id="windows-state" data-live="10">
      <p class="claim"><span class="state ${open ? 'good' : 'warn'}">${open ? 'Open' : 'Closed'}</span> ${text}</p>
      ${windows.length > 0 && weekView(windows, now, timeZone)}
    </div>
    <h2>Windows</h2>
    <p>
      Upgrades and rollbacks start only while a window is open; a running job continues when it closes. A window that ends
      at or before the time of its start ends on the next day.
    </p>`;
}

/** Undefined if there are no windows. */
export function windowText(windows: readonly MaintenanceWindow[], now: number): string | undefined {
  if (windows.length === 0) return undefined;
  const state = windowsAt(windows, now);
  const changesAt = state.open ? state.closesAt : state.opensAt;
  const until = changesAt === null ? '' : ` until ${formatInZone(windows, changesAt)}`;
  return `${state.open ? 'A' : 'No'} maintenance window is open${until}.`;
}

/** The same with a link to the windows. */
export function windowLine(store: Reader, page: PageContext<unknown>): Html | false {
  const text = windowText(store.read(maintenanceWindows), page.now);
  const href = page.href('system', 'upgrades', 'config');
  return text !== undefined && html`<p>${text} <a href="${href}">Maintenance windows</a></p>`;
}

/** In the zone of the first window: `Sat 21 Nov, 22:00 in Europe/Vienna`. */
export function formatInZone([first]: readonly MaintenanceWindow[], at: number): string {
  const { timeZone = 'UTC' } = first ?? {};
  const local = toLocal(timeZone, at);
  return `${formatDay(local)}, ${formatClock(local)} in ${timeZone}`;
}

function formatDay(local: number): string {
  return new Date(local).toUTCString().slice(0, 11).replace(',', '');
}

function formatClock(local: number): string {
  return new Date(local).toISOString().slice(11, 16);
}

const shownDays = 7;

function weekView(windows: readonly MaintenanceWindow[], now: number, timeZone: string): Html {
  const today = Math.floor(toLocal(timeZone, now) / dayMs);
  const times = openTimes(windows, now, shownDays + 1);
  const days = Array.from({ length: shownDays }, (_, index) => today + index);
  return html`<figure class="chart week">
    <figcaption>
      <strong>The next seven days</strong> <span class="hint">Local time of ${timeZone}. The line is the present time.</span>
    </figcaption>
    <table>
      ${days.map((day) => dayView(day, times, now, timeZone))}
      <tr>
        <td></td>
        <td>
          <div class="ends"><span>00:00</span> <span>06:00</span> <span>12:00</span> <span>18:00</span> <span>24:00</span></div>
        </td>
      </tr>
    </table>
  </figure>`;
}

const dayWidth = 1440;

function dayView(day: number, times: readonly OpenTime[], now: number, timeZone: string): Html {
  const from = toInstant(timeZone, day * dayMs);
  const until = toInstant(timeZone, (day + 1) * dayMs);
  const placeOf = (at: number) => Math.round((dayWidth * (at - from)) / (until - from));
  const shown = times
    .map(({ start, end }) => ({ start: Math.max(start, from), end: Math.min(end, until) }))
    .filter(({ start, end }) => start < end);
  const clockOf = (at: number) => (at === until ? '24:00' : formatClock(toLocal(timeZone, at)));
  const description = shown.map(({ start, end }) => `${clockOf(start)} to ${clockOf(end)}`).join(', ');
  return html`<tr>
    <th scope="row">${formatDay(day * dayMs)}</th>
    <td>
      <svg role="img" aria-label="${description || 'Closed'}" viewBox="0 0 ${dayWidth} 10" preserveAspectRatio="none">
        <title>${description || 'Closed'}</title>
        <rect class="axis" width="${dayWidth}" height="10" />
        ${shown.map(({ start, end }) => html`<rect class="delivered" x="${placeOf(start)}" width="${placeOf(end) - placeOf(start)}" height="10" />`)}
        ${now >= from && now < until && html`<rect class="now" x="${placeOf(now)}" width="10" height="10" />`}
      </svg>
    </td>
  </tr> `;
}

/** The inputs are named by the index of the window: `0.mon`, `0.from`, `0.remove`. */
export const windowParts: Parts = {
  render: renderRows,
  join: joinRows,
  format: (text) => {
    const read = readWindows(text);
    return 'windows' in read ? read.windows.map(formatWindow).join('; ') : text;
  },
  explain: (text) =>
    problemsIn(text).map(({ index, words }) =>
      index === undefined ? words : `window ${index + 1}: ${words}`,
    ),
};

function joinRows(values: Readonly<Record<string, string>>): string {
  const windows = Array.from({ length: maxWindows }, (_, index) => {
    const value = (name: string) => values[`${index}.${name}`]?.trim() ?? '';
    const row = {
      days: weekdays.filter((day) => value(day) !== ''),
      from: value('from'),
      to: value('to'),
      timeZone: value('timeZone'),
    };
    const isEmpty = row.days.length === 0 && row.from === '' && row.to === '';
    return isEmpty || value('remove') !== '' ? [] : row;
  });
  return JSON.stringify(windows.flat());
}

/** The messages of the API name places in JSON. */
function problemsIn(text: string): { readonly index: number | undefined; readonly words: string }[] {
  const read = readWindows(text);
  if (!('problems' in read)) return [];
  return read.problems.map(({ index, key, message }) => ({ index, words: problemWords[key] ?? message }));
}

const problemWords: Readonly<Record<string, string>> = {
  days: 'choose one day or more.',
  from: 'enter the time at which it begins, such as 22:00.',
  to: 'enter the time at which it ends, such as 04:00.',
  timeZone: 'choose a time zone.',
};

function renderRows({ text = '' }: EnteredParts): Html {
  const list = parseJson(text);
  const rows = Array.isArray(list) ? list.slice(0, maxWindows).map(rowOf) : [];
  const last = rows.at(-1)?.timeZone ?? '';
  const empty = { days: [], from: '', to: '', timeZone: last === '' ? 'UTC' : last, isUsual: last === '' };
  const problems = problemsIn(text);
  const problemsOf = (index: number) =>
    problems.flatMap((problem) => (problem.index === index ? capitalise(problem.words) : []));
  return html`${rows.map((row, index) => rowView(row, index, `Window ${index + 1}`, problemsOf(index)))}
    ${rows.length < maxWindows && rowView(empty, rows.length, 'New window', [])}
    <datalist id="zones">
      ${['UTC', ...Intl.supportedValuesOf('timeZone')].map((zone) => html`<option value="${zone}"></option>`)}
    </datalist>`;
}

type Row = {
  readonly days: readonly unknown[];
  readonly from: string;
  readonly to: string;
  readonly timeZone: string;
  /** Whether the script may choose the zone of the browser. */
  readonly isUsual?: boolean;
};

/** Refused input is shown again as far as it has the form of a window. */
function rowOf(given: unknown): Row {
  const entry = (given ?? {}) as Readonly<Record<string, unknown>>;
  const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
  return {
    days: Array.isArray(entry.days) ? entry.days : [],
    from: textOf(entry.from),
    to: textOf(entry.to),
    timeZone: textOf(entry.timeZone),
  };
}

function rowView(row: Row, index: number, title: string, problems: readonly string[]): Html {
  const nameOf = (part: string) => `windows.${index}.${part}`;
  const box = (part: string, label: string, isChecked: boolean) =>
    html`<label><input type="checkbox" name="${nameOf(part)}" value="true" ${isChecked && 'checked'} /> ${label}</label> `;
  // The control for times of some browsers shows 10:00 PM.
  const time = (part: 'from' | 'to', label: string, example: string) =>
    html`<label>${label} <input name="${nameOf(part)}" value="${row[part]}" maxlength="5" placeholder="${example}" /></label> `;
  return html`<fieldset class="boxes window">
    <legend>${title}</legend>
    <span class="days">${weekdays.map((day) => box(day, capitalise(day), row.days.includes(day)))}</span>
    ${time('from', 'From', '22:00')} ${time('to', 'To', '04:00')}
    <label>Time zone <input name="${nameOf('timeZone')}" value="${row.timeZone}" list="zones" maxlength="64" ${row.isUsual && 'data-own-zone'} /></label>
    ${title !== 'New window' && box('remove', 'Remove', false)}
    ${problems.length > 0 && html`<p class="problem">${problems.join(' ')}</p>`}
  </fieldset> `;
}
