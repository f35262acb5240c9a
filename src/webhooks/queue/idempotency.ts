// Remembers the events that were published with an id, so that a repeated `publish` is recognised for 24 hours.
import { ServiceError } from '../../lib/errors.ts';

export type PublishResult = { readonly eventId: string; readonly deliveries: number };

export type RememberedEvent = PublishResult & { readonly publishedAt: number };

export const rememberedForMs = 24 * 3_600_000;

export function isStillRemembered({ publishedAt }: RememberedEvent, at: number): boolean {
  return at < publishedAt + rememberedForMs;
}

/** How often event ids are forgotten that were published 24 hours before. */
export const forgetEveryMs = 600_000;

/** For a store that can remember a limited number of event ids. An id that expires leaves room when it is forgotten. */
export function tooManyEventIds(max: number): ServiceError {
  const message = `Too many event ids are remembered: MAX_EVENT_IDS allows ${max}.`;
  return new ServiceError('unavailable', message, { retryAfterSeconds: forgetEveryMs / 1000 });
}
