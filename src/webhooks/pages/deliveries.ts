// The pages of deliveries: the lists of one webhook and of all, and one delivery with its attempts.
import { formatCount, formatDuration, formatNumber } from '../../lib/format.ts';
import { currentMode } from '../../mode/mode.ts';
import { readFields } from '../../rest/fields.ts';
import { actionButton } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import { type Row, pageRange, renderFacts, renderPager, renderTable } from '../../rest/html/table.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import { isJobRunning } from '../../upgrades/job-table.ts';
import { filterFields, filterOf } from '../deliveries.fields.ts';
import { type Attempt, type Delivery, deliveryStates, nextAttemptAt } from '../delivery.ts';
import type { OutgoingRequest } from '../http-client.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { type Webhook, webhooks } from '../webhook.ts';

const maxBodyShown = 4096;

const stateColours: Readonly<Record<Delivery['state'], string>> = {
  delivered: 'good',
  failed: 'bad',
  pending: '',
  discarded: 'warn',
  missed: 'warn',
};

export function renderDeliveryState({ state }: Delivery): Html {
  return html`<span class="state ${stateColours[state]}">${state}</span>`;
}

export function webhookHref(
  { href }: Pick<PageContext<unknown>, 'href'>,
  id: string,
  ...segments: string[]
): string {
  return href('services', 'webhooks', id, ...segments);
}

/** Leaves out other query parameters, because one may be a token. */
export function returnAddress({ here, query }: PageContext<unknown>): string {
  const kept = new URLSearchParams();
  for (const name of ['start', 'num', ...Object.keys(filterFields)])
    if (query.has(name)) kept.set(name, query.get(name) ?? '');
  return kept.size === 0 ? here() : `${here()}?${kept.toString()}`;
}

export function buttonsDisabledReason(
  { formToken, href }: PageContext<unknown>,
  store: Reader,
): Html | false {
  if (formToken === '') return html`<p class="hint">Sign in with this browser to get buttons here.</p>`;
  const { isReadOnly, reason, message } = currentMode(store, isJobRunning(store));
  const end =
    reason === 'upgrade'
      ? 'the upgrade job has ended'
      : html`<a href="${href('mode', 'update')}">read-only mode is turned off</a>`;
  return (
    isReadOnly &&
    html`<p class="notice">
      <strong>The system is read-only.</strong> ${message}<br />
      Webhooks cannot be changed or tested until ${end}.
    </p>`
  );
}

export type RenderedDeliveries = {
  readonly deliveries: readonly Delivery[];
  /** Undefined: the deliveries of all webhooks. */
  readonly webhook: Webhook | undefined;
  readonly hasButtons: boolean;
};

export function renderDeliveries(
  page: PageContext<unknown>,
  store: ReadableStore,
  { deliveries, webhook, hasButtons }: RenderedDeliveries,
): Html {
  const isPending = deliveries.some(({ state }) => state === 'pending');
  const settings = store.read(webhookSettings);
  return html`${hasButtons && webhook?.active === false && activateFirst}
    ${
      isPending &&
      html`<p>
        Some deliveries are pending. <a href="${returnAddress(page)}">Reload the page</a> to see their outcome.
      </p>`
    }
    ${renderTable(
      'Deliveries',
      ['Event', ...(webhook ? [] : ['Webhook']), 'State', 'Attempts', 'Actions'],
      deliveries.map((delivery): Row => {
        const { id, webhookId, event, createdAt, attempts } = delivery;
        const address = webhookHref(page, webhookId, 'deliveries', id);
        const of = store.get(webhooks, webhookId);
        return [
          html`<a href="${address}">${event.type}</a><br />${renderTime(createdAt)}`,
          ...(webhook ? [] : [html`<a href="${webhookHref(page, webhookId)}">${of?.name}</a>`]),
          html`${renderDeliveryState(delivery)} ${renderNextAttempt(delivery, settings)}
          ${delivery.redeliveredAs !== null && html`<br /><span class="hint">redelivered</span>`}`,
          attempts.length === 0
            ? html`<span class="none">none yet</span>`
            : html`<ol class="attempts">
                ${attempts.map((attempt) => html`<li>${renderAttempt(attempt)}</li> `)}
              </ol>`,
          hasButtons ? redeliverButton(page, of, address) : html`<span class="none">–</span>`,
        ];
      }),
    )}`;
}

