// What is missing may have been made by another process a moment ago: then a second look finds it.
import { ServiceError } from './errors.ts';

/** Looks; and when a token or a thing is unknown, looks again once all that others have changed is here. */
export type SecondLook = <T>(look: () => T | Promise<T>) => Promise<T>;

export function createSecondLook(refresh: () => Promise<void>): SecondLook {
  return async (look) => {
    try {
      return await look();
    } catch (error) {
      if (!isMissing(error)) throw error;
      await refresh();
      return look();
    }
  };
}

function isMissing(error: unknown): boolean {
  return error instanceof ServiceError && (error.kind === 'token-invalid' || error.kind === 'not-found');
}
