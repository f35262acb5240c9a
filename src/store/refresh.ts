// Repeats a read once after a refresh of the store.
import { ServiceError } from '../lib/errors.ts';

/**
 * Repeats a read that found nothing: without this, a token or resource that another process created a moment ago
 * would be missing.
 */
export type RetryAfterRefresh = <T>(read: () => T | Promise<T>) => Promise<T>;

export function createRetryAfterRefresh(refresh: () => Promise<unknown>): RetryAfterRefresh {
  return async (read) => {
    try {
      return await read();
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    await refresh();
    return read();
  };
}

function isMissing(error: unknown): boolean {
  return error instanceof ServiceError && (error.kind === 'token-invalid' || error.kind === 'not-found');
}
