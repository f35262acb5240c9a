// Optimistic locking: a change names the version that it was made from.
import { ServiceError } from './errors.ts';

/** Without a version, the last change wins. */
export function requireVersion(
  what: string,
  { updatedAt }: { readonly updatedAt: number },
  version: number | undefined,
): void {
  if (version === undefined || version === updatedAt) return;
  throw new ServiceError(
    'conflict',
    `The ${what} was changed meanwhile. Nothing was saved: check the values, and send them again.`,
  );
}
