// The sentences of operations on webhooks: what their forms warn of, and what pages show after them.
import { formatCount } from '../../lib/format.ts';
import type { NextStep, NoticeLink } from '../../rest/resource.ts';
import type { ReadableStore } from '../../store/store.ts';
import { maxCountedDeliveries } from '../queue/delivery-filter.ts';
import { type Webhook, listWebhooks } from '../webhook.ts';

const root = ['services', 'webhooks'];

export const webhookList: NoticeLink = { name: 'All webhooks', path: root };

export function webhookLink({ id, name }: { readonly id: string; readonly name: string }): NoticeLink {
  return { name: `Open ${name}`, path: [...root, id] };
}

export function deliveryLink(webhookId: string, id: string): NoticeLink {
  return { name: 'Follow the delivery', path: [...root, webhookId, 'deliveries', id] };
}

/** The page of the webhook follows the ping. */
export function pingStep({ id }: { readonly id: string }): NextStep {
  return { label: 'Ping', path: [...root, id, 'ping'], next: [...root, id] };
}

/** Of one webhook, or of all. */
export function deliveriesLink(webhookId?: string): NoticeLink {
  const path = webhookId === undefined ? root : [...root, webhookId];
  return { name: 'Show the deliveries', path: [...path, 'deliveries'] };
}

export function wasOrWere(count: number): string {
  return count === 1 ? 'was' : 'were';
}

export function discardedText(discarded: number): string {
  return discarded === 0
    ? 'No delivery was pending.'
    : `${formatCount(discarded, 'pending delivery')} ${wasOrWere(discarded)} discarded.`;
}

const laterRedelivery = 'You can redeliver them after you activate the webhook again.';

export async function deactivationWarning(
  store: ReadableStore,
  { id, name, active }: Webhook,
): Promise<string> {
  if (!active) return `${name} is inactive already. Deactivating it again has no effect.`;
  const pending = await store.deliveries.pendingOf(id);
  const lost =
    pending === 0 ? 'No delivery is pending.' : `${willBe(pending, 'discarded')} ${laterRedelivery}`;
  return `${name} gets no more events. ${lost}`;
}

export async function deletionWarning(store: ReadableStore, { id, name }: Webhook): Promise<string> {
  const pending = await store.deliveries.pendingOf(id);
  const { total, isTotalExact } = await store.deliveries.page({ webhookId: id }, 0, 1);
  const all = isTotalExact
    ? formatCount(total, 'delivery')
    : `more than ${formatCount(maxCountedDeliveries, 'delivery')}`;
  const unsent = pending === 0 ? '' : `, ${formatCount(pending, 'pending one')} included`;
  return total === 0
    ? `${name} is deleted. It has no deliveries.`
    : `${name} is deleted together with ${all}${unsent}. None of them can be redelivered.`;
}

/** `service` limits it to the webhooks of a service. */
export async function deactivateAllWarning(store: ReadableStore, service?: string): Promise<string> {
  const active = listWebhooks(store, service).filter((webhook) => webhook.active);
  if (active.length === 0) return 'No webhook is active.';
  const counts = await Promise.all(active.map(({ id }) => store.deliveries.pendingOf(id)));
  const pending = counts.reduce((sum, count) => sum + count, 0);
  const lost = pending === 0 ? 'No delivery is pending.' : willBe(pending, 'discarded');
  const verb = active.length === 1 ? 'gets' : 'get';
  return `${formatCount(active.length, 'active webhook')} ${verb} no more events. ${lost}`;
}

function willBe(count: number, participle: string): string {
  return `${formatCount(count, 'pending delivery')} will be ${participle}.`;
}
