// Buttons that redeliver what a receiver did not get: how many deliveries failed, were discarded or were missed,
// and since when.
import { pageButton } from '../../console/action.ts';
import { formatTime } from '../../console/time.ts';
import { formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { DeliveryFilter } from '../queue/delivery-filter.ts';
import { type DeliveryState, isRecoverable, recoverableStates } from '../queue/delivery.ts';
import { countMatched, countUndelivered, listRedeliveries } from '../queue/redelivery.ts';
import { type Webhook, listWebhooks, maxUndelivered, webhooks } from '../webhook.ts';
import { webhookHref } from './parts.ts';
import { wasOrWere } from './sentences.ts';

/** Of a count that ends beyond `maxUndelivered`. */
export function formatBounded(count: number): string {
  return count > maxUndelivered ? `${formatNumber(maxUndelivered)}+` : formatNumber(count);
}

type Recoverable = { readonly state: DeliveryState; readonly count: number; readonly since: number };

function verbOf(state: DeliveryState, count: number): string {
  return state === 'failed' ? 'failed' : `${wasOrWere(count)} ${state}`;
}

export async function renderRecovery(
  page: PageContext<unknown>,
  store: ReadableStore,
  webhook: Webhook,
): Promise<Html | false> {
  const found: Recoverable[] = [];
  for (const state of recoverableStates) {
    const one = await findRecoverable(store, webhook, state, page.now);
    if (one) found.push(one);
  }
  const isRunning = listRedeliveries(store, webhook.id).length > 0;
  if (found.length === 0 && !isRunning) return false;
  return html`${isRunning && html`<p>A redelivery is running. The numbers below decrease as it proceeds.</p>`}
    ${found.map((one) => (webhook.active ? recoverButton(page, webhook, one) : describe(one, page.now)))}
    ${!webhook.active && html`<p>Activate the webhook to redeliver them.</p>`}`;
}

const maxRead = 100;

/** `since` is when the oldest of them was created. */
async function findRecoverable(
  store: ReadableStore,
  webhook: Webhook,
  state: DeliveryState,
  now: number,
): Promise<Recoverable | undefined> {
  const filter: DeliveryFilter = { webhookId: webhook.id, states: [state] };
  const count = (await countUndelivered(store, [webhook], now, { states: [state] })).get(webhook.id) ?? 0;
  if (count === 0) return undefined;
  const { deliveries, total } = await store.deliveries.page(filter, 0, maxRead);
  const repeatable = deliveries.filter(
    (one) => isRecoverable(one) && (one.endedAt ?? 0) > (webhook.dismissedAt ?? -1),
  );
  const [oldest] =
    repeatable.length >= count || total <= maxRead
      ? repeatable.slice(-1)
      : (await store.deliveries.page(filter, total - 1, 1)).deliveries;
  return { state, count, since: oldest?.createdAt ?? 0 };
}

function recoverButton(page: PageContext<unknown>, { id }: Webhook, one: Recoverable): Html | false {
  const { state, since } = one;
  return pageButton(page, {
    action: webhookHref(page, id, 'redeliver'),
    label: `Redeliver ${formatRecoverable(one, page.now)}`,
    fields: { state, from: String(since) },
    isPrimary: state === 'failed',
  });
}

function describe({ count, state, since }: Recoverable, now: number): Html {
  return html`<p>${formatBounded(count)} ${count === 1 ? 'delivery' : 'deliveries'} ${verbOf(state, count)} since ${formatSince(since, now)}.</p>`;
}

/** `the 116 that failed since 03:13 UTC`. */
function formatRecoverable({ state, count, since }: Recoverable, now: number): string {
  const which = count === 1 ? 'the one' : `the ${formatBounded(count)}`;
  return `${which} that ${verbOf(state, count)} ${count === 1 ? 'at' : 'since'} ${formatSince(since, now)}`;
}

/** Without the date if it is today. */
function formatSince(at: number, now: number): string {
  const text = `${formatTime(at).slice(0, 16)} UTC`;
  return text.slice(0, 10) === formatTime(now).slice(0, 10) ? text.slice(11) : text;
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
  const request = { filter: { ...filter, states }, requestedAt: page.now };
  const matched = await countMatched(store, ids, request, maxUndelivered);
  const active = [...matched].filter(([id]) => store.get(webhooks, id)?.active);
  const count = active.reduce((sum, [, number]) => sum + number, 0);
  const skipped = [...matched.values()].reduce((sum, number) => sum + number, 0) - count;
  // The page of one webhook says that it is inactive.
  const hint =
    skipped > 0 &&
    webhookId === undefined &&
    html`<span class="hint">${formatBounded(skipped)} ${skipped === 1 ? 'delivery' : 'deliveries'} to inactive webhooks cannot be redelivered now.</span>`;
  if (count === 0) return hint;
  const button = pageButton(page, {
    action:
      webhookId === undefined
        ? page.href('services', 'webhooks', 'redeliver')
        : webhookHref(page, webhookId, 'redeliver'),
    label: `Redeliver ${count === 1 ? 'the one' : `the ${formatBounded(count)}`} that ${describeStates(states, count)}`,
    fields: { ...given, state: states.join(',') },
  });
  return html`${button} ${hint}`;
}

function describeStates(states: readonly DeliveryState[], count: number): string {
  if (states.length === recoverableStates.length) return `${wasOrWere(count)} not delivered`;
  return states.map((state) => verbOf(state, count)).join(' or ');
}
