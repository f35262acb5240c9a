// The sentences of operations on webhooks: what their forms warn of, and what pages show after them.
import { formatCount, formatList } from '../../lib/format.ts';
import type { NextStep, NoticeLink } from '../../rest/outcome.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Webhook } from '../webhook.ts';

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
  return { label: 'Ping (leaves this page)', path: [...root, id, 'ping'], next: [...root, id] };
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

export async function deactivationWarning(
  store: ReadableStore,
  { id, name, active }: Webhook,
): Promise<string> {
  if (!active) return `${name} is inactive already. Deactivating it again has no effect.`;
  const pending = await store.deliveries.pendingOf([id]);
  const later = pending === 0 ? '' : ' You can redeliver them after you activate the webhook again.';
  return `${name} gets no more events. ${willBeDiscarded(pending)}${later}`;
}

/** The deliveries of one webhook are counted; those of many would take long. */
export async function deletionWarning(store: ReadableStore, chosen: readonly Webhook[]): Promise<string> {
  const pending = await countPending(store, chosen);
  const end = `${pending === 0 ? '' : `, ${formatCount(pending, 'pending one')} included`}. None of them can be redelivered.`;
  const [first] = chosen;
  if (!first || chosen.length > 1)
    return `${countAndName(chosen, 'webhook')} are deleted together with their deliveries${end}`;
  const { total, isTotalExact } = await store.deliveries.page({ webhookId: first.id }, 0, 1);
  return total === 0
    ? `${first.name} is deleted. It has no deliveries.`
    : `${first.name} is deleted together with ${isTotalExact ? '' : 'more than '}${formatCount(total, 'delivery')}${end}`;
}

export async function deactivateAllWarning(
  store: ReadableStore,
  chosen: readonly Webhook[],
): Promise<string> {
  const active = chosen.filter((webhook) => webhook.active);
  if (active.length === 0) return 'No webhook is active.';
  const pending = await countPending(store, active);
  const verb = active.length === 1 ? 'gets' : 'get';
  return `${countAndName(active, 'active webhook')} ${verb} no more events. ${willBeDiscarded(pending)}`;
}

export function countPending({ deliveries }: ReadableStore, chosen: readonly Webhook[]): Promise<number> {
  return deliveries.pendingOf(chosen.map(({ id }) => id));
}

function countAndName(chosen: readonly Webhook[], noun: string): string {
  const names = chosen.map(({ name }) => name);
  return `${formatCount(chosen.length, noun)} (${formatList(names, 10)})`;
}

function willBeDiscarded(pending: number): string {
  return pending === 0
    ? 'No delivery is pending.'
    : `${formatCount(pending, 'pending delivery')} will be discarded.`;
}
