// What is missing may have been made by another process a moment ago: then a second look finds it.
import { ServiceError } from '../errors.ts';

/** Looks; and when a token or a thing is unknown, looks again once all that others have changed is here. What is known is answered at once. */
export type RetryAfterRefresh = <T>(look: () => T | Promise<T>) => T | Promise<T>;

export function createRetryAfterRefresh(refresh: () => Promise<void>): RetryAfterRefresh {
  async function lookAgain<T>(look: () => T | Promise<T>, error: unknown): Promise<T> {
    if (!isMissing(error)) throw error;
    await refresh();
    return look();
  }

  return (look) => {
    try {
      const found = look();
      return found instanceof Promise ? found.catch((error: unknown) => lookAgain(look, error)) : found;
    } catch (error) {
      return lookAgain(look, error);
    }
  };
}

function isMissing(error: unknown): boolean {
  return error instanceof ServiceError && (error.kind === 'token-invalid' || error.kind === 'not-found');
}
