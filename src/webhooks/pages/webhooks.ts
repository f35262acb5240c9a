// The page of a list of webhooks: the health of each, worst first, and its newest deliveries.
import { serviceAtPath } from '../../catalog/catalog.ts';
import { formHref, linkButton, pageButton } from '../../console/action.ts';
import {
  type ListColumn,
  type ListParameters,
  listParameters,
  renderChips,
  renderEmpty,
  renderEntries,
  renderToolbar,
  selectEntries,
} from '../../console/list.ts';
import { compareNaturally, renderMenu, renderMissing } from '../../console/table.ts';
import { renderAgo } from '../../console/time.ts';
import { formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { boxName } from '../../rest/fields.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { maxWebhookIds } from '../fields.rest.ts';
import { countRecoverable, countUndelivered, readHealths } from '../queue/redelivery.ts';
import { type HealthView, type Webhook, healths } from '../webhook.ts';
import {
  compareHealth,
  formatReceiver,
  healthMarks,
  renderDeliveryState,
  renderHealth,
  summariseHealth,
  webhookHref,
} from './parts.ts';
import { readSparklines } from './history.ts';
import { formatBounded } from './recovery.ts';

const maxReceiverLength = 48;

/** `lastAt` is 0 for a webhook without deliveries, and if the list is sorted by something else. */
type ListedWebhook = HealthView & { readonly lastAt: number };

type WebhookOrder = 'health' | 'name' | 'last';

const byName = (one: ListedWebhook, other: ListedWebhook) =>
  compareNaturally(one.webhook.name, other.webhook.name);

const size = { usual: maxWebhookIds, most: maxWebhookIds };

/** The health is the usual order, the worst first. */
const selection = {
  textOf: ({ webhook: { name, hookUrl } }: ListedWebhook) => `${name} ${new URL(hookUrl).host}`,
  orders: {
    health: {
      compare: (one: ListedWebhook, other: ListedWebhook) => compareHealth(one, other) || byName(one, other),
    },
    name: { compare: byName },
    last: {
      compare: (one: ListedWebhook, other: ListedWebhook) => one.lastAt - other.lastAt,
      isDescending: true,
    },
  },
} as const;

export function showWebhooks(store: ReadableStore): View<unknown> {
  return async (page) => {
    const all = await readWebhooks(store, page);
    const filters = { health: ({ health }: ListedWebhook) => health };
    const list = selectEntries(all, page, { ...selection, filters, ...size });
    const { q: searchedFor = '', ...keep } = list.keep;
    const search = { ...page, query: new URLSearchParams({ q: searchedFor }) };
    const searched = selectEntries(all, search, { ...selection, usual: all.length, most: all.length });
    return html`${renderToolbar({
      action: page.here(),
      search: { label: 'Search name or host', value: searchedFor },
      keep,
      chips: renderHealthChips(searched.shown, list.keep),
      actions: linkButton(page, page.here('create'), 'Create webhook'),
    })}
      <div id="webhooks" data-live="10">
        ${renderEntries(page, list, {
          noun: 'webhook',
          columns: await columnsOf(page, store, list.shown),
          idOf: ({ webhook }) => `webhook-${webhook.id}`,
          empty: renderEmpty(
            'There are no webhooks yet. A webhook sends the events of services to an address.',
          ),
        })}
      </div>
      ${canSelect(page) && list.shown.length > 0 && renderBulk(page)}`;
  };
}

async function readWebhooks(
  store: ReadableStore,
  { query, now }: PageContext<unknown>,
): Promise<ListedWebhook[]> {
  const all = await readHealths(store, now);
  const ids = listParameters(query).sort === 'last' ? all.map(({ webhook }) => webhook.id) : [];
  const newest = await store.deliveries.newest(ids);
  return all.map((view) => ({ ...view, lastAt: newest.get(view.webhook.id)?.at ?? 0 }));
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
    .map((health) => ({ health, count: all.filter((one) => one.health === health).length }))
    .filter(({ health, count }) => count > 0 || health === asked);
  return html`<p class="chips" id="webhook-healths" data-live="10">
    ${renderChips([
      ...(all.length > 0 || asked !== '' ? [chip('', 'All', all.length)] : []),
      ...counts.map(({ health, count }) => chip(health, healthMarks[health].label, count)),
    ])}
  </p>`;
}

async function columnsOf(
  page: PageContext<unknown>,
  store: ReadableStore,
  shown: readonly ListedWebhook[],
): Promise<ListColumn<ListedWebhook, WebhookOrder>[]> {
  const ids = shown.map(({ webhook }) => webhook.id);
  const newest = await store.deliveries.newest(ids);
  const outcomes = await store.deliveries.lastOutcomes(ids);
  const listed = shown.map(({ webhook }) => webhook);
  const counts = await countUndelivered(store, listed, page.now);
  const recoverable = (await countRecoverable(store, listed, page.now)).counts;
  const sparkline = await readSparklines(store, listed, page.now);
  const undeliveredOf = ({ webhook }: ListedWebhook) => counts.get(webhook.id) ?? 0;
  const lastOf = ({ webhook }: ListedWebhook) => newest.get(webhook.id);
  return [
    {
      label: 'Webhook',
      sort: 'name',
      cell: ({ webhook }) => renderName(page, store, webhook),
      box: canSelect(page) && selectAll,
    },
    {
      label: 'Health',
      sort: 'health',
      cell: (view) => {
        const outcome = outcomes.get(view.webhook.id);
        return html`${renderHealth(view, outcome)} <span class="hint">${summariseHealth(view)}</span>`;
      },
    },
    {
      label: 'Not delivered',
      cell: (one) => {
        const undelivered = undeliveredOf(one);
        return undelivered > 0 ? html`${formatBounded(undelivered)}` : renderMissing();
      },
    },
    { label: '24 hours', cell: ({ webhook }) => sparkline(webhook) },
    {
      label: 'Last delivery',
      sort: 'last',
      cell: (one) => {
        const last = lastOf(one);
        if (!last) return renderMissing('No deliveries yet');
        const title = last.error !== null && html` title="${last.error}"`;
        return html`<span${title}>${renderDeliveryState(last)}</span> ${last.isPing && 'a ping,'} ${renderAgo(last.at, page.now)}`;
      },
    },
    {
      label: 'Actions',
      cell: (one) => renderRowMenu(page, one.webhook, recoverable.get(one.webhook.id) ?? 0),
    },
  ];
}

const selectAll = html`<input type="checkbox" form="bulk" data-select-all data-needs-script autocomplete="off" aria-label="Select all on this page" />`;

function renderName(page: PageContext<unknown>, store: ReadableStore, webhook: Webhook): Html {
  const { id, name, service } = webhook;
  const box = html`<input type="checkbox" form="bulk" name="${boxName('ids', id)}" aria-label="Select ${name}" />`;
  return html`${canSelect(page) && box}
    <a href="${webhookHref(page, id)}"><bdi>${name}</bdi></a>
    <span class="address">${formatReceiver(webhook, maxReceiverLength)}</span> ${service !== null && renderService(page, store, webhook)}`;
}

export function renderService(page: PageContext<unknown>, store: ReadableStore, { service }: Webhook): Html {
  if (service === null) return html`The whole organization`;
  if (!serviceAtPath(store, service)) return html`${service} <span class="none">(deleted)</span>`;
  return html`<a href="${page.href('services', ...service.split('/'))}">${service}</a>`;
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
    <input type="hidden" name="f" value="html" /><input type="hidden" name="next" value="${page.address}" />
    <input type="hidden" name="${boxName('ids')}" />
    ${ask('deactivateAll', 'Deactivate', 'quiet')} ${send('activateAll', 'Activate')}
    ${send('redeliver', 'Redeliver', 'Send again what the receivers did not get')} ${ask('delete', 'Delete', 'destructive')}
    <button type="reset" class="quiet">Clear</button>
  </form>`;
}

function renderRowMenu(page: PageContext<unknown>, webhook: Webhook, recoverable: number): Html | '' {
  const { id, name, active } = webhook;
  const deactivate = formHref(page, webhookHref(page, id, 'deactivate'));
  return renderMenu(id, name, [
    renderPing(page, id),
    !active && renderActivate(page, id),
    active &&
      recoverable > 0 &&
      pageButton(page, {
        action: webhookHref(page, id, 'redeliver'),
        label: `Redeliver ${formatBounded(recoverable)} not delivered`,
      }),
    html`<a href="${webhookHref(page, id, 'deliveries')}">Deliveries</a>`,
    linkButton(page, formHref(page, webhookHref(page, id, 'edit')), 'Edit', 'plain'),
    linkButton(page, formHref(page, webhookHref(page, id, 'rotateKey')), 'Rotate key …', 'plain'),
    active && linkButton(page, deactivate, 'Deactivate …', 'destructive'),
    linkButton(page, formHref(page, webhookHref(page, id, 'delete')), 'Delete …', 'destructive'),
  ]);
}

export function renderPing(page: PageContext<unknown>, id: string): Html | false {
  return pageButton(page, { action: webhookHref(page, id, 'ping'), label: 'Ping' });
}

export function renderActivate(page: PageContext<unknown>, id: string, isPrimary = false): Html | false {
  return pageButton(page, { action: webhookHref(page, id, 'activate'), label: 'Activate', isPrimary });
}
