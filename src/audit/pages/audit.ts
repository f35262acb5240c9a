// The page of the audit trail: a search, a compact list, and the export. The operations have the titles that the
// resource tree gives them.
import { renderTimeRange } from '../../console/form.ts';
import {
  type ListParameters,
  listParameters,
  pageRange,
  renderChips,
  renderEmpty,
  renderEntries,
  renderSelect,
  renderToolbar,
} from '../../console/list.ts';
import { renderMissing } from '../../console/table.ts';
import { renderAgo, renderTime } from '../../console/time.ts';
import { formatCount, formatList } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import { dayMs } from '../../lib/runtime.ts';
import type { Resource } from '../../rest/resource.ts';
import { walk } from '../../rest/tree.ts';
import type { PageContext } from '../../rest/view.ts';
import {
  type AuditEntry,
  type AuditOutcome,
  auditOutcomes,
  maxCountedEntries,
} from '../../store/audit-entry.ts';
import type { TargetNames } from '../audit-store.ts';

/** What people call the operations and what they concern. */
export type AuditWords = { readonly titles: OperationTitles; readonly names: TargetNames };

/** Filters that the form has no field for: links and programs set them. */
const otherFilters = ['user', 'operation'] as const;

/** From the midnight of a day to that of another, counted from today. */
const presets = [
  { label: 'Today', days: [0, 1] },
  { label: 'Yesterday', days: [-1, 0] },
  { label: '7 days', days: [-6, 1] },
] as const;

const colours: Readonly<Record<AuditOutcome, string>> = { success: 'good', refused: 'warn', failed: 'bad' };

export async function auditView(
  page: PageContext<unknown, { readonly entries: readonly AuditEntry[]; readonly total: number }>,
  words: AuditWords,
): Promise<Html> {
  const { entries, total } = page.json;
  const given = listParameters(page.query);
  const range = pageRange(page.query, { usual: 25 });
  const names = await namesOf(entries, words);
  const list = { shown: entries, total, range, keep: given };
  return html`${toolbarOf(given, total, page)}
    <div class="audit">
      ${renderEntries(page, list, {
        noun: 'entry',
        empty: renderEmpty('There are no entries yet. Every change that somebody makes or tries adds one.'),
        columns: [
          {
            label: 'Time',
            cell: ({ at }) => html`${renderTime(at)} <span class="hint">${renderAgo(at, page.now)}</span>`,
          },
          {
            label: 'Operation',
            cell: ({ operation, user }) =>
              html`${words.titles.titleOf(operation, user) ?? operation} <span class="hint" title="${operation}">${operation}</span>`,
          },
          { label: 'Target', cell: (entry) => targetView(entry, names, page) },
          { label: 'Who', cell: (entry) => actorView(entry, page) },
          { label: 'Outcome', cell: outcomeView },
          { label: 'Changes', cell: changesView },
        ],
      })}
    </div>`;
}

type Names = ReadonlyMap<string, string>;

async function namesOf(entries: readonly AuditEntry[], { titles, names }: AuditWords): Promise<Names> {
  const targets = [...new Set(entries.flatMap(({ target }) => target ?? []))];
  const nameOf = async (target: string) => titles.pageOf(target) ?? (await names.nameOf(target));
  const found = await Promise.all(targets.map(async (target) => [target, await nameOf(target)] as const));
  return new Map(found.flatMap(([target, name]) => (name === undefined ? [] : [[target, name]])));
}

function actorView({ user, key, address }: AuditEntry, { here }: PageContext<unknown>): Html {
  return html`${
    user === null
      ? renderMissing(address === null ? 'the server' : 'unknown user')
      : html`<a href="${here()}?${new URLSearchParams({ user }).toString()}">${user}</a>`
  }${key !== null && html` with <bdi title="${key}">${key}</bdi>`}${address !== null && html` <span class="hint">${address}</span>`}`;
}

function outcomeView({ outcome, code, count }: AuditEntry): Html {
  return html`<span class="state ${colours[outcome]}">${outcome}</span>${
    outcome !== 'success' && code !== null && html` ${code}`
  }${count > 1 && html` <span class="hint">${count} times</span>`}`;
}

/** These have a page of their own, unless they were deleted meanwhile. */
const withPage = /^(services\/|uploads\/|system\/jobs\/|system\/upgrades|mode$)/;

