// The page of one webhook: at the left its health, what can be redelivered and its newest deliveries; at the right its
// receiver, events, key and retries.
import { formHref, linkButton } from '../../console/action.ts';
import { renderAgo, renderTime } from '../../console/time.ts';
import { renderFacts, renderMissing } from '../../console/table.ts';
import { formatDuration, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { type Delivery, endOf } from '../queue/delivery.ts';
import { countUndelivered } from '../queue/redelivery.ts';
import type { OutgoingRequest } from '../sending/http-client.ts';
import { webhookSettings } from '../settings.ts';
import { type Webhook, isDeactivated, previousKeyUntil, readHealth } from '../webhook.ts';
import { renderDeliveries } from './deliveries.ts';
import {
  deliveryHref,
  explainHealth,
  formatAddress,
  formatAnswer,
  formatHeaders,
  healthMarks,
  renderHealth,
} from './parts.ts';
import { renderHistory } from './history.ts';
import { renderRecovery } from './recovery.ts';
import { formatPolicy } from './settings.ts';
import { renderActivate, renderPing, renderService } from './webhooks.ts';

const maxListed = 10;

/** The last ping is looked for among so many. */
const maxRead = 100;

/** How long the page shows the result of a ping. */
const pingShownMs = 3_600_000;

export function showWebhook(
  store: ReadableStore,
  exampleFor: (webhook: Webhook) => OutgoingRequest,
): View<Webhook> {
  return async (page) => {
    const { subject: webhook, here, now } = page;
    const filter = { webhookId: webhook.id };
    const { deliveries, total, isTotalExact } = await store.deliveries.page(filter, 0, maxRead);
    const undelivered = (await countUndelivered(store, [webhook], now)).get(webhook.id) ?? 0;
    const view = readHealth(store, webhook, now, undelivered);
    const listed = deliveries.slice(0, maxListed);
    const ping = deliveries.find(({ isPing, createdAt }) => isPing && now - createdAt < pingShownMs);
    const outcome = (await store.deliveries.lastOutcomes([webhook.id])).get(webhook.id);
    const hasFailed = webhook.active ? outcome === 'failed' : isDeactivated(webhook);
    const failures =
      hasFailed && (await store.deliveries.page({ ...filter, states: ['failed'] }, 0, maxRead));
    // A ping does not deactivate a webhook.
    const failed = failures ? failures.deliveries.find(({ isPing }) => webhook.active || !isPing) : undefined;
    const colour = view.health !== 'ok' ? healthMarks[view.health].colour : outcomeColours[outcome ?? 'none'];
    return html`<div class="lead-actions" id="actions" data-live="5">
        ${!webhook.active && undelivered === 0 && renderActivate(page, webhook.id, true)} ${renderPing(page, webhook.id)}
        ${linkButton(page, formHref(page, here('edit')), 'Edit', 'plain')}
      </div>
      <div class="split side">
        <div>
          <div class="health ${colour}" id="health" data-live="${ping?.state === 'pending' ? 1 : 5}">
            <p>${renderHealth(view, outcome)} ${webhook.active && failed && view.failures === 0 ? doesNotCount(failed) : explainHealth(view, now)}</p>
            ${failed && failed.id !== ping?.id && renderResult(page, 'Last response', failed)} ${ping && renderResult(page, 'Last ping', ping)}
            ${await renderRecovery(page, store, webhook, undelivered)}
          </div>
          <div id="over-time" data-live="30">${await renderHistory(page, store, webhook)}</div>
          <section aria-labelledby="recent">
            <h2 id="recent">Deliveries</h2>
            <div id="newest" data-live="5">
              ${listed.length > 0 ? renderDeliveries(page, store, listed, webhook) : html`<p>There are no deliveries yet.</p>`}
              ${
                total > listed.length &&
                html`<p>
                  <a href="${here('deliveries')}">${isTotalExact ? 'All' : 'More than'} ${formatNumber(total)} kept deliveries</a>
                </p>`
              }
            </div>
          </section>
        </div>
        <div>${renderDetails(page, store)} ${renderExample(webhook, exampleFor(webhook))}</div>
      </div>`;
  };
}

function doesNotCount({ isPing }: Delivery): string {
  const why = isPing ? 'It was a ping, which does not count' : 'It no longer counts';
  return `${why} towards the deactivation of the webhook.`;
}

const outcomeColours = { delivered: 'good', failed: 'warn', none: 'busy' } as const;

/** What the receiver has answered to the last attempt. */
function renderResult(page: PageContext<Webhook>, label: string, delivery: Delivery): Html {
  const attempt = delivery.attempts.at(-1);
  const link = html`<a href="${deliveryHref(page, delivery)}">${label}</a>`;
  if (!attempt)
    return html`<p>
      ${link}: no response yet. <noscript>Reload this page to see it.</noscript>
    </p>`;
  const { status, durationMs } = attempt;
  const reason = formatAnswer(attempt);
  return html`<p>
    ${link}, ${renderAgo(endOf(attempt), page.now)}:
    <strong>${status ?? 'none'}</strong> after ${formatDuration(durationMs)}${reason === '' ? '.' : `: ${reason}`}
  </p>`;
}

/** In the words of those who write the receiver. */
function renderExample(webhook: Webhook, { headers, body }: OutgoingRequest): Html {
  const isForm = webhook.contentType === 'application/x-www-form-urlencoded';
  return html`<h2>What the receiver gets</h2>
    <p>
      A POST with ${isForm ? html`the form field <code>payload</code>, which is JSON` : 'JSON as its body'}. Read the bytes of the
      body before you decode them, check <code>webhook-signature</code> against them, and answer with a status from 200 to 299.
      An event that comes again has the same <code>webhook-id</code>.
    </p>
    <details>
      <summary>An example, as it is sent</summary>
      <pre tabindex="0" data-copy>POST ${formatAddress(webhook)}
${formatHeaders(headers)}

${body}</pre>
    </details>`;
}

function renderDetails(page: PageContext<Webhook>, store: ReadableStore): Html {
  const { subject: webhook, here, href, now } = page;
  const { protocol, search } = new URL(webhook.hookUrl);
  const until = previousKeyUntil(webhook, now);
  return html`<h2>Receiver</h2>
    <code class="address" ${search === '' && 'data-copy'}>${formatAddress(webhook)}</code>
    ${search !== '' && html`<p class="hint">The query may contain a secret. Edit shows it.</p>`}
    ${protocol !== 'https:' && html`<p class="notice">Not encrypted: the address is not https.</p>`}
    ${renderFacts([
      ['Events', webhook.changeTypes.includes('*') ? 'All' : webhook.changeTypes.join(', ')],
      ['Scope', renderService(page, store, webhook)],
      ['Content type', webhook.contentType],
      [
        'Body',
        webhook.bodyFormat === 'payload' ? 'The payload of the event alone' : 'Envelope with the payload',
      ],
      ['Custom headers', webhook.headers.map(({ name }) => name).join(', ') || renderMissing('none')],
      ['Created', renderAgo(webhook.createdAt, now)],
      ['Changed', renderAgo(webhook.updatedAt, now)],
    ])}
    <h2>Signature key</h2>
    <p>
      The key signs every delivery. ${until !== null && html`The previous key signs too until ${renderTime(until)}.`}
      ${linkButton(page, here('rotateKey'), 'Rotate key …', 'plain')}
    </p>
    <h2>Retries</h2>
    <p>
      ${formatPolicy(store.read(webhookSettings))}
      <a href="${href('services', 'webhooks', 'settings')}">Webhook settings</a>
    </p>
    <h2>Danger zone</h2>
    <div class="actions" id="danger" data-live="5">
      ${webhook.active && linkButton(page, formHref(page, here('deactivate')), 'Deactivate …', 'destructive')}
      ${linkButton(page, formHref(page, here('delete'), { next: href('services', 'webhooks') }), 'Delete …', 'destructive')}
    </div>`;
}
