// The page of the audit trail: a search, a compact list, and the export. The operations have the titles that the
// resource tree gives them.
import { renderTimeRange } from '../../console/form.ts';
import { labelOf } from '../../console/labels.ts';
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
import { renderTime } from '../../console/time.ts';
import { formatCount, formatList } from '../../lib/format.ts';
import { type Html, html } from '../../lib/html.ts';
import { dayMs } from '../../lib/runtime.ts';
import type { Resource } from '../../rest/resource.ts';
import { type Fields, metaOf } from '../../rest/fields.ts';
import { fieldsOf, walk } from '../../rest/tree.ts';
import type { PageContext } from '../../rest/view.ts';
import {
  type AuditEntry,
  type AuditOutcome,
  auditOutcomes,
  maxCountedEntries,
} from '../../store/audit-entry.ts';
import type { TargetNames } from '../audit-store.ts';
import { type Sentence, sentenceOf } from './sentences.ts';

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
  const sentences = await describeEntries(entries, words, page);
  const list = { shown: entries, total, range, keep: given };
  return html`${toolbarOf(given, total, page)}
    <div class="audit">
      ${renderEntries(page, list, {
        noun: 'entry',
        empty: renderEmpty('There are no entries yet. Every change that somebody makes or tries adds one.'),
        columns: [
          {
            label: 'Time',
            cell: ({ at }) => renderTime(at),
          },
          { label: 'Who', cell: (entry) => actorView(entry, page) },
          {
            label: 'What',
            cell: (entry) =>
              html`${sentences.get(entry)} <span class="hint" title="${entry.operation}">${entry.operation}</span>`,
          },
          { label: 'Outcome', cell: outcomeView },
          { label: 'Changes', cell: (entry) => changesView(entry, words.titles) },
        ],
      })}
    </div>`;
}

/** The sentence of each entry, with a link to what it is about. */
export async function describeEntries(
  entries: readonly AuditEntry[],
  words: AuditWords,
  page: PageContext<unknown>,
): Promise<ReadonlyMap<AuditEntry, Html>> {
  const names = await namesOf(entries, words);
  const describe = (entry: AuditEntry) =>
    whatView(entry, words.titles.sentenceOf(entry), nameOf(entry, names), page);
  return new Map(entries.map((entry) => [entry, describe(entry)]));
}

type Names = ReadonlyMap<string, string>;

async function namesOf(entries: readonly AuditEntry[], { names }: AuditWords): Promise<Names> {
  const targets = [...new Set(entries.flatMap(({ target }) => target ?? []))];
  const found = await Promise.all(
    targets.map(async (target) => [target, await names.nameOf(target)] as const),
  );
  return new Map(found.flatMap(([target, name]) => (name === undefined ? [] : [[target, name]])));
}

function actorView({ user, key, address }: AuditEntry, { here }: PageContext<unknown>): Html {
  return html`${
    user === null
      ? renderMissing(address === null ? 'the server' : 'unknown user')
      : html`<a href="${here()}?${new URLSearchParams({ user }).toString()}">${user}</a>`
  }${key !== null && html` with <bdi title="${key}">${key}</bdi>`}${address !== null && html` <span class="hint">${address}</span>`}`;
}

/** Why the server refuses a request with such a code. */
const reasons: Readonly<Record<number, string>> = {
  400: 'A field was wrong.',
  401: 'The password was wrong.',
  403: 'The role of the user, or a key, does not allow it.',
  404: 'There was nothing with this id.',
  409: 'The state of the system did not allow it.',
  413: 'The request was too large.',
  429: 'There were too many attempts.',
  503: 'The system was read-only, or busy.',
};

function outcomeView({ outcome, code, count }: AuditEntry): Html {
  const reason = code === null ? undefined : reasons[code];
  return html`<span class="state ${colours[outcome]}"${reason !== undefined && outcome !== 'success' && html` title="${reason}"`}>${outcome}</span>${
    outcome !== 'success' && code !== null && html` ${code}`
  }${count > 1 && html` <span class="hint">${count} times</span>`}`;
}

/** These have a page of their own, unless they were deleted meanwhile. */
const withPage = /^(services\/|uploads\/|system\/jobs\/|system\/upgrades|mode$)/;

/** What the entry concerns. The entries that create and delete something contain its name. */
function nameOf({ target, changes }: AuditEntry, names: Names): string | undefined {
  const named = changes.find(({ field }) => field === 'name');
  const name = (target === null ? undefined : names.get(target)) ?? named?.after ?? named?.before;
  return name === undefined ? undefined : String(name);
}

function whatView(
  { target }: AuditEntry,
  { before, after }: Sentence,
  name: string | undefined,
  { href }: PageContext<unknown>,
): Html {
  const label = name === undefined ? html`${before}` : html`<bdi>${name}</bdi>`;
  const isLinked = target !== null && withPage.test(target);
  const link = isLinked ? html`<a href="${href(...target.split('/'))}">${label}</a>` : label;
  return html`${name !== undefined && before} ${link}${after}`;
}

/** The labels of more fields than one, which unfold. */
function changesView({ operation, changes }: AuditEntry, { labelOf }: OperationTitles): Html {
  const [first, ...others] = changes;
  if (!first) return renderMissing('none');
  const lines = changes.map(
    ({ field, before, after }) =>
      html`<strong title="${field}">${labelOf(operation, field)}</strong>: ${valueText(field, before)} → ${valueText(field, after)}`,
  );
  const isShort = String(first.before).length + String(first.after).length <= 40;
  if (others.length === 0 && isShort) return html`${lines}`;
  return html`<details>
    <summary>${formatList(
      changes.map(({ field }) => labelOf(operation, field)),
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
  sentenceOf: (entry: AuditEntry) => Sentence;
  /** The label of a field in the form of the operation, or its name. */
  labelOf: (operation: string, field: string) => string;
  /** The operations whose titles contain the text, ignoring case. */
  find: (text: string) => readonly string[];
};

/** The tree contains the page of the audit trail, so it is read only when the page is shown. */
export function operationTitles(tree: () => Resource): OperationTitles {
  let read: { titles: Map<string, string>; fields: Map<string, Fields> } | undefined;
  const readTree = () => {
    const titles = new Map(Object.entries(otherTitles));
    const fields = new Map<string, Fields>();
    for (const entry of walk(tree())) {
      if (!entry.operation) continue;
      titles.set(entry.route, entry.operation.title);
      fields.set(entry.route, fieldsOf(entry));
    }
    return { titles, fields };
  };
  const words = () => (read ??= readTree());
  const titles = () => words().titles;
  return {
    sentenceOf: (entry) => sentenceOf(entry, titles().get(entry.operation) ?? entry.operation),
    labelOf: (operation, field) => {
      const known = words().fields.get(operation)?.[field];
      return known ? labelOf(field, metaOf(known)) : field;
    },
    find: (text) =>
      [...titles()].flatMap(([operation, title]) =>
        title.toLowerCase().includes(text.toLowerCase()) ? operation : [],
      ),
  };
}
