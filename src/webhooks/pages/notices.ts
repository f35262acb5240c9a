// The sentences that pages show after operations on webhooks, and their links.
import { formatCount } from '../../lib/format.ts';
import type { NextStep, NoticeLink } from '../../rest/resource.ts';

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
