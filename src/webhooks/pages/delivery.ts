// The page of one delivery: its attempts with their responses, when the next one is due, and the request.
import { pageButton } from '../../console/action.ts';
import { renderAgo, renderTime } from '../../console/time.ts';
import { renderFacts } from '../../console/table.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { stateMeanings } from '../fields.rest.ts';
import { type Attempt, type Delivery, endOf, nextAttemptAt } from '../queue/delivery.ts';
import type { OutgoingRequest } from '../sending/http-client.ts';
import { webhookSettings } from '../settings.ts';
import { type Webhook, webhooks } from '../webhook.ts';
import { renderOutcome, renderSubject } from './deliveries.ts';
import { deliveryHref, formatAddress, formatHeaders, renderDeliveryState, webhookHref } from './parts.ts';
import { renderActivate } from './webhooks.ts';

/** A payload may have 256 KiB. */
const maxBodyShown = 32_768;

export function showDelivery(
  store: ReadableStore,
  requestOf: (delivery: Delivery) => OutgoingRequest,
): View<Delivery> {
  return (page) => {
    const { subject: delivery } = page;
    const webhook = store.get(webhooks, delivery.webhookId);
    const waiting = explainWaiting(store, delivery, page.now);
    const { webhookId, redeliveryOf, redeliveredAs } = delivery;
    const linkTo = (id: string | null, text: string) =>
      id !== null && html`<a href="${deliveryHref(page, { webhookId, id })}">${text}</a> `;
    return html`<div class="split even">
      <div id="delivery" data-live="2">
        <div class="lead-actions">
          <span role="status">${renderDeliveryState(delivery)} ${sentenceOf(delivery)}</span>
          ${waiting && html`<span>${waiting}</span>`} ${linkTo(redeliveryOf, 'Repeats an earlier delivery')}${linkTo(redeliveredAs, 'Was redelivered: show the newer delivery')}
          ${renderAction(page, webhook)}
        </div>
        <section aria-labelledby="attempts">
          <h2 id="attempts">${formatAttempts(delivery)}</h2>
          ${renderAttempts(delivery)}
        </section>
        <section aria-labelledby="event">
          <h2 id="event">Event</h2>
          ${renderFacts(factsOf(page, webhook))}
        </section>
      </div>
      ${renderRequest(delivery, requestOf(delivery))}
    </div>`;
  };
}

function formatAttempts({ state, attempts }: Delivery): string {
  if (attempts.length > 0) return formatCount(attempts.length, 'attempt');
  return state === 'pending' ? 'Not attempted yet' : 'Not attempted';
}

function sentenceOf({ state, attempts }: Delivery): string {
  switch (state) {
    case 'pending':
      return '';
    case 'delivered':
      return `The receiver accepted the event${attempts.length > 1 ? ` at attempt ${attempts.length}` : ''}.`;
    case 'failed':
      return attempts.length === 1 ? 'The attempt failed.' : `All ${attempts.length} attempts failed.`;
    case 'discarded':
    case 'missed':
      return stateMeanings[state];
  }
}

/** Undefined if the delivery has ended. */
function explainWaiting(store: ReadableStore, delivery: Delivery, now: number): Html | undefined {
  const at = nextAttemptAt(delivery, store.read(webhookSettings));
  if (at === null) return undefined;
  const number = delivery.attempts.length + 1;
  return at > now
    ? html`Attempt ${number} is due in ${formatDuration(at - now)}, at ${renderTime(at)}.`
    : html`Attempt ${number} is due or in progress.`;
}

function factsOf(page: PageContext<Delivery>, webhook: Webhook | undefined): [string, Html | string][] {
  const { subject: delivery, now } = page;
  const { webhookId, event, state, createdAt, endedAt, attempts } = delivery;
  const took = attempts.length > 0 && html`, after ${formatDuration((endedAt ?? now) - createdAt)}`;
  return [
    ['Webhook', html`<a href="${webhookHref(page, webhookId)}"><bdi>${webhook?.name}</bdi></a>`],
    ['Subject', renderSubject(event)],
    ['Event id', html`<code>${event.id}</code>`],
    ['Created', html`${renderTime(createdAt)}, ${renderAgo(createdAt, now)}`],
    ...(endedAt === null || state === 'missed'
      ? []
      : [['Ended', html`${renderTime(endedAt)}${took}`] as [string, Html]]),
  ];
}

/** The redelivery leads to the page of the new delivery. */
function renderAction(page: PageContext<Delivery>, webhook: Webhook | undefined): Html | false {
  const { subject: delivery, formToken } = page;
  const next = webhookHref(page, delivery.webhookId, 'deliveries', '{delivery}');
  if (formToken === '' || delivery.state === 'pending') return false;
  const action = `${deliveryHref(page, delivery)}/redeliver`;
  if (webhook?.active) return pageButton(page, { action, label: 'Redeliver', next });
  return html`<span>The webhook is not active: activate it to redeliver.</span> ${renderActivate(page, delivery.webhookId)}`;
}

/** The newest is first, and its response is open. */
function renderAttempts({ attempts, createdAt }: Delivery): Html | false {
  let before = createdAt;
  const entries = attempts.map((attempt, index) => {
    const waited = attempt.when - before;
    before = endOf(attempt);
    return html`<li id="attempt-${index + 1}">
      ${renderOutcome(attempt)}
      <p class="hint">${renderTime(attempt.when)}, ${index === 0 ? 'after' : 'waited'} ${formatDuration(waited)}</p>
      ${renderResponse(attempt, index + 1, index === attempts.length - 1)}
    </li> `;
  });
  return (
    entries.length > 0 &&
    html`<ol class="recent" reversed>
      ${entries.reverse()}
    </ol>`
  );
}

function renderResponse(
  { status, response, responseHeaders = {} }: Attempt,
  number: number,
  isOpen: boolean,
): Html | false {
  const headers = formatHeaders(responseHeaders);
  return (
    status !== null &&
    html`<details ${isOpen && 'open'}>
      <summary>Response<span class="unseen"> to attempt ${number}</span></summary>
      ${response ? html`<pre tabindex="0">${prettyJson(response)}</pre>` : html`<p class="none">It has no body.</p>`}
      ${headers !== '' && html`<pre tabindex="0">${headers}</pre>`}
    </details>`
  );
}

function renderRequest(delivery: Delivery, { url, headers, body }: OutgoingRequest): Html {
  const isForm = headers['content-type'] === 'application/x-www-form-urlencoded';
  const payload = prettyJson(isForm ? (new URLSearchParams(body).get('payload') ?? body) : body);
  const isCut = payload.length > maxBodyShown;
  return html`<section aria-labelledby="sent">
    <h2 id="sent">Request</h2>
    <p id="sent-when" data-live="2">${describeRequest(delivery)} <span class="address">POST ${formatAddress({ hookUrl: url })}</span></p>
    <h3>Headers</h3>
    <pre tabindex="0" data-copy id="sent-headers" data-live="2">${formatHeaders(headers)}</pre>
    <h3>Payload</h3>
    ${isForm && html`<p class="hint">Sent as the form field payload.</p>`}
    <pre tabindex="0" data-copy>${payload.slice(0, maxBodyShown)}${isCut && ' …'}</pre>
    ${isCut && html`<p class="hint">This is the beginning; <a href="?f=pjson">the JSON of this page</a> has all of it.</p>`}
  </section>`;
}

function describeRequest({ state, attempts }: Delivery): string {
  if (attempts.length > 0) return 'What the last attempt sent:';
  return state === 'pending' ? 'What the next attempt will send:' : 'What a redelivery would send:';
}

/** Text that is no JSON stays as it is. */
function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
