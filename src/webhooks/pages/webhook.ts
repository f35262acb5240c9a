// The page of one webhook: its health, what can be redelivered, charts, its newest deliveries, and its details.
import { renderAgo, renderTime } from '../../console/json.ts';
import { renderFacts, renderToolbar } from '../../console/table.ts';
import { formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Delivery } from '../queue/delivery.ts';
import { webhookSettings } from '../settings.ts';
import { type Webhook, previousKeyUntil } from '../webhook.ts';
import { maxCharted, renderCharts } from './charts.ts';
import { renderDeliveries } from './deliveries.ts';
import { filterControls } from './filter.ts';
import {
  type HealthView,
  explainHealth,
  formHref,
  formatReceiver,
  healthColours,
  readWebhookHealth,
  renderHealth,
  signInHint,
} from './parts.ts';
import { renderRecovery } from './recovery.ts';
import { renderActivate, renderPing, renderService } from './webhooks.ts';

const maxListed = 10;

export function showWebhook(store: ReadableStore): View<Webhook> {
  return async (page) => {
    const { subject: webhook, here, now } = page;
    const filter = { webhookId: webhook.id };
    const { deliveries, total, isTotalExact } = await store.deliveries.page(filter, 0, maxCharted);
    const window = await store.deliveries.failureWindow(webhook.id);
    const view = readWebhookHealth(webhook, window, store.read(webhookSettings), now);
    const listed = deliveries.slice(0, maxListed);
    const last = deliveries.find(({ state }) => state === 'delivered' || state === 'failed');
    const failed = webhook.active && last?.state === 'failed' ? last : undefined;
    return html`${healthPanel(page, view, failed, await renderRecovery(page, store, webhook))}
      ${renderActions(page)}
      ${signInHint(page)}
      <section aria-labelledby="recent">
        <h2 id="recent">Deliveries</h2>
        <div id="charts" data-live="5">
          ${deliveries.length === 0 ? html`<p>There are no deliveries yet.</p>` : renderCharts(deliveries, now)}
        </div>
        ${deliveries.length > 0 && renderToolbar({ action: here('deliveries'), filters: filterControls(page, store) })}
        <div id="newest" data-live="5">
          ${listed.length > 0 && renderDeliveries(page, store, listed, webhook)}
          ${
            total > listed.length &&
            html`<p>
              <a href="${here('deliveries')}">${isTotalExact ? 'All' : 'More than'} ${formatNumber(total)} deliveries</a>
            </p>`
          }
        </div>
      </section>
      <section aria-labelledby="details">
        <h2 id="details">Details</h2>
        ${renderFacts(factsOf(page, store))}
      </section>`;
  };
}

/** `failed` is the newest ended delivery, if it has failed. */
function healthPanel(
  { subject: webhook, now }: PageContext<Webhook>,
  view: HealthView,
  failed: Delivery | undefined,
  recovery: Html | false,
): Html {
  if (!failed || view.health !== 'ok') {
    return html`<div class="health ${healthColours[view.health]}" id="health" data-live="5">
      <p>${renderHealth(view)} ${explainHealth(webhook, view, now)}</p>
      ${recovery}
    </div>`;
  }
  return html`<div class="health warn" id="health" data-live="5">
    <p><strong>The last delivery failed.</strong> ${failed.attempts.at(-1)?.error}</p>
    <p class="reason">${explainFailure(failed, view) ?? explainHealth(webhook, view, now)}</p>
    ${recovery}
  </div>`;
}

/** Why a failure is not among those that are counted. */
function explainFailure({ isPing }: Delivery, { failures }: HealthView): string | undefined {
  if (failures > 0) return undefined;
  return isPing
    ? 'It was a ping, which does not count towards the deactivation of the webhook.'
    : 'It failed before the webhook was activated, or in a failure window that has ended. Counting starts again at 0.';
}

function renderActions(page: PageContext<Webhook>): Html {
  const { subject: webhook, here, href } = page;
  const list = href('services', 'webhooks');
  return html`<div class="actions" id="actions" data-live="5">
    ${!webhook.active && renderActivate(page, webhook.id, true)} ${renderPing(page, webhook.id)}
    <a href="${formHref(page, here('edit'))}">Edit</a>
    <a href="${here('rotateKey')}">Rotate key …</a>
    ${webhook.active && html`<a class="destructive" href="${formHref(page, here('deactivate'))}">Deactivate …</a>`}
    <a class="destructive" href="${formHref(page, here('delete'), list)}">Delete …</a>
  </div>`;
}

function factsOf(page: PageContext<Webhook>, store: ReadableStore): [string, Html | string][] {
  const { subject: webhook, now } = page;
  const until = previousKeyUntil(webhook, now);
  return [
    ['Receiver', html`<span class="address">${formatReceiver(webhook)}</span>`],
    ['Events', webhook.changeTypes.includes('*') ? 'All' : webhook.changeTypes.join(', ')],
    ['Events of', renderService(page, store, webhook)],
    ['Content type', webhook.contentType],
    ['Custom headers', formatHeaderNames(webhook)],
    ['Created', renderAgo(webhook.createdAt, now)],
    ['Changed', renderAgo(webhook.updatedAt, now)],
    ...(until === null
      ? []
      : [['Previous key', html`Signs too until ${renderTime(until)}`] as [string, Html]]),
  ];
}

function formatHeaderNames({ headers }: Webhook): Html | string {
  return headers.length === 0
    ? html`<span class="none">none</span>`
    : headers.map(({ name }) => name).join(', ');
}
