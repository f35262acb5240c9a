// The pages of webhooks: the lists, one webhook, and the settings in words.
import { serviceAtPath } from '../../catalog/catalog.ts';
import { formatAgo, formatCount } from '../../lib/format.ts';
import { actionButton } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import { type Row, pageRange, renderFacts, renderPager, renderTable } from '../../rest/html/table.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { Runtime } from '../../runtime.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Delivery } from '../delivery.ts';
import type { FailureWindow } from '../failure-window.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { type Health, type Webhook, listWebhooks, webhookToJson } from '../webhook.ts';
import {
  buttonsDisabledReason,
  renderDeliveries,
  renderDeliveryState,
  returnAddress,
  webhookHref,
} from './deliveries.ts';
import { maxCharted, outcomesView, sparkline } from './sparkline.ts';

const maxDeliveries = 25;
const maxReceiverLength = 48;

export function showWebhooks<S>(
  store: ReadableStore,
  runtime: Runtime,
  pathOf: (subject: S) => string | undefined,
): View<S> {
  return async (page) => {
    const listed = listWebhooks(store, pathOf(page.subject));
    const range = pageRange(page.query);
    const disabledReason = buttonsDisabledReason(page, store);
    const create = html`<a href="${page.here('create')}">Create a webhook</a>`;
    if (listed.length === 0) {
      return html`<p>There are no webhooks yet. ${!disabledReason && html`${create}.`}</p>
        ${disabledReason}`;
    }
    const windows = await store.deliveries.failureWindows();
    const rows: Row[] = [];
    for (const webhook of listed.slice(range.start, range.start + range.num)) {
      const { deliveries: recent } = await store.deliveries.page({ webhookId: webhook.id }, 0, maxCharted);
      const window = windows.get(webhook.id) ?? null;
      const pending = await store.deliveries.pendingOf(webhook.id);
      const actions = disabledReason
        ? html`<span class="none">–</span>`
        : html`${renderActions(page, webhook)} ${webhook.active && pending > 0 && discardHint(pending)}`;
      rows.push([...rowOf(page, store, { webhook, window, recent }, runtime.now()), actions]);
    }
    return html`<section aria-labelledby="webhooks">
      <h2 id="webhooks">${formatCount(listed.length, 'webhook')}</h2>
      <p>
        ${formatPolicy(store.read(webhookSettings))}
        <a href="${page.href('services', 'webhooks', 'settings')}">Change this policy</a>.
      </p>
      ${disabledReason}
      ${renderTable(
        'Webhooks',
        ['Webhook', 'Service', 'State', 'Failures', 'Recent deliveries', 'Actions'],
        rows,
      )}
      ${renderPager('Webhooks', range, listed.length)}
      ${!disabledReason && html`<p>${create}</p>`}
      <p><a href="${page.href('services', 'webhooks', 'deliveries')}">Deliveries of all webhooks</a></p>
    </section>`;
  };
}

type ListedWebhook = {
  readonly webhook: Webhook;
  readonly window: FailureWindow | null;
  readonly recent: readonly Delivery[];
};

function rowOf(
  page: PageContext<unknown>,
  store: ReadableStore,
  { webhook, window, recent }: ListedWebhook,
  at: number,
): Row {
  const [last] = recent;
  const settings = store.read(webhookSettings);
  const { failures, health } = webhookToJson(webhook, window, settings, at);
  return [
    html`<a href="${webhookHref(page, webhook.id)}">${webhook.name}</a
      ><br /><span class="address">${formatReceiver(webhook, maxReceiverLength)}</span>`,
    renderService(page, store, webhook),
    renderWebhookState(webhook, health),
    formatFailures(failures.count, settings),
    last
      ? html`${sparkline(recent)} ${renderLastDelivery(last, at)}`
      : html`<span class="none">Nothing sent yet</span>`,
  ];
}

/** Shows only host and path, because the rest of the URL may contain a secret. */
export function formatReceiver({ hookUrl }: Pick<Webhook, 'hookUrl'>, maxLength = Infinity): string {
  const { host, pathname, search } = new URL(hookUrl);
  const receiver = `${host}${pathname === '/' ? '' : pathname}`;
  if (receiver.length > maxLength) return `${receiver.slice(0, maxLength - 1)}…`;
  return search === '' ? receiver : `${receiver}?…`;
}

function renderService(page: PageContext<unknown>, store: ReadableStore, { service }: Webhook): Html {
  if (service === null) return html`The whole organization`;
  if (!serviceAtPath(store, service)) return html`${service} <span class="none">(deleted)</span>`;
  return html`<a href="${page.href('services', ...service.split('/'))}">${service}</a>`;
}

function renderWebhookState({ active, deactivatedBy, deactivatedAt }: Webhook, health: Health): Html {
  if (health === 'failing') return html`<span class="state warn">Failing</span>`;
  if (active) return html`<span class="state good">Active</span>`;
  const since = deactivatedAt !== null && renderTime(deactivatedAt);
  switch (deactivatedBy) {
    case 'failures':
      return html`<span class="state bad">Deactivated</span><br />after too many failures<br />${since}`;
    case 'administrator':
      return html`<span class="state warn">Deactivated</span><br />by an administrator<br />${since}`;
    case null:
      return html`<span class="state warn">Not active</span><br />since it was created`;
  }
}

function formatHeaderNames({ headers }: Webhook): Html | string {
  return headers.length === 0
    ? html`<span class="none">none of its own</span>`
    : headers.map(({ name }) => name).join(', ');
}

