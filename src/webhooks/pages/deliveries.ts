// The pages of deliveries: of one webhook and of all, with filters, one line for each delivery. The filters work
// without a script.
import { renderTimeInput } from '../../console/form.ts';
import { renderAgo } from '../../console/time.ts';
import {
  type ListParameters,
  type Option,
  type Row,
  compareNaturally,
  listParameters,
  pageRange,
  renderEmpty,
  renderList,
  renderPager,
  renderSelect,
  renderToolbar,
} from '../../console/table.ts';
import { formatCount, formatDuration, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import { readFields } from '../../rest/fields.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import { filterFields, filterOf, noStatus } from '../deliveries-fields.rest.ts';
import { eventTypeNames } from '../event-types.ts';
import type { WebhookEvent } from '../event.ts';
import { type Attempt, type Delivery, deliveryStates, nextAttemptAt } from '../queue/delivery.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { type Webhook, webhooks } from '../webhook.ts';
import {
  deliveryHref,
  renderDeliveryState,
  returnAddress,
  signInHint,
  webhookButton,
  webhookHref,
} from './parts.ts';
import { renderRedeliverMatching } from './recovery.ts';

export function showDeliveries<S>(
  store: ReadableStore,
  webhookIdOf: (subject: S) => string | undefined,
): View<S> {
  return async (page) => {
    const webhookId = webhookIdOf(page.subject);
    const webhook = webhookId === undefined ? undefined : store.get(webhooks, webhookId);
    const range = pageRange(page.query, { usual: 50 });
    const given = listParameters(page.query, Object.keys(filterFields));
    const isFiltered = Object.keys(given).length > 0;
    const filter = { ...filterOf(readFields(filterFields, given).values), webhookId };
    const { deliveries, total, isTotalExact } = await store.deliveries.page(filter, range.start, range.num);
    return html`${webhook && html`<p>To <a href="${webhookHref(page, webhook.id)}"><bdi>${webhook.name}</bdi></a>.</p>`}
      ${renderToolbar({ action: page.here(), filters: filterControls(given, store) })} ${signInHint(page)} ${webhook?.active === false && activateFirst}
      <div id="deliveries" data-live="5">
        <div class="lead-actions">
          <strong>${!isTotalExact && 'More than '}${formatNumber(total)} ${total === 1 ? 'delivery' : 'deliveries'}</strong>
          ${await renderRedeliverMatching(page, store, filter, given)}
          ${isFiltered && html`<a href="${page.here()}">Remove the filters</a>`}
        </div>
        ${deliveries.length > 0 && renderDeliveries(page, store, deliveries, webhook)}
        ${total === 0 && (isFiltered ? renderEmpty('No delivery matches.') : renderEmpty('There are no deliveries yet. An event or a ping creates one.'))}
        ${renderPager('Deliveries', range, total, { keep: given })}
      </div>`;
  };
}

function filterControls(given: ListParameters, store: Reader): Html[] {
  const { state, changeType, status, eventId = '' } = given;
  return [
    renderSelect('state', 'State', optionsOf('All states', deliveryStates, state), state),
    renderSelect(
      'changeType',
      'Event type',
      optionsOf('All event types', knownTypes(store), changeType),
      changeType,
    ),
    renderSelect('status', 'Response', optionsOf('All responses', statusClasses, status), status),
    html`<label class="unseen" for="filter-eventId">Event id</label>
      <input id="filter-eventId" name="eventId" value="${eventId}" maxlength="64" size="12" placeholder="Event id" />`,
    html`<div>${timeInput('from', 'From (UTC)', given)} ${timeInput('to', 'To (UTC)', given)}</div>`,
  ];
}

const statusClasses = ['2xx', '3xx', '4xx', '5xx', noStatus];

function timeInput(name: 'from' | 'to', label: string, given: ListParameters): Html {
  return html`<label for="filter-${name}">${label}</label>
    ${renderTimeInput(html`id="filter-${name}" name="${name}"`, given[name] ?? '')}`;
}

/** The types of the server, and others that webhooks subscribe to. */
export function knownTypes(store: Reader): string[] {
  const subscribed = [...store.all(webhooks)].flatMap(({ changeTypes }) => changeTypes);
  const others = new Set(subscribed.filter((type) => type !== '*' && !eventTypeNames.includes(type)));
  return [...eventTypeNames, ...Array.from(others).sort(compareNaturally)];
}

/** A given value that is not listed is offered too. */
function optionsOf(all: string, values: readonly string[], given: string | undefined): Option[] {
  const listed = given === undefined || values.includes(given) ? values : [...values, given];
  return [
    { value: '', label: all },
    ...listed.map((value) => ({
      value,
      label: value === noStatus ? 'No response' : value.split(',').join(', '),
    })),
  ];
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
  const { webhookName, operation, from, to } = JSON.parse(data) as Readonly<Record<string, unknown>>;
  if (typeof webhookName === 'string') return webhookName;
  if (typeof from !== 'string' || typeof to !== 'string') return undefined;
  return operation === 'rollback' ? `Rollback to ${to}` : `${from} → ${to}`;
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
  return html`${renderOutcome(last, true)}${tries}${next !== undefined && html` <span class="hint">${next}</span>`}`;
}

/** A list shows the status only; its title is the reason. */
export function renderOutcome({ status, error, durationMs }: Attempt, isShort = false): Html {
  const took = html`<span class="hint">${formatDuration(durationMs)}</span>`;
  if (error === null) return html`<strong class="good">${status}</strong> ${took}`;
  const words = isShort && status !== null ? html`<strong>${status}</strong>` : error;
  return html`<span class="bad" title="${error}">${words}</span> ${took}`;
}

/** Undefined if the delivery has ended. */
function formatNextAttempt(delivery: Delivery, settings: WebhookSettings, now: number): string | undefined {
  const at = nextAttemptAt(delivery, settings);
  if (at === null) return undefined;
  return at <= now ? 'Waiting for its turn' : `Next attempt in ${formatDuration(at - now)}`;
}

/** Nothing for a delivery that is still pending, or whose webhook is inactive. */
export function renderRedeliver(
  page: PageContext<unknown>,
  webhook: Webhook | undefined,
  delivery: Delivery,
  next: string,
): Html | false {
  if (delivery.state === 'pending' || !webhook?.active) return false;
  const action = `${deliveryHref(page, delivery)}/redeliver`;
  return webhookButton(page, { action, label: 'Redeliver', next });
}
