// The pages of webhooks: how each has been doing, what may be done about it, and the policy in words (contract 5).
import { serviceAtPath } from '../../catalog/catalog.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import { actionButton } from '../../rest/html/form.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { renderTime } from '../../rest/html/json.ts';
import { type Row, renderFacts, renderPager, pageRange, renderTable } from '../../rest/html/table.ts';
import type { Store } from '../../store/store.ts';
import { formatAgo, formatCount } from '../../lib/format.ts';
import type { Runtime } from '../../runtime.ts';
import { addressOfWebhook, comeBack, deliveriesTable, deliveryState, whyNoButtons } from './deliveries.ts';
import { type Delivery, deliveries } from '../delivery.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { mostPictured, outcomesView, sparkline } from './sparkline.ts';
import { type Webhook, webhookToJson, listWebhooks } from '../webhook.ts';

const mostDeliveries = 25;
const mostAddress = 48;

/** The view of a list of webhooks: of all, or of those of one service. */
export function showWebhooks<S>(
  store: Store,
  runtime: Runtime,
  pathOf: (subject: S) => string | undefined,
): View<S> {
  return async (shown) => {
    const listed = listWebhooks(store, pathOf(shown.subject));
    const part = pageRange(shown.query);
    const disabledReason = whyNoButtons(shown, store);
    const rows: Row[] = [];
    for (const webhook of listed.slice(part.start, part.start + part.num)) {
      const recent = (await store.page(deliveries, webhook.id, 0, mostPictured)).rows;
      const actions = disabledReason ? html`<span class="none">–</span>` : actionsOf(shown, webhook);
      rows.push([...rowOf(shown, store, webhook, recent, runtime.now()), actions]);
    }
    const create = html`<a href="${shown.here('create')}">Create a webhook</a>`;
    const policy = html`${formatPolicy(store.read(webhookSettings))}
      <a href="${shown.href('services', 'webhooks', 'settings')}">Change this policy</a>.`;
    if (listed.length === 0) {
      return html`<p>Nobody is told anything yet. ${!disabledReason && html`${create}.`}</p>
        ${disabledReason}`;
    }
    return html`<section aria-labelledby="webhooks">
      <h2 id="webhooks">${formatCount(listed.length, 'webhook')}</h2>
      <p>${policy}</p>
      ${disabledReason}
      ${renderTable(
        'Webhooks',
        ['Webhook', 'Told about', 'State', 'Failures', 'Recent deliveries', 'Actions'],
        rows,
      )}
      ${renderPager('Webhooks', part, listed.length)}
      ${!disabledReason && html`<p>${create}</p>`}
    </section>`;
  };
}

function rowOf(
  shown: PageContext<unknown>,
  store: Store,
  webhook: Webhook,
  recent: readonly Delivery[],
  at: number,
): Row {
  const settings = store.read(webhookSettings);
  const [last] = recent;
  return [
    html`<a href="${addressOfWebhook(shown, webhook.id)}">${webhook.name}</a
      ><br /><span class="address">${destinationOf(webhook, mostAddress)}</span>`,
    concernOf(shown, store, webhook),
    stateOf(webhook),
    failuresOf(webhook, settings, at),
    last ? html`${sparkline(recent)} ${lastOf(last, at)}` : html`<span class="none">Nothing sent yet</span>`,
  ];
}

/** Host and path: what follows them may be somebody's secret. */
export function destinationOf({ hookUrl }: Pick<Webhook, 'hookUrl'>, most = Infinity): string {
  const { host, pathname, search } = new URL(hookUrl);
  const whole = `${host}${pathname === '/' ? '' : pathname}`;
  if (whole.length > most) return `${whole.slice(0, most - 1)}…`;
  return search === '' ? whole : `${whole}?…`;
}

function concernOf(shown: PageContext<unknown>, store: Store, { service }: Webhook): Html {
  if (service === null) return html`The whole organization`;
  if (!serviceAtPath(store, service)) return html`${service} <span class="none">(deleted)</span>`;
  return html`<a href="${shown.href('services', ...service.split('/'))}">${service}</a>`;
}

function stateOf({ active, deactivatedBy, deactivatedAt }: Webhook): Html {
  if (active) return html`<span class="state good">Active</span>`;
  const since = deactivatedAt !== null && renderTime(deactivatedAt);
  switch (deactivatedBy) {
    case 'failures':
      return html`<span class="state bad">Deactivated</span><br />for its failures<br />${since}`;
    case 'administrator':
      return html`<span class="state warn">Deactivated</span><br />by an administrator<br />${since}`;
    case null:
      return html`<span class="state warn">Not active</span><br />since it was created`;
  }
}