const activateFirst = html`<p class="notice" id="activate-first">
  This webhook is not active. Only pings are sent to it; it misses all other events. Activate it to redeliver.
</p>`;

function redeliverButton(page: PageContext<unknown>, webhook: Webhook | undefined, address: string): Html {
  if (!webhook?.active) {
    return html`<button class="quiet" type="button" disabled aria-describedby="activate-first">
      Redeliver
    </button>`;
  }
  return actionButton({
    action: `${address}/redeliver`,
    label: 'Redeliver',
    formToken: page.formToken,
    next: returnAddress(page),
  });
}

function renderNextAttempt(delivery: Delivery, settings: WebhookSettings): Html | false {
  const at = nextAttemptAt(delivery, settings);
  const isWaiting = at !== null && delivery.attempts.length > 0;
  return isWaiting && html`<br /><span class="hint">next attempt<br />${renderTime(at)}</span>`;
}

function renderAttempt(attempt: Attempt): Html {
  return html`${renderTime(attempt.when)}, ${formatDuration(attempt.durationMs)}: ${renderOutcome(attempt)}
  ${renderAnswer(attempt)}`;
}

function renderOutcome({ status, error }: Attempt): Html {
  return error === null
    ? html`answered <strong class="good">${status}</strong>`
    : html`<span class="bad">${error}</span>`;
}

function renderAnswer({ response, responseHeaders = {} }: Attempt): Html | false {
  const answer = [formatHeaders(responseHeaders), response ?? ''].filter((part) => part !== '').join('\n\n');
  return (
    answer !== '' &&
    html`<details>
      <summary>Answer</summary>
      <pre tabindex="0">${answer}</pre>
    </details>`
  );
}

