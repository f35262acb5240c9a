// The page of a list of webhooks: the health of each, worst first, and its newest deliveries.
import { serviceAtPath } from '../../catalog/catalog.ts';
import { actionButton } from '../../console/action.ts';
import { renderAgo } from '../../console/json.ts';
import { type Row, pageRange, renderPager, renderTable } from '../../console/table.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Delivery } from '../queue/delivery.ts';
import { webhookSettings } from '../settings.ts';
import { type Webhook, healths, listWebhooks } from '../webhook.ts';
import {
  type HealthView,
  compareHealth,
  explainHealth,
  formHref,
  formatReceiver,
  healthLabels,
  readWebhookHealth,
  renderDeliveryState,
  renderHealth,
  returnAddress,
  signInHint,
  webhookHref,
} from './parts.ts';
import { formatPolicy } from './settings.ts';
import { maxCharted, sparkline } from './sparkline.ts';

const maxReceiverLength = 48;

type ListedWebhook = { readonly webhook: Webhook; readonly view: HealthView };

export function showWebhooks<S>(store: ReadableStore, pathOf: (subject: S) => string | undefined): View<S> {
  return async (page) => {
    const all = await listByHealth(store, pathOf(page.subject), page.now);
    const asked = page.query.get('health');
    const listed = all.filter(({ view }) => !asked || view.health === asked);
    const range = pageRange(page.query, { usual: 50 });
    const rows: Row[] = [];
    const shown = listed.slice(range.start, range.start + range.num);
    for (const one of shown) rows.push(await rowOf(page, store, one));
    const columns = ['Webhook', 'Health', 'Recent deliveries', 'Events of', 'Actions'];
    const ids = shown.map(({ webhook }) => `webhook-${webhook.id}`);
    return html`<p class="lead-actions">
        <a class="button" href="${page.here('create')}">Create webhook</a>
        <a href="${page.href('services', 'webhooks', 'deliveries')}">Deliveries of all webhooks</a>
        <a href="${page.href('services', 'webhooks', 'settings')}">Settings</a>
      </p>
      ${signInHint(page)}
      <div id="webhooks" data-live="10">
        ${
          all.length === 0
            ? html`<p>There are no webhooks yet.</p>`
            : html`${renderHealthLinks(page, all)}
              ${listed.length > 0 && renderTable('Webhooks', columns, rows, ids)}`
        }
      </div>
      ${renderPager('Webhooks', range, listed.length, { keep: asked ? { health: asked } : {} })}
      <p class="hint">${formatPolicy(store.read(webhookSettings))}</p>`;
  };
}

async function listByHealth(
  store: ReadableStore,
  service: string | undefined,
  at: number,
): Promise<ListedWebhook[]> {
  const windows = await store.deliveries.failureWindows();
  const settings = store.read(webhookSettings);
  return listWebhooks(store, service)
    .map((webhook) => ({
      webhook,
      view: readWebhookHealth(webhook, windows.get(webhook.id) ?? null, settings, at),
    }))
    .sort((one, other) => compareHealth(one.view, other.view));
}

/** Links to the webhooks of each health, with their numbers. */
function renderHealthLinks({ here, query }: PageContext<unknown>, all: readonly ListedWebhook[]): Html {
  const asked = query.get('health') ?? '';
  const link = (health: string, label: string, count: number) =>
    asked === health
      ? html`<strong>${label} ${count}</strong>`
      : html`<a href="${here()}${health !== '' && `?health=${health}`}">${label} ${count}</a>`;
  const counts = healths
    .map((health) => ({ health, count: all.filter(({ view }) => view.health === health).length }))
    .filter(({ health, count }) => count > 0 || health === asked);
  return html`<p class="choices">
    ${link('', 'All', all.length)} ${counts.map(({ health, count }) => html`${link(health, healthLabels[health], count)} `)}
  </p>`;
}

async function rowOf(
  page: PageContext<unknown>,
  store: ReadableStore,
  { webhook, view }: ListedWebhook,
): Promise<Row> {
  const { deliveries: recent } = await store.deliveries.page({ webhookId: webhook.id }, 0, maxCharted);
  const [last] = recent;
  const ended = recent.find(({ state }) => state === 'delivered' || state === 'failed');
  const isUnreached = view.health === 'ok' && view.failures === 0 && ended?.state === 'failed';
  return [
    html`<a href="${webhookHref(page, webhook.id)}"><bdi>${webhook.name}</bdi></a
      ><br /><span class="address">${formatReceiver(webhook, maxReceiverLength)}</span>`,
    isUnreached
      ? html`<span class="state warn">Last delivery failed</span><br />Active${ended.isPing && ', it was a ping'}.`
      : html`${renderHealth(view)}<br />${explainHealth(webhook, view, page.now)}`,
    last
      ? html`${sparkline(recent)} ${renderLastDelivery(last, page.now)}`
      : html`<span class="none">No deliveries yet</span>`,
    renderService(page, store, webhook),
    renderRowActions(page, webhook),
  ];
}

export function renderService(page: PageContext<unknown>, store: ReadableStore, { service }: Webhook): Html {
  if (service === null) return html`The whole organization`;
  if (!serviceAtPath(store, service)) return html`${service} <span class="none">(deleted)</span>`;
  return html`<a href="${page.href('services', ...service.split('/'))}">${service}</a>`;
}

function renderLastDelivery(last: Delivery, now: number): Html {
  const error = last.attempts.at(-1)?.error;
  return html`${renderDeliveryState(last)} ${renderAgo(last.endedAt ?? last.createdAt, now)}
  ${error && html`<br /><span class="hint">${error}</span>`}`;
}

function renderRowActions(page: PageContext<unknown>, { id, name, active }: Webhook): Html {
  const deactivate = formHref(page, webhookHref(page, id, 'deactivate'));
  return html`<div class="actions">
    ${renderPing(page, id)} ${!active && renderActivate(page, id)}
    ${
      active &&
      html`<a class="destructive" href="${deactivate}" aria-label="Deactivate ${name}">Deactivate …</a>`
    }
  </div>`;
}

export function renderPing(page: PageContext<unknown>, id: string): Html | false {
  return actionOf(page, webhookHref(page, id, 'ping'), 'Ping');
}

export function renderActivate(page: PageContext<unknown>, id: string, isPrimary = false): Html | false {
  return actionOf(page, webhookHref(page, id, 'activate'), 'Activate', isPrimary);
}

function actionOf(
  page: PageContext<unknown>,
  action: string,
  label: string,
  isPrimary = false,
): Html | false {
  const { formToken, isReadOnly: isDisabled } = page;
  const next = returnAddress(page);
  return formToken !== '' && actionButton({ action, label, formToken, next, isPrimary, isDisabled });
}