function failuresOf(webhook: Webhook, settings: WebhookSettings, at: number): Html {
  const { count } = webhookToJson(webhook, settings, at).failures;
  return html`${count} of ${settings.numberOfFailures} within ${formatCount(settings.daysInPast, 'day')}`;
}

function lastOf(last: Delivery, at: number): Html {
  const since = last.endedAt ?? last.createdAt;
  const error = last.attempts.at(-1)?.error;
  return html`${deliveryState(last)} ${renderTime(since)}<br />
    <span class="hint">${formatAgo(at - since)}${error && `: ${error}`}</span>`;
}

function actionsOf(shown: PageContext<unknown>, { id, active }: Webhook): Html {
  const { formToken } = shown;
  const button = (operation: string, label: string, isDestructive = false) =>
    actionButton({
      action: addressOfWebhook(shown, id, operation),
      label,
      isDestructive,
      formToken,
      next: comeBack(shown),
    });
  return html`<div class="actions">
    ${active ? button('deactivate', 'Deactivate', true) : button('activate', 'Activate')}
    ${button('ping', 'Ping')}
  </div>`;
}

/** The view of one webhook. */
export function showWebhook(store: Store, runtime: Runtime): View<Webhook> {
  return async (shown) => {
    const { subject: webhook, here } = shown;
    const settings = store.read(webhookSettings);
    const { rows, total } = await store.page(deliveries, webhook.id, 0, mostDeliveries);
    const told = webhookToJson(webhook, settings, runtime.now());
    const { windowStart, windowEnd } = told.failures;
    const window =
      windowStart !== null &&
      windowEnd !== null &&
      html`<span class="hint">, counted from ${renderTime(windowStart)} to ${renderTime(windowEnd)}</span>`;
    const events = webhook.changeTypes.includes('*') ? 'All' : webhook.changeTypes.join(', ');
    const facts: [string, Html | string][] = [
      ['State', stateOf(webhook)],
      ['Points to', html`<span class="address">${destinationOf(webhook)}</span>`],
      ['Told about', concernOf(shown, store, webhook)],
      ['Events', events],
      ['Sent as', webhook.contentType],
      ['Failures', html`${failuresOf(webhook, settings, runtime.now())}${window}`],
      ['Created', renderTime(webhook.createdAt)],
      ['Changed', renderTime(webhook.updatedAt)],
    ];
    if (told.previousKeyUntil !== null) {
      facts.push(['Former key', html`signs too until ${renderTime(told.previousKeyUntil)}`]);
    }
    const disabledReason = whyNoButtons(shown, store);
    const changes = html`<p>
      <a href="${here('edit')}">Edit</a> · <a href="${here('rotateKey')}">Rotate its key</a> ·
      <a href="${here('delete')}">Delete</a>
    </p>`;
    return html`<section aria-labelledby="webhook">
        <h2 id="webhook">Facts</h2>
        ${renderFacts(facts)} ${disabledReason || html`${actionsOf(shown, webhook)} ${changes}`}
      </section>
      <section aria-labelledby="recent">
        <h2 id="recent">Recent deliveries</h2>
        ${
          rows.length === 0
            ? html`<p>Nothing has been sent to it yet.</p>`
            : html`${outcomesView(rows)} ${deliveriesTable(shown, webhook, rows, !disabledReason)}`
        }
        ${total > rows.length && html`<p><a href="${here('deliveries')}">All ${total} deliveries</a></p>`}
      </section>`;
  };
}

/** The view of the settings: the form beneath it tells the numbers, this what they mean. */
export function showSettings(store: Store): View<unknown> {
  return () => html`<p>${formatPolicy(store.read(webhookSettings))}</p>`;
}

export function formatPolicy(settings: WebhookSettings): string {
  const { notificationAttempts: attempts, numberOfFailures: failures } = settings;
  const { notificationElapsedTimeInSeconds: wait } = settings;
  const apart = wait === 0 ? 'one right after the other' : `${formatCount(wait, 'second')} apart`;
  const within = formatCount(settings.notificationTimeOutInSeconds, 'second');
  const tried = attempts === 1 ? 'once' : `up to ${attempts} times, ${apart}`;
  const fatal =
    failures === 1
      ? 'The first failed delivery deactivates a webhook.'
      : `${failures} failed deliveries within ${formatCount(settings.daysInPast, 'day')} deactivate a webhook.`;
  return `Each event is tried ${tried}; a receiver has ${within} to answer. ${fatal}`;
}
