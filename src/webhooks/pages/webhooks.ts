// The page of a list of webhooks: the health of each, worst first, and its newest deliveries.
import { serviceAtPath } from '../../catalog/catalog.ts';
import { linkButton } from '../../console/action.ts';
import { renderAgo } from '../../console/time.ts';
import {
  type Column,
  type ListParameters,
  type Row,
  type Sorting,
  compareNaturally,
  listParameters,
  pageRange,
  renderChips,
  renderEmpty,
  renderList,
  renderMenu,
  renderPager,
  renderToolbar,
  sortBy,
  sortableColumn,
  sortingOf,
} from '../../console/table.ts';
import { formatCount, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { boxName } from '../../rest/fields.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { maxWebhookIds } from '../fields.rest.ts';
import type { DeliverySummary } from '../queue/delivery-queue.ts';
import { recoverableStates } from '../queue/delivery.ts';
import { webhookSettings } from '../settings.ts';
import { type Webhook, healths, listWebhooks } from '../webhook.ts';
import { maxSparks, sparkline } from './charts.ts';
import {
  type HealthView,
  compareHealth,
  formHref,
  formatReceiver,
  healthLabels,
  readWebhookHealth,
  renderDeliveryState,
  renderHealth,
  returnAddress,
  signInHint,
  summariseHealth,
  webhookButton,
  webhookHref,
} from './parts.ts';
import { formatPolicy } from './settings.ts';

const maxReceiverLength = 48;

/** `lastAt` is 0 for a webhook without deliveries, and if the list is sorted by something else. */
type ListedWebhook = { readonly webhook: Webhook; readonly view: HealthView; readonly lastAt: number };

/** The health is the usual order, the worst first. */
const orders = { health: 'ascending', name: 'ascending', last: 'descending' } as const;

type WebhookSorting = Sorting<keyof typeof orders>;

export function showWebhooks<S>(store: ReadableStore, pathOf: (subject: S) => string | undefined): View<S> {
  return async (page) => {
    const keep = listParameters(page.query, ['q', 'health', 'sort', 'order']);
    const sorting = sortingOf(page.query, orders);
    const searched = await searchWebhooks(store, page, pathOf(page.subject), sorting);
    const listed = searched.filter(({ view }) => !keep.health || view.health === keep.health);
    const range = pageRange(page.query, { usual: maxWebhookIds, most: maxWebhookIds });
    const shown = listed.slice(range.start, range.start + range.num);
    const { q: search = '', ...kept } = keep;
    return html`${renderToolbar({
      action: page.here(),
      search: { label: 'Search name or host', value: search },
      keep: kept,
      chips: renderHealthChips(searched, keep),
      count: html`<span id="webhook-count" data-live="10">${formatCount(listed.length, 'webhook')}</span>`,
      actions: linkButton(page, page.here('create'), 'Create webhook'),
    })}
      ${signInHint(page)}
      <div id="webhooks" data-live="10">
        ${listed.length === 0 ? renderNone(page, keep) : await renderRows(page, store, shown, columnsOf(sorting, keep, listed))}
        ${renderPager('Webhooks', range, listed.length, { keep })}
      </div>
      ${canSelect(page) && shown.length > 0 && renderBulk(page)}
      <p class="hint">${formatPolicy(store.read(webhookSettings))}</p>`;
  };
}

async function searchWebhooks(
  store: ReadableStore,
  { query, now }: PageContext<unknown>,
  service: string | undefined,
  sorting: WebhookSorting,
): Promise<ListedWebhook[]> {
  const windows = await store.deliveries.failureWindows();
  const settings = store.read(webhookSettings);
  const words = (query.get('q') ?? '').trim().toLowerCase();
  const named = listWebhooks(store, service).filter(({ name, hookUrl }) =>
    `${name} ${new URL(hookUrl).host}`.toLowerCase().includes(words),
  );
  const ids = sorting.key === 'last' ? named.map(({ id }) => id) : [];
  const newest = await store.deliveries.newest(ids, 1);
  const found = named.map((webhook) => {
    const [last] = newest.get(webhook.id) ?? [];
    return {
      webhook,
      view: readWebhookHealth(webhook, windows.get(webhook.id) ?? null, settings, now),
      lastAt: last ? lastChangeAt(last) : 0,
    };
  });
  const byName = (one: ListedWebhook, other: ListedWebhook) =>
    compareNaturally(one.webhook.name, other.webhook.name);
  return sortBy(found, sorting, {
    health: (one, other) => compareHealth(one.view, other.view) || byName(one, other),
    name: byName,
    last: (one, other) => one.lastAt - other.lastAt,
  });
}

function lastChangeAt({ endedAt, createdAt }: DeliverySummary): number {
  return endedAt ?? createdAt;
}

/** The scope only if there are several. */
function columnsOf(
  sorting: WebhookSorting,
  keep: ListParameters,
  listed: readonly ListedWebhook[],
): Column[] {
  return [
    sortableColumn('Webhook', 'name', sorting, keep),
    sortableColumn('Health', 'health', sorting, keep),
    'Recent deliveries',
    sortableColumn('Last delivery', 'last', sorting, keep),
    ...(listed.some(({ webhook }) => webhook.service !== null) ? ['Scope'] : []),
    'Actions',
  ];
}

async function renderRows(
  page: PageContext<unknown>,
  store: ReadableStore,
  shown: readonly ListedWebhook[],
  columns: readonly Column[],
): Promise<Html> {
  const undelivered = await store.deliveries.countMatched({ states: recoverableStates }, page.now);
  const ids = shown.map(({ webhook }) => webhook.id);
  const newest = await store.deliveries.newest(ids, maxSparks);
  const outcomes = await store.deliveries.lastOutcomes(ids);
  const rows = shown.map((one): Row => {
    const { id } = one.webhook;
    const cells = rowOf(page, one, {
      recent: newest.get(id) ?? [],
      outcome: outcomes.get(id),
      undelivered: undelivered.get(id) ?? 0,
    });
    return columns.includes('Scope')
      ? cells.toSpliced(-1, 0, renderService(page, store, one.webhook))
      : cells;
  });
  return renderList(
    'Webhooks',
    columns,
    rows,
    ids.map((id) => `webhook-${id}`),
  );
}

function renderNone({ here, isReadOnly }: PageContext<unknown>, { q, health }: ListParameters): Html {
  return q || health
    ? renderEmpty('No webhook matches.', { href: here(), label: 'Remove the filters' })
    : renderEmpty(
        'There are no webhooks yet. A webhook sends the events of services to an address.',
        isReadOnly ? undefined : { href: here('create'), label: 'Create the first webhook' },
      );
}

/** Links to the webhooks of each health, with their numbers. */
function renderHealthChips(
  all: readonly ListedWebhook[],
  { health: asked = '', ...keep }: ListParameters,
): Html {
  const chip = (health: string, label: string, count: number) => ({
    label: `${label} ${formatNumber(count)}`,
    href: `?${new URLSearchParams({ ...keep, ...(health !== '' && { health }) }).toString()}`,
    isCurrent: asked === health,
  });
  const counts = healths
    .map((health) => ({ health, count: all.filter(({ view }) => view.health === health).length }))
    .filter(({ health, count }) => count > 0 || health === asked);
  return html`<p class="chips" id="webhook-healths" data-live="10">
    ${renderChips([
      ...(all.length > 0 || asked !== '' ? [chip('', 'All', all.length)] : []),
      ...counts.map(({ health, count }) => chip(health, healthLabels[health], count)),
    ])}
  </p>`;
}

/** `undelivered` counts the deliveries that a redelivery can recover. */
type WebhookDeliveries = {
  readonly recent: readonly DeliverySummary[];
  readonly outcome: 'delivered' | 'failed' | undefined;
  readonly undelivered: number;
};

function rowOf(
  page: PageContext<unknown>,
  { webhook, view }: ListedWebhook,
  { recent, outcome, undelivered }: WebhookDeliveries,
): Row {
  const [last] = recent;
  const ended = recent.find(({ state }) => state === 'delivered' || state === 'failed');
  const ping = outcome === 'failed' && ended?.isPing ? 'a ping' : '';
  return [
    html`${
      canSelect(page) &&
      html`<input type="checkbox" form="bulk" name="${boxName('ids', webhook.id)}" aria-label="Select ${webhook.name}" />`
    }
      <a href="${webhookHref(page, webhook.id)}"><bdi>${webhook.name}</bdi></a>
      <span class="address">${formatReceiver(webhook, maxReceiverLength)}</span>`,
    html`${renderHealth(view, outcome)} <span class="hint">${summariseHealth(webhook, view) || ping}</span>`,
    last ? sparkline(recent) : html`<span class="none">No deliveries yet</span>`,
    last ? renderLastDelivery(last, page.now) : html`<span class="none">–</span>`,
    renderRowMenu(page, webhook, undelivered),
  ];
}

export function renderService(page: PageContext<unknown>, store: ReadableStore, { service }: Webhook): Html {
  if (service === null) return html`The whole organization`;
  if (!serviceAtPath(store, service)) return html`${service} <span class="none">(deleted)</span>`;
  return html`<a href="${page.href('services', ...service.split('/'))}">${service}</a>`;
}

function renderLastDelivery(last: DeliverySummary, now: number): Html {
  const { error } = last;
  return html`<span${error !== null && html` title="${error}"`}>${renderDeliveryState(last)}</span>
    ${renderAgo(lastChangeAt(last), now)}`;
}

function canSelect({ formToken, isReadOnly }: PageContext<unknown>): boolean {
  return formToken !== '' && !isReadOnly;
}

/**
 * The operations on the selected webhooks. Those that lose something lead to a page that asks first: its address must
 * not contain the token, so only a button that sends the form with POST adds it.
 */
function renderBulk(page: PageContext<unknown>): Html {
  const action = (operation: string) => page.href('services', 'webhooks', operation);
  const ask = (operation: string, label: string, style: string) =>
    html`<button class="${style}" formaction="${action(operation)}">${label} …</button>`;
  const send = (operation: string, label: string, title = '') =>
    html`<button class="quiet" formmethod="post" formaction="${action(operation)}" name="token" value="${page.formToken}"${title && html` title="${title}"`}
      >${label}</button
    >`;
  return html`<form id="bulk" class="bulk" method="get" autocomplete="off" aria-label="Selected webhooks">
    <input type="hidden" name="f" value="html" /><input type="hidden" name="next" value="${returnAddress(page)}" />
    <input type="hidden" name="${boxName('ids')}" />
    ${ask('deactivate', 'Deactivate', 'quiet')} ${send('activate', 'Activate')}
    ${send('redeliver', 'Redeliver', 'Send again what the receivers did not get')} ${ask('delete', 'Delete', 'destructive')}
    <button type="reset" class="quiet">Clear</button>
  </form>`;
}

function renderRowMenu(page: PageContext<unknown>, webhook: Webhook, undelivered: number): Html | '' {
  const { id, name, active } = webhook;
  const deactivate = formHref(page, webhookHref(page, id, 'deactivate'));
  return renderMenu(id, name, [
    renderPing(page, id),
    !active && renderActivate(page, id),
    active &&
      undelivered > 0 &&
      webhookButton(page, {
        action: webhookHref(page, id, 'redeliver'),
        label: `Redeliver ${formatNumber(undelivered)} not delivered`,
      }),
    html`<a href="${webhookHref(page, id, 'deliveries')}">Deliveries</a>`,
    html`<a href="${formHref(page, webhookHref(page, id, 'edit'))}">Edit</a>`,
    active && html`<a class="destructive" href="${deactivate}">Deactivate …</a>`,
  ]);
}

export function renderPing(page: PageContext<unknown>, id: string): Html | false {
  return webhookButton(page, { action: webhookHref(page, id, 'ping'), label: 'Ping' });
}

export function renderActivate(page: PageContext<unknown>, id: string, isPrimary = false): Html | false {
  return webhookButton(page, { action: webhookHref(page, id, 'activate'), label: 'Activate', isPrimary });
}
