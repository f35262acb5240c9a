// The page of the webhook settings: the policy in words, and who has changed it.
import { renderTime } from '../../console/time.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/view.ts';
import type { ReadableStore } from '../../store/store.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';

export function showSettings(store: ReadableStore): View<unknown> {
  return async ({ href }) =>
    html`<p>${formatPolicy(store.read(webhookSettings))}</p>
      ${await lastChangeView(store, href)}`;
}

async function lastChangeView(
  store: ReadableStore,
  href: PageContext<unknown>['href'],
): Promise<Html | false> {
  const filter = { operation: 'services/webhooks/settings', outcome: 'success' } as const;
  const [last] = (await store.audit.page(filter, 0, 1)).entries;
  if (!last) return false;
  const entries = `${href('system', 'audit')}?${new URLSearchParams(filter).toString()}`;
  return html`<p>Last changed by ${last.user ?? 'the server'}, ${renderTime(last.at)}. <a href="${entries}">Show the changes</a></p>`;
}

export function formatPolicy(settings: WebhookSettings): string {
  const { notificationAttempts: attempts, numberOfFailures: failures } = settings;
  const { notificationElapsedTimeInSeconds: wait } = settings;
  const apart = wait === 0 ? 'without a wait' : `${formatDuration(wait * 1000)} apart`;
  const timeout = formatDuration(settings.notificationTimeOutInSeconds * 1000);
  const attempted = attempts === 1 ? 'once' : `up to ${attempts} times, ${apart}`;
  const days = formatCount(settings.daysInPast, 'day');
  const deactivation =
    failures === 1
      ? 'The first failed delivery deactivates a webhook.'
      : `${failures} failed deliveries within ${days} deactivate a webhook.`;
  return `Each event is tried ${attempted}; a receiver has ${timeout} to answer. ${deactivation}`;
}
