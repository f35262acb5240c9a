// The pages of deliveries: of one webhook and of all, with filters, one line for each delivery. The filters work
// without a script.
import { renderTimeRange } from '../../console/form.ts';
import {
  type ListColumn,
  type ListParameters,
  allEntries,
  listParameters,
  pageRange,
  renderEmpty,
  renderEntries,
  renderSelect,
  renderToolbar,
} from '../../console/list.ts';
import { compareNaturally, renderMissing } from '../../console/table.ts';
import { renderAgo } from '../../console/time.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { readFields } from '../../rest/fields.ts';
import { truncate } from '../../lib/text.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { WebhookEvent } from '../event.ts';
import { filterFields, filterOf, noStatus } from '../fields.rest.ts';
import { type Attempt, type Delivery, deliveryStates, nextAttemptAt } from '../queue/delivery.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { type Webhook, webhooks } from '../webhook.ts';
import { deliveryHref, renderDeliveryState, stateMarks, webhookHref } from './parts.ts';
import { renderRedeliverMatching } from './recovery.ts';

export function showDeliveries<S>(
  store: ReadableStore,
  webhookIdOf: (subject: S) => string | undefined,
): View<S> {
  return async (page) => {
    const range = pageRange(page.query, { usual: 50 });
    const given = listParameters(page.query);
    const ofOne = webhookIdOf(page.subject);
    const webhookId = ofOne ?? given.webhookId;
    const webhook = ofOne === undefined ? undefined : store.get(webhooks, ofOne);
    const isFiltered = Object.keys(given).length > 0;
    const filter = { ...filterOf(readFields(filterFields, given).values), webhookId };
    const { deliveries, total, isTotalExact } = await store.deliveries.page(filter, range.start, range.num);
    return html`${webhook && html`<p>To <a href="${webhookHref(page, webhook.id)}"><bdi>${webhook.name}</bdi></a>.</p>`}
      ${renderToolbar({ action: page.here(), filters: filterControls(given, store, await store.deliveries.eventTypes(), webhook) })}
      <div id="deliveries" data-live="5">
        <div class="lead-actions">
          <strong>${!isTotalExact && 'More than '}${formatCount(total, isFiltered ? 'delivery' : 'kept delivery')}</strong>
          ${await renderRedeliverMatching(page, store, filter, given)}
          ${isFiltered && html`<a href="${page.here()}">Remove the filters</a>`}
        </div>
        <div class="deliveries">
          ${renderEntries(
            page,
            { shown: deliveries, total, range, keep: given },
            {
              ...deliveryList(page, store, webhook),
              empty: renderEmpty('There are no deliveries yet. An event or a ping creates one.'),
            },
          )}
        </div>
      </div>`;
  };
}

/** `webhook` is the one of the page. */
function filterControls(
  given: ListParameters,
  store: Reader,
  types: readonly string[],
  webhook: Webhook | undefined,
): Html[] {
  const { state, changeType, status, eventId = '', webhookId } = given;
  const states = deliveryStates.map((value) => ({ value, label: stateMarks[value].label }));
  const receivers = [...store.all(webhooks)]
    .map(({ id, name }) => ({ value: id, label: name }))
    .sort((one, other) => compareNaturally(one.label, other.label));
  return [
    renderSelect('state', 'State', 'All states', states, state),
    ...(webhook ? [] : [renderSelect('webhookId', 'Webhook', 'All webhooks', receivers, webhookId)]),
    renderSelect('changeType', 'Event type', 'All event types', types, changeType),
    renderSelect('status', 'Response', 'All responses', statusClasses, status),
    html`<label class="unseen" for="filter-eventId">Event id</label>
      <input id="filter-eventId" name="eventId" value="${eventId}" maxlength="64" size="12" placeholder="Event id" />`,
    renderTimeRange(given),
  ];
}

const statusClasses = ['2xx', '3xx', '4xx', '5xx', { value: noStatus, label: 'No response' }];

