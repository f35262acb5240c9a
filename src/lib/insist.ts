// What is asked of a store that is away is asked again until it is back.
import { isUnavailable } from '../errors.ts';

/** How long after the store has been away it is asked again. */
export const tryAgainAfterMs = 500;

export async function insist<T>(
  work: () => Promise<T>,
  { sleep }: { sleep: (ms: number, signal: AbortSignal) => Promise<void> },
  signal: AbortSignal,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await sleep(tryAgainAfterMs, signal);
    }
  }
}
