// Buttons that redeliver what a receiver did not get, or dismiss it.
import { pageButton } from '../../console/action.ts';
import { formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { stateMeanings } from '../fields.rest.ts';
import type { DeliveryFilter } from '../queue/delivery-filter.ts';
import { recoverableStates } from '../queue/delivery.ts';
import { countMatched, countUndelivered, listRedeliveries, undeliveredStates } from '../queue/redelivery.ts';
import { type Webhook, listWebhooks, maxUndelivered, webhooks } from '../webhook.ts';
import { webhookHref } from './parts.ts';

/** Of a count that ends beyond `maxUndelivered`. */
export function formatBounded(count: number): string {
  return count > maxUndelivered ? `${formatNumber(maxUndelivered)}+` : formatNumber(count);
}

export function formatEvents(count: number): string {
  return `${formatBounded(count)} ${count === 1 ? 'event' : 'events'}`;
}

/** One button for everything that was not delivered. What it consists of can be opened. */
export async function renderRecovery(
  page: PageContext<unknown>,
  store: ReadableStore,
  webhook: Webhook,
  undelivered: number,
): Promise<Html | false> {
  const isRunning = listRedeliveries(store, webhook.id).length > 0;
  if (undelivered === 0 && !isRunning) return false;
  const kinds: Html[] = [];
  let recoverable = 0;
  for (const state of undeliveredStates) {
    const count =
      (await countUndelivered(store, [webhook], page.now, { states: [state] })).get(webhook.id) ?? 0;
    if (state !== 'pending') recoverable += count;
    if (count > 0) kinds.push(html`<li>${formatBounded(count)}: ${stateMeanings[state]}</li> `);
  }
  const events = formatEvents(undelivered);
  const recover = !isRunning && recoverable > 0 && recoveryButton(page, webhook, recoverable);
  const dismiss = webhookHref(page, webhook.id, 'dismiss');
  return html`${isRunning && html`<p>A redelivery is running. The numbers below decrease as it proceeds.</p>`}
    ${
      undelivered > 0 &&
      html`${recover && html`<div class="actions">${recover}</div>`}
        <details>
          <summary>${events} not delivered</summary>
          <ul class="plain">${kinds}</ul>
          ${pageButton(page, { action: dismiss, label: `Dismiss ${events}` })}
        </details>`
    }`;
}

export function recoveryButton(
  page: PageContext<unknown>,
  { id, active }: Webhook,
  undelivered: number,
): Html | false {
  const events = formatEvents(undelivered);
  return pageButton(page, {
    action: webhookHref(page, id, active ? 'redeliver' : 'activate'),
    label: active ? `Redeliver ${events}` : `Activate and redeliver ${events}`,
    fields: active ? {} : { redeliver: 'true' },
    isPrimary: true,
  });
}

/** A button for the deliveries that match the filter of the page. */
export async function renderRedeliverMatching(
  page: PageContext<unknown>,
  store: ReadableStore,
  filter: DeliveryFilter,
  given: Readonly<Record<string, string>>,
): Promise<Html | false> {
  const states = (filter.states ?? recoverableStates).filter((state) => state !== 'pending');
  if (page.formToken === '' || states.length === 0) return false;
  const { webhookId } = filter;
  const ids = webhookId === undefined ? listWebhooks(store).map(({ id }) => id) : [webhookId];
  const request = { filter: { ...filter, states }, requestedAt: page.now, skipsDismissed: false };
  const { counts: matched } = await countMatched(store, ids, request, maxUndelivered);
  const active = [...matched].filter(([id]) => store.get(webhooks, id)?.active);
  const count = active.reduce((sum, [, number]) => sum + number, 0);
  const skipped = [...matched.values()].reduce((sum, number) => sum + number, 0) - count;
  const hint =
    skipped > 0 &&
    html`<span class="hint">${formatEvents(skipped)} not delivered to inactive webhooks. Activate a webhook to redeliver.</span>`;
  if (count === 0) return hint;
  const button = pageButton(page, {
    action:
      webhookId === undefined
        ? page.href('services', 'webhooks', 'redeliver')
        : webhookHref(page, webhookId, 'redeliver'),
    label: `Redeliver ${formatEvents(count)}`,
    fields: { ...given, state: states.join(',') },
  });
  return html`${button} ${hint}`;
}
