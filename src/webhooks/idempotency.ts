// Remembers the events that were published with an id, so that a repeated `publish` is recognised for 24 hours.
import type { Shape } from '../store/shape.ts';
import type { Table } from '../store/transaction.ts';

export type PublishResult = { readonly eventId: string; readonly deliveries: number };

export type RememberedEvent = PublishResult & { readonly publishedAt: number };

export const rememberedEvents: Table<RememberedEvent> = {
  name: 'publications',
  keyOf: ({ eventId }) => eventId,
  shape: { eventId: 'key', deliveries: 'number', publishedAt: 'number' } satisfies Shape<RememberedEvent>,
};

const rememberedForMs = 24 * 3_600_000;

export function isStillRemembered({ publishedAt }: RememberedEvent, at: number): boolean {
  return at < publishedAt + rememberedForMs;
}