function targetView({ target, changes }: AuditEntry, names: Names, { href }: PageContext<unknown>): Html {
  if (target === null) return renderMissing();
  // The entries that create and delete something contain its name.
  const named = changes.find(({ field }) => field === 'name');
  const name = names.get(target) ?? named?.after ?? named?.before ?? undefined;
  const label = html`<bdi>${name === undefined ? target : String(name)}</bdi>`;
  return html`${withPage.test(target) ? html`<a href="${href(...target.split('/'))}">${label}</a>` : label}${
    name !== undefined && html` <span class="hint" title="${target}">${target}</span>`
  }`;
}

/** The names of more fields than one, which unfold. */
function changesView({ changes }: AuditEntry): Html {
  const [first, ...others] = changes;
  if (!first) return renderMissing('none');
  const lines = changes.map(
    ({ field, before, after }) =>
      html`<strong>${field}</strong>: ${valueText(field, before)} → ${valueText(field, after)}`,
  );
  const isShort = String(first.before).length + String(first.after).length <= 40;
  if (others.length === 0 && isShort) return html`${lines}`;
  return html`<details>
    <summary>${formatList(
      changes.map(({ field }) => field),
      3,
    )}</summary>
    <ul class="plain">
      ${lines.map((line) => html`<li>${line}</li> `)}
    </ul>
  </details>`;
}

function valueText(field: string, value: string | number | boolean | null): Html {
  if (value === null || value === '') return renderMissing('none');
  return html`${field.endsWith('At') && typeof value === 'number' ? renderTime(value) : String(value)}`;
}

function toolbarOf(given: ListParameters, total: number, { here, now }: PageContext<unknown>): Html {
  const others = otherFilters.filter((name) => given[name] !== undefined);
  const today = Math.floor(now / dayMs);
  const presetChips = presets.map(({ label, days }) => {
    const [from = '', to = ''] = days.map((day) => String((today + day) * dayMs));
    const query = new URLSearchParams({ ...given, from, to });
    return {
      label,
      href: `${here()}?${query.toString()}`,
      isCurrent: from === given.from && to === given.to,
      days,
    };
  });
  const removals = others.map((name) => {
    const { [name]: value = '', ...rest } = given;
    const query = new URLSearchParams(rest).toString();
    return { label: `${name}: ${value} ×`, href: `${here()}?${query}`, isCurrent: true };
  });
  const csv = new URLSearchParams({ ...given, f: 'csv' }).toString();
  return renderToolbar({
    action: here(),
    search: { label: 'Operation, target, user or field', value: given.q ?? '' },
    filters: [
      renderTimeRange(given),
      renderSelect('outcome', 'Outcome', 'All outcomes', auditOutcomes, given.outcome),
    ],
    keep: Object.fromEntries(others.map((name) => [name, given[name] ?? ''])),
    chips: html`<p class="chips">${renderChips([...presetChips, ...removals])}</p>`,
    count: `${total === maxCountedEntries ? 'At least ' : ''}${formatCount(total, 'entry')}`,
    actions: total > 0 && html`<a href="${here()}?${csv}">Download as CSV</a>`,
  });
}

/** Entries whose operation is not part of the administrator tree. */
const otherTitles: Readonly<Record<string, string>> = {
  'tokens/generateToken': 'Sign in',
  'tokens/oidc/callback': 'Sign in at the identity provider',
  'tokens/revokeToken': 'Sign out',
  'system/jobs/{job}/end': 'Job ended',
};

type OperationTitles = {
  /** `user` is null for what the server has done. */
  titleOf: (operation: string, user: string | null) => string | undefined;
  /** The title of the page at a path that contains no name. */
  pageOf: (path: string) => string | undefined;
  /** The operations whose titles contain the text, ignoring case. */
  find: (text: string) => readonly string[];
};

/** The tree contains the page of the audit trail, so it is read only when the page is shown. */
export function operationTitles(tree: () => Resource): OperationTitles {
  let read: ReadonlyMap<string, string> | undefined;
  const readTitles = () => {
    const all = new Map(Object.entries(otherTitles));
    // Only the path of a page begins with a slash.
    for (const { route, operation, resource } of walk(tree()))
      all.set(operation ? route : `/${route}`, (operation ?? resource).title);
    return all;
  };
  const titles = () => (read ??= readTitles());
  return {
    titleOf: (operation, user) =>
      user === null && operation.endsWith('/{webhook}/deactivate')
        ? 'Deactivated after failures'
        : titles().get(operation),
    pageOf: (path) => titles().get(`/${path}`),
    find: (text) =>
      [...titles()].flatMap(([operation, title]) =>
        title.toLowerCase().includes(text.toLowerCase()) ? operation : [],
      ),
  };
}