function formatFailures(count: number, settings: WebhookSettings): string {
  return `${count} of ${settings.numberOfFailures} within ${formatCount(settings.daysInPast, 'day')}`;
}

function renderLastDelivery(last: Delivery, at: number): Html {
  const since = last.endedAt ?? last.createdAt;
  const error = last.attempts.at(-1)?.error;
  return html`${renderDeliveryState(last)} ${renderTime(since)}<br />
    <span class="hint">${formatAgo(at - since)}${error && `: ${error}`}</span>`;
}

function renderActions(page: PageContext<unknown>, { id, active }: Webhook): Html {
  const button = (operation: string, label: string, isDestructive = false) =>
    actionButton({
      action: webhookHref(page, id, operation),
      label,
      isDestructive,
      formToken: page.formToken,
      next: returnAddress(page),
    });
  return html`<div class="actions">
    ${active ? button('deactivate', 'Deactivate', true) : button('activate', 'Activate')}
    ${button('ping', 'Ping')}
  </div>`;
}

export function showWebhook(store: ReadableStore, runtime: Runtime): View<Webhook> {
  return async (page) => {
    const { subject: webhook, here } = page;
    const filter = { webhookId: webhook.id };
    const { deliveries, total, isTotalExact } = await store.deliveries.page(filter, 0, maxDeliveries);
    const pending = await store.deliveries.pendingOf(webhook.id);
    const window = await store.deliveries.failureWindow(webhook.id);
    const disabledReason = buttonsDisabledReason(page, store);
    const rendered = { deliveries, webhook, hasButtons: !disabledReason };
    const changes = html`<p>
      <a href="${here('edit')}">Edit</a> · <a href="${here('rotateKey')}">Rotate its key</a> ·
      <a href="${here('delete')}">Delete</a>
    </p>`;
    return html`<section aria-labelledby="webhook">
        <h2 id="webhook">Details</h2>
        ${renderFacts(factsOf(page, store, window, runtime.now()))}
        ${disabledReason || html`${renderActions(page, webhook)} ${changes} ${pending > 0 && pendingHint(pending)}`}
      </section>
      <section aria-labelledby="recent">
        <h2 id="recent">Recent deliveries</h2>
        ${
          deliveries.length === 0
            ? html`<p>Nothing has been sent to this webhook yet.</p>`
            : html`${outcomesView(deliveries)} ${renderDeliveries(page, store, rendered)}`
        }
        ${
          total > deliveries.length &&
          html`<p><a href="${here('deliveries')}">${formatTotal(total, isTotalExact)}</a></p>`
        }
      </section>`;
  };
}

function formatTotal(total: number, isExact: boolean): string {
  return isExact ? `All ${formatCount(total, 'delivery')}` : `More than ${formatCount(total, 'delivery')}`;
}

function discardHint(pending: number): Html {
  return html`<span class="hint">Deactivating it discards ${formatCount(pending, 'pending delivery')}.</span>`;
}

function pendingHint(pending: number): Html {
  return html`<p class="hint">
    Deactivating the webhook discards ${formatCount(pending, 'pending delivery')}; deleting it
    deletes them.
  </p>`;
}

function factsOf(
  page: PageContext<Webhook>,
  store: ReadableStore,
  stored: FailureWindow | null,
  at: number,
): [string, Html | string][] {
  const { subject: webhook } = page;
  const settings = store.read(webhookSettings);
  const { failures, health, previousKeyUntil } = webhookToJson(webhook, stored, settings, at);
  const { windowStart, windowEnd } = failures;
  const window =
    windowStart !== null &&
    windowEnd !== null &&
    html`<span class="hint">, counted from ${renderTime(windowStart)} to ${renderTime(windowEnd)}</span>`;
  const facts: [string, Html | string][] = [
    ['State', renderWebhookState(webhook, health)],
    ['Receiver', html`<span class="address">${formatReceiver(webhook)}</span>`],
    ['Service', renderService(page, store, webhook)],
    ['Events', webhook.changeTypes.includes('*') ? 'All' : webhook.changeTypes.join(', ')],
    ['Content type', webhook.contentType],
    ['Headers', formatHeaderNames(webhook)],
    ['Failures', html`${formatFailures(failures.count, settings)}${window}`],
    ['Created', renderTime(webhook.createdAt)],
    ['Changed', renderTime(webhook.updatedAt)],
  ];
  if (previousKeyUntil !== null) {
    facts.push(['Previous key', html`signs until ${renderTime(previousKeyUntil)}`]);
  }
  return facts;
}

export function showSettings(store: ReadableStore): View<unknown> {
  return () => html`<p>${formatPolicy(store.read(webhookSettings))}</p>`;
}

export function formatPolicy(settings: WebhookSettings): string {
  const { notificationAttempts: attempts, numberOfFailures: failures } = settings;
  const { notificationElapsedTimeInSeconds: wait } = settings;
  const apart = wait === 0 ? 'without a wait' : `${formatCount(wait, 'second')} apart`;
  const timeout = formatCount(settings.notificationTimeOutInSeconds, 'second');
  const attempted = attempts === 1 ? 'once' : `up to ${attempts} times, ${apart}`;
  const days = formatCount(settings.daysInPast, 'day');
  const deactivation =
    failures === 1
      ? 'The first failed delivery deactivates a webhook.'
      : `${failures} failed deliveries within ${days} deactivate a webhook.`;
  return `Each event is tried ${attempted}; a receiver has ${timeout} to answer. ${deactivation}`;
}
