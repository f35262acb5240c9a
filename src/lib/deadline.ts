// Work that has its time.
import type { World } from '../runtime.ts';

export type Deadline = {
  readonly ms: number;
  /** What is said when the time is up. */
  readonly late: string;
  /** Whoever has asked for the work may give it up. */
  readonly stopping?: AbortSignal;
};

/** Ends when the work ends, when its time is up, or when it is given up; the work is told to stop in the latter two. */
export async function withDeadline<T>(
  { sleep }: Pick<World, 'sleep'>,
  work: (signal: AbortSignal) => Promise<T>,
  { ms, late, stopping }: Deadline,
): Promise<T> {
  const over = new AbortController();
  const giveUp = () => over.abort();
  // Nothing stays with a signal that lives as long as the process; of `AbortSignal.any` something does, each time.
  stopping?.addEventListener('abort', giveUp);
  if (stopping?.aborted) giveUp();
  const deadline = sleep(ms, over.signal).then(() => {
    throw new Error(late);
  });
  deadline.catch(() => undefined);
  try {
    return await Promise.race([work(over.signal), deadline]);
  } finally {
    stopping?.removeEventListener('abort', giveUp);
    over.abort();
  }
}