function formatHeaders(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

export function showDeliveries<S>(
  store: ReadableStore,
  webhookIdOf: (subject: S) => string | undefined,
): View<S> {
  return async (page) => {
    const webhookId = webhookIdOf(page.subject);
    const webhook = webhookId === undefined ? undefined : store.get(webhooks, webhookId);
    const range = pageRange(page.query, { usual: 25 });
    const disabledReason = buttonsDisabledReason(page, store);
    const given = Object.fromEntries([...page.query].filter(([name]) => name in filterFields));
    const filter = { ...filterOf(readFields(filterFields, given).values), webhookId };
    const { deliveries, total, isTotalExact } = await store.deliveries.page(filter, range.start, range.num);
    return html`<section aria-labelledby="deliveries">
      <h2 id="deliveries">
        ${webhook ? html`To <a href="${webhookHref(page, webhook.id)}">${webhook.name}</a>` : 'To all webhooks'}
      </h2>
      ${renderStateLinks(page, given)}
      ${!isTotalExact && html`<p class="hint">More than ${formatNumber(total)} deliveries match.</p>`}
      ${
        total === 0
          ? html`<p>No deliveries match.</p>`
          : html`${disabledReason}
            ${renderDeliveries(page, store, { deliveries, webhook, hasButtons: !disabledReason })}`
      }
      ${renderPager('Deliveries', range, total, { keep: given })}
      ${!disabledReason && renderRedeliverLink(page, webhook)}
    </section>`;
  };
}

/** Links to the deliveries in each state. The other filters stay. */
function renderStateLinks({ here }: PageContext<unknown>, given: Readonly<Record<string, string>>): Html {
  const link = (label: string, state: string) => {
    if ((given.state ?? '') === state) return html`<strong>${label}</strong>`;
    const { state: _state, ...others } = given;
    const query = new URLSearchParams(state === '' ? others : { ...others, state });
    return html`<a href="${here()}?${query.toString()}">${label}</a>`;
  };
  const links = [link('All', ''), ...deliveryStates.map((state) => link(state, state))];
  return html`<p>Show: ${links.map((one, index) => html`${index > 0 && ' · '}${one}`)}</p>`;
}

function renderRedeliverLink(page: PageContext<unknown>, webhook: Webhook | undefined): Html | false {
  if (webhook?.active === false) return false;
  const address = webhook
    ? webhookHref(page, webhook.id, 'redeliver')
    : page.href('services', 'webhooks', 'redeliver');
  return html`<p><a href="${address}">Redeliver all that failed, were discarded or were missed</a></p>`;
}

export function showDelivery(
  store: ReadableStore,
  requestOf: (delivery: Delivery) => OutgoingRequest,
): View<Delivery> {
  return (page) => {
    const { subject: delivery } = page;
    const { event, attempts } = delivery;
    const webhook = store.get(webhooks, delivery.webhookId);
    const disabledReason = buttonsDisabledReason(page, store);
    const { headers, body } = requestOf(delivery);
    return html`<section aria-labelledby="event">
        <h2 id="event">${event.type}</h2>
        ${renderFacts(factsOf(page, webhook, store.read(webhookSettings)))}
        ${
          disabledReason ||
          html`${webhook?.active === false && activateFirst}
          <div>${redeliverButton(page, webhook, page.here())}</div>`
        }
      </section>
      <section aria-labelledby="attempts">
        <h2 id="attempts">${formatCount(attempts.length, 'attempt')}</h2>
        ${attempts.length > 0 && renderAttempts(attempts)}
      </section>
      <section aria-labelledby="sent">
        <h2 id="sent">Request</h2>
        <p>${describeRequest(delivery)}</p>
        <pre tabindex="0">${formatHeaders(headers)}

${body.slice(0, maxBodyShown)}${body.length > maxBodyShown && ' …'}</pre>
      </section>`;
  };
}

function describeRequest({ state, attempts }: Delivery): string {
  if (attempts.length > 0) return 'What the last attempt sent.';
  return state === 'pending' ? 'What the next attempt will send.' : 'What a redelivery would send.';
}

function factsOf(
  page: PageContext<Delivery>,
  webhook: Webhook | undefined,
  settings: WebhookSettings,
): [string, Html | string][] {
  const { subject: delivery } = page;
  const { webhookId, event, createdAt, endedAt, redeliveryOf, redeliveredAs } = delivery;
  const linked = (name: string, id: string | null): [string, Html][] =>
    id === null ? [] : [[name, html`<a href="${webhookHref(page, webhookId, 'deliveries', id)}">${id}</a>`]];
  return [
    ['State', html`${renderDeliveryState(delivery)} ${renderNextAttempt(delivery, settings)}`],
    ['Webhook', html`<a href="${webhookHref(page, webhookId)}">${webhook?.name}</a>`],
    ['Service', event.service ?? html`<span class="none">none</span>`],
    ['Event id', html`<code>${event.id}</code>`],
    ['Stored', renderTime(createdAt)],
    ['Ended', endedAt === null ? html`<span class="none">not yet</span>` : renderTime(endedAt)],
    ...linked('Repeats', redeliveryOf),
    ...linked('Redelivered as', redeliveredAs),
  ];
}

function renderAttempts(attempts: readonly Attempt[]): Html {
  return renderTable(
    'Attempts',
    ['When', 'Took', 'Outcome', 'Answer'],
    attempts.map((attempt): Row => [
      renderTime(attempt.when),
      formatDuration(attempt.durationMs),
      renderOutcome(attempt),
      renderAnswer(attempt) || html`<span class="none">–</span>`,
    ]),
  );
}