/** The deliveries on another page, without a toolbar and a pager. */
export function renderDeliveries(
  page: PageContext<unknown>,
  store: ReadableStore,
  deliveries: readonly Delivery[],
  webhook: Webhook,
): Html {
  return html`<div class="deliveries">${renderEntries(page, allEntries(deliveries), deliveryList(page, store, webhook))}</div>`;
}

/** `webhook` is undefined for the deliveries of all webhooks. */
function deliveryList(page: PageContext<unknown>, store: ReadableStore, webhook: Webhook | undefined) {
  const settings = store.read(webhookSettings);
  const webhookOf = ({ webhookId }: Delivery) => store.get(webhooks, webhookId);
  const columns: ListColumn<Delivery>[] = [
    {
      label: 'Event',
      cell: (one) => html`<a href="${deliveryHref(page, one)}">${one.event.type}</a>`,
    },
    { label: 'Created', cell: ({ createdAt }) => renderAgo(createdAt, page.now) },
    { label: 'Subject', cell: ({ event }) => renderSubject(event) },
    {
      label: 'Webhook',
      cell: (one) =>
        html`<a href="${webhookHref(page, one.webhookId)}"><bdi>${webhookOf(one)?.name}</bdi></a>`,
    },
    { label: 'State', cell: renderDeliveryState },
    {
      label: 'Response',
      cell: (one) => {
        const { webhookId, redeliveredAs: id } = one;
        const link = id !== null && html`<a href="${deliveryHref(page, { webhookId, id })}">redelivered</a>`;
        return html`${renderLastAnswer(one, settings, page.now)} ${link}`;
      },
    },
  ];
  return {
    noun: 'delivery',
    columns: columns.filter(({ label }) => !webhook || label !== 'Webhook'),
    idOf: ({ id }: Delivery) => `delivery-${id}`,
  };
}

const maxDataShown = 120;

/** What the event is about: a service, a webhook, the versions of an upgrade, or else how its data begins. */
export function renderSubject({ type, service, data }: WebhookEvent): Html {
  const subject = service ?? (/^(Webhook|Upgrade)[A-Z]/.test(type) ? subjectIn(data) : undefined);
  return subject === undefined
    ? html`<code class="hint">${truncate(data, maxDataShown)}</code>`
    : html`<bdi>${subject}</bdi>`;
}

/** Anybody who may publish events may use these types, so the data may have any form. */
function subjectIn(data: string): string | undefined {
  const { webhookName, operation, from, to } = JSON.parse(data) as Readonly<Record<string, unknown>>;
  if (typeof webhookName === 'string') return webhookName;
  if (typeof from !== 'string' || typeof to !== 'string') return undefined;
  return operation === 'rollback' ? `Rollback to ${to}` : `${from} → ${to}`;
}

function renderLastAnswer(delivery: Delivery, settings: WebhookSettings, now: number): Html {
  const { attempts } = delivery;
  const last = attempts.at(-1);
  const tries =
    attempts.length > 1 && html` <span class="hint">${formatCount(attempts.length, 'attempt')}</span>`;
  const at = nextAttemptAt(delivery, settings);
  const next = at !== null && (at <= now ? 'Waiting' : `Next attempt in ${formatDuration(at - now)}`);
  if (!last) return renderMissing(next || undefined);
  return html`${renderOutcome(last, true)}${tries}${next && html` <span class="hint">${next}</span>`}`;
}

/** A list shows the status only; its title is the reason. */
export function renderOutcome({ status, error, durationMs }: Attempt, isShort = false): Html {
  const took = html`<span class="hint">${formatDuration(durationMs)}</span>`;
  if (error === null) return html`<strong class="good">${status}</strong> ${took}`;
  const words = isShort && status !== null ? html`<strong>${status}</strong>` : error;
  return html`<span class="bad" title="${error}">${words}</span> ${took}`;
}
