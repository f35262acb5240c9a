// Compares secrets that callers give.
import { createHash, timingSafeEqual } from 'node:crypto';
import { bearerToken } from './caller.ts';
import { usualError } from './errors.ts';

/** Refuses a request whose bearer token is not the value of the variable. */
export function requireBearer(authorization: string | undefined, variable: string, value: string): void {
  const given = bearerToken(authorization);
  if (given !== undefined && isSameSecret(given, value)) return;
  const problem = { field: 'Authorization', message: `must be Bearer and the value of ${variable}.` };
  throw usualError(given === undefined ? 'token-missing' : 'token-invalid', { problems: [problem] });
}

/** Takes the same time wherever the two differ. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
