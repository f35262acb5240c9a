// What the pages of webhooks share: addresses, states and health in words.
import { renderAgo, renderTime } from '../../console/time.ts';
import { formatCount } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import { truncate } from '../../lib/text.ts';
import type { Attempt, Delivery, DeliveryState } from '../queue/delivery.ts';
import type { HealthView, Webhook, WebhookHealth } from '../webhook.ts';

type Place = Pick<PageContext<unknown>, 'href'>;

type Mark = { readonly label: string; readonly colour: 'good' | 'busy' | 'warn' | 'bad' };

export function webhookHref({ href }: Place, id: string, ...segments: string[]): string {
  return href('services', 'webhooks', id, ...segments);
}

export function deliveryHref(page: Place, { webhookId, id }: Pick<Delivery, 'webhookId' | 'id'>): string {
  return webhookHref(page, webhookId, 'deliveries', id);
}

export const stateMarks: Readonly<Record<DeliveryState, Mark>> = {
  delivered: { label: 'delivered', colour: 'good' },
  failed: { label: 'failed', colour: 'bad' },
  pending: { label: 'pending', colour: 'busy' },
  discarded: { label: 'stopped', colour: 'warn' },
  missed: { label: 'not sent', colour: 'warn' },
};

export function renderDeliveryState({ state }: Pick<Delivery, 'state'>): Html {
  return html`<span class="state ${stateMarks[state].colour}">${stateMarks[state].label}</span>`;
}

/** Shows only host and path, because the rest of the URL may contain a secret. */
export function formatReceiver({ hookUrl }: Pick<Webhook, 'hookUrl'>, maxLength = Infinity): string {
  const { host, pathname, search } = new URL(hookUrl);
  const receiver = `${host}${pathname === '/' ? '' : pathname}`;
  if (receiver.length > maxLength) return `${receiver.slice(0, maxLength - 1)}…`;
  return search === '' ? receiver : `${receiver}?…`;
}

/** The same with its scheme. */
export function formatAddress({ hookUrl }: Pick<Webhook, 'hookUrl'>): string {
  return `${new URL(hookUrl).protocol}//${formatReceiver({ hookUrl })}`;
}

export function formatHeaders(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

const maxResponseShown = 120;

/** What the receiver has answered, or why there is no answer, in one line. */
export function formatAnswer({ status, error, response }: Attempt): string {
  const words = (response ?? '').replaceAll(/\s+/g, ' ').trim() || (status === null && error) || '';
  return words.length > maxResponseShown ? `${truncate(words, maxResponseShown)} …` : words;
}

/** What needs attention most comes first. */
export const healthMarks: Readonly<Record<WebhookHealth, Mark>> = {
  deactivated: { label: 'Deactivated', colour: 'bad' },
  failing: { label: 'Failing', colour: 'warn' },
  behind: { label: 'Behind', colour: 'warn' },
  ok: { label: 'OK', colour: 'good' },
  inactive: { label: 'Inactive', colour: 'warn' },
};

const ranks = Object.keys(healthMarks);

export function compareHealth(one: HealthView, other: HealthView): number {
  return ranks.indexOf(one.health) - ranks.indexOf(other.health) || other.failures - one.failures;
}

/** An active webhook is as good as its last delivery. */
export function renderHealth({ health }: HealthView, lastOutcome: 'delivered' | 'failed' | undefined): Html {
  if ((health === 'ok' || health === 'behind') && lastOutcome === 'failed')
    return html`<span class="state warn">Last delivery failed</span>`;
  if (health === 'ok' && lastOutcome === undefined) return html`<span class="state">Not used yet</span>`;
  return html`<span class="state ${healthMarks[health].colour} claim">${healthMarks[health].label}</span>`;
}

/**
 * Whether the webhook is active, since when it is not, and how close it is to its deactivation. It follows the
 * label of the health.
 */
export function explainHealth({ webhook, failures, left, windowStart }: HealthView, now: number): Html {
  const { deactivatedAt, deactivatedBy, active } = webhook;
  if (active && failures === 0) return html`<span class="claim">Active, without failures.</span>`;
  const since = windowStart !== null && html` since ${renderTime(windowStart)}`;
  if (active)
    return html`Active. ${formatCount(failures, 'failure')}${since}. Will be deactivated after
    ${formatCount(left, 'more failure')}.`;
  const ago = deactivatedAt !== null && renderAgo(deactivatedAt, now);
  if (deactivatedBy === 'failures')
    return html`${ago}, after ${formatCount(failures, 'failed delivery')}${since}.`;
  return deactivatedBy === 'administrator'
    ? html`Deactivated by an administrator ${ago}.`
    : html`Not active since it was created.`;
}

/** The same in a few words, for a list. */
export function summariseHealth({ webhook, failures, left }: HealthView): string {
  const { deactivatedBy, active } = webhook;
  if (active) return failures > 0 ? `${failures} of ${failures + left} failures` : '';
  if (deactivatedBy === null) return 'never active';
  return deactivatedBy === 'failures' ? formatCount(failures, 'failure') : 'by an administrator';
}
