// The page of the webhook settings: the policy in words, and which webhooks it concerns now.
import { renderTime } from '../../console/time.ts';
import { formatCount, formatDuration } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { type WebhookSettings, webhookSettings } from '../settings.ts';
import { listWebhooks, readHealth } from '../webhook.ts';

export function showSettings(store: ReadableStore): View<unknown> {
  return async ({ href, now }) => {
    const settings = store.read(webhookSettings);
    const all = listWebhooks(store).map((webhook) => readHealth(store, webhook, now));
    const withFailures = all.filter(({ webhook, failures }) => webhook.active && failures > 0);
    return html`<p>${formatPolicy(settings)}</p>
      <p>
        The settings apply to <a href="${href('services', 'webhooks')}">${formatCount(all.length, 'webhook')}</a>.
        ${
          withFailures.length === 0
            ? 'No active one has failures in the window.'
            : html`${formatCount(withFailures.length, 'active one')} ${withFailures.length === 1 ? 'has' : 'have'}
              failures in the window.`
        }
      </p>
      ${await lastChangeView(store, href)}`;
  };
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
