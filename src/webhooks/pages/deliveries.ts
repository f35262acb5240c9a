// The pages of deliveries: of one webhook and of all, with filters, one line for each delivery.
import { actionButton } from '../../console/action.ts';
import { renderAgo } from '../../console/json.ts';
import {
  type Row,
  pageRange,
  renderEmpty,
  renderList,
  renderPager,
  renderToolbar,
} from '../../console/table.ts';
import { formatCount, formatDuration, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { readFields } from '../../rest/fields.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { filterFields, filterOf } from '../deliveries-fields.rest.ts';
import type { WebhookEvent } from '../event.ts';
import { type Attempt, type Delivery, nextAttemptAt } from '../queue/delivery.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { type Webhook, webhooks } from '../webhook.ts';
import { filterControls, givenFilter } from './filter.ts';
import { deliveryHref, renderDeliveryState, returnAddress, signInHint, webhookHref } from './parts.ts';
import { renderRedeliverMatching } from './recovery.ts';

export function showDeliveries<S>(
  store: ReadableStore,
  webhookIdOf: (subject: S) => string | undefined,
): View<S> {
  return async (page) => {
    const webhookId = webhookIdOf(page.subject);
    const webhook = webhookId === undefined ? undefined : store.get(webhooks, webhookId);
    const range = pageRange(page.query, { usual: 50 });
    const given = givenFilter(page);
    const isFiltered = Object.keys(given).length > 0;
    const filter = { ...filterOf(readFields(filterFields, given).values), webhookId };
    const { deliveries, total, isTotalExact } = await store.deliveries.page(filter, range.start, range.num);
    return html`${webhook && html`<p>To <a href="${webhookHref(page, webhook.id)}"><bdi>${webhook.name}</bdi></a>.</p>`}
      ${renderToolbar({
        action: page.here(),
        filters: filterControls(page, store),
        ...(isFiltered && { chips: html`<a href="${page.here()}">Remove the filters</a>` }),
      })} ${signInHint(page)} ${webhook?.active === false && activateFirst}
      <div id="deliveries" data-live="5">
        <div class="lead-actions">
          <strong>${!isTotalExact && 'More than '}${formatNumber(total)} ${total === 1 ? 'delivery' : 'deliveries'}</strong>
          ${await renderRedeliverMatching(page, store, filter, given)}
        </div>
        ${deliveries.length > 0 && renderDeliveries(page, store, deliveries, webhook)}
        ${total === 0 && (isFiltered ? renderEmpty('No delivery matches.') : renderEmpty('There are no deliveries yet. An event or a ping creates one.'))}
        ${renderPager('Deliveries', range, total, { keep: given })}
      </div>`;
  };
}

const activateFirst = html`<p class="notice">
  This webhook is not active. Only pings are sent to it; it misses all other events. Activate it to redeliver.
</p>`;

/** `webhook` is undefined for the deliveries of all webhooks. */
export function renderDeliveries(
  page: PageContext<unknown>,
  store: ReadableStore,
  deliveries: readonly Delivery[],
  webhook: Webhook | undefined,
): Html {
  const settings = store.read(webhookSettings);
  const columns = ['Event', 'Subject', ...(webhook ? [] : ['Webhook']), 'State', 'Response', 'Actions'];
  const rows = deliveries.map((delivery): Row => {
    const of = store.get(webhooks, delivery.webhookId);
    return [
      html`<a href="${deliveryHref(page, delivery)}">${delivery.event.type}</a>
        <span class="hint">${renderAgo(delivery.createdAt, page.now)}</span>`,
      renderSubject(delivery.event),
      ...(webhook
        ? []
        : [html`<a href="${webhookHref(page, delivery.webhookId)}"><bdi>${of?.name}</bdi></a>`]),
      renderDeliveryState(delivery),
      html`${renderLastAnswer(delivery, settings, page.now)} ${renderRedelivered(page, delivery)}`,
      renderRedeliver(page, of, delivery, returnAddress(page)) || '',
    ];
  });
  const ids = deliveries.map(({ id }) => `delivery-${id}`);
  return html`<div class="deliveries">${renderList('Deliveries', columns, rows, ids)}</div>`;
}

/** What the event is about: a service, a webhook, or the versions of an upgrade. */
export function renderSubject({ type, service, data }: WebhookEvent): Html {
  const subject = service ?? (/^(Webhook|Upgrade)[A-Z]/.test(type) ? subjectIn(data) : undefined);
  return subject === undefined ? html`<span class="none">–</span>` : html`<bdi>${subject}</bdi>`;
}

/** Anybody who may publish events may use these types, so the data may have any form. */
function subjectIn(data: string): string | undefined {
  const { webhookName, from, to } = JSON.parse(data) as Readonly<Record<string, unknown>>;
  if (typeof webhookName === 'string') return webhookName;
  return typeof from === 'string' && typeof to === 'string' ? `${from} → ${to}` : undefined;
}

function renderRedelivered(page: PageContext<unknown>, delivery: Delivery): Html | false {
  const { webhookId, redeliveredAs } = delivery;
  return (
    redeliveredAs !== null &&
    html`<a href="${deliveryHref(page, { webhookId, id: redeliveredAs })}">redelivered</a>`
  );
}

function renderLastAnswer(delivery: Delivery, settings: WebhookSettings, now: number): Html {
  const { attempts } = delivery;
  const last = attempts.at(-1);
  const tries =
    attempts.length > 1 && html` <span class="hint">${formatCount(attempts.length, 'attempt')}</span>`;
  const next = formatNextAttempt(delivery, settings, now);
  if (!last) return html`<span class="none">${next ?? 'Not sent'}</span>`;
  return html`${renderOutcome(last)}${tries}${next !== undefined && html` <span class="hint">${next}</span>`}`;
}

export function renderOutcome({ status, error, durationMs }: Attempt): Html {
  const took = html`<span class="hint">${formatDuration(durationMs)}</span>`;
  if (error === null) return html`<strong class="good">${status}</strong> ${took}`;
  return html`<span class="bad">${error}</span> ${took}`;
}

/** Undefined if the delivery has ended. */
function formatNextAttempt(delivery: Delivery, settings: WebhookSettings, now: number): string | undefined {
  const at = nextAttemptAt(delivery, settings);
  if (at === null) return undefined;
  return at <= now ? 'Waiting for its turn' : `Next attempt in ${formatDuration(at - now)}`;
}

/** Nothing for a delivery that is still pending, or whose webhook is inactive. */
export function renderRedeliver(
  { formToken, isReadOnly, ...page }: PageContext<unknown>,
  webhook: Webhook | undefined,
  delivery: Delivery,
  next: string,
): Html | false {
  return (
    formToken !== '' &&
    delivery.state !== 'pending' &&
    webhook?.active === true &&
    actionButton({
      action: `${deliveryHref(page, delivery)}/redeliver`,
      label: 'Redeliver',
      formToken,
      next,
      isDisabled: isReadOnly,
    })
  );
}
