// Compares secrets that callers give.
import { createHash, timingSafeEqual } from 'node:crypto';

/** Takes the same time wherever the two differ. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
