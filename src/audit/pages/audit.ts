// The page of the audit trail: filters, a compact table, and the export.
import { renderAgo } from '../../console/json.ts';
import { type Row, pageRange, renderPager, renderTable } from '../../console/table.ts';
import { formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import { type AuditEntry, type AuditOutcome, auditOutcomes } from '../../store/audit-entry.ts';
import type { TitleOf } from './titles.ts';

export type AuditPage = { readonly entries: readonly AuditEntry[]; readonly total: number };

const filters = ['from', 'to', 'user', 'operation', 'outcome'] as const;

const hour = 3_600_000;

const spans: readonly { readonly label: string; readonly ms: number }[] = [
  { label: 'Last hour', ms: hour },
  { label: 'Last 24 hours', ms: 24 * hour },
  { label: 'Last 7 days', ms: 7 * 24 * hour },
  { label: 'Last 30 days', ms: 30 * 24 * hour },
];

const colours: Readonly<Record<AuditOutcome, string>> = { success: 'good', refused: 'warn', failed: 'bad' };

export function auditView({ entries, total }: AuditPage, titleOf: TitleOf, page: PageContext<unknown>): Html {
  const kept = Object.fromEntries(
    filters.flatMap((name) => (page.query.get(name) ? [[name, page.query.get(name) ?? '']] : [])),
  );
  const csv = new URLSearchParams({ ...kept, f: 'csv' });
  const range = pageRange(page.query, { usual: 25 });
  return html`${filterForm(page)}
    <p>
      ${formatNumber(total)} ${total === 1 ? 'entry' : 'entries'}.
      <a href="${page.here()}?${csv.toString()}">Download as CSV</a>
      ${Object.keys(kept).length > 0 && html`· <a href="${page.here()}">Show all</a>`}
    </p>
    ${
      entries.length > 0 &&
      renderTable(
        'Entries',
        ['Operation', 'Who', 'When', 'Outcome', 'Changes'],
        entries.map((entry) => rowOf(entry, titleOf, page)),
      )
    }
    ${renderPager('Entries', range, total, { keep: kept })}`;
}

function rowOf(entry: AuditEntry, titleOf: TitleOf, page: PageContext<unknown>): Row {
  const { at, user, address, operation, target, outcome, code, count } = entry;
  return [
    html`<strong>${titleOf(operation) ?? operation}</strong> <code>${operation}</code>${
      target !== null && html`<br />${targetView(target, page)}`
    }`,
    html`${
      user === null
        ? html`<span class="none">${address === null ? 'the server' : 'unknown user'}</span>`
        : html`<a href="${page.here()}?${new URLSearchParams({ user }).toString()}">${user}</a>`
    }${address !== null && html`<br /><span class="hint">${address}</span>`}`,
    renderAgo(at, page.now),
    html`<span class="state ${colours[outcome]}">${outcome}</span>${
      outcome !== 'success' && code !== null && html` ${code}`
    }${count > 1 && html`<br /><span class="hint">${count} times</span>`}`,
    changesView(entry),
  ];
}

/** These have a page of their own, unless they were deleted meanwhile. */
const withPage = /^(services|uploads|system\/jobs)\//;

function targetView(target: string, { href }: PageContext<unknown>): Html {
  return withPage.test(target)
    ? html`<a class="hint" href="${href(...target.split('/'))}">${target}</a>`
    : html`<span class="hint">${target}</span>`;
}

function changesView({ changes }: AuditEntry): Html {
  if (changes.length === 0) return html`<span class="none">none</span>`;
  const lines = changes.map(
    ({ field, before, after }) =>
      html`<li><strong>${field}</strong>: ${valueText(before)} → ${valueText(after)}</li> `,
  );
  const list = html`<ul class="plain">
    ${lines}
  </ul>`;
  return changes.length <= 2
    ? list
    : html`<details>
        <summary>${changes.length} fields</summary>
        ${list}
      </details>`;
}

function valueText(value: string | number | boolean | null): Html {
  return value === null || value === '' ? html`<span class="none">none</span>` : html`${String(value)}`;
}

function filterForm({ here, query, now }: PageContext<unknown>): Html {
  const given = (name: string) => query.get(name) ?? '';
  const option = (value: string, label: string, chosen: string) =>
    html`<option value="${value}" ${value === chosen && 'selected'}>${label}</option> `;
  const from = given('from');
  const moments = spans.map(({ label, ms }) => ({ value: String(now - ms), label }));
  return html`<form class="filter" role="search" method="get" action="${here()}" aria-label="Filter">
    <div>
      <label for="user">User</label>
      <input id="user" name="user" maxlength="64" value="${given('user')}" />
    </div>
    <div>
      <label for="operation">Operation</label>
      <input id="operation" name="operation" maxlength="128" value="${given('operation')}" placeholder="users/add" />
    </div>
    <div>
      <label for="outcome">Outcome</label>
      <select id="outcome" name="outcome">
        ${option('', 'All', given('outcome'))} ${auditOutcomes.map((one) => option(one, one, given('outcome')))}
      </select>
    </div>
    <div>
      <label for="from">When</label>
      <select id="from" name="from">
        ${option('', 'Any time', from)} ${from !== '' && option(from, sinceLabel(from), from)}
        ${moments.map(({ value, label }) => option(value, label, from))}
      </select>
    </div>
    <button>Filter</button>
  </form>`;
}

function sinceLabel(from: string): string {
  const at = new Date(Number(from));
  return isNaN(at.getTime()) ? from : `Since ${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
