// Background work of the process: started by name, waited for, and stopped together.
import { setMaxListeners } from 'node:events';
import type { Runtime } from './runtime.ts';

export type Tasks = {
  /** Work must end soon after its signal is aborted. */
  start: (name: string, work: (signal: AbortSignal) => Promise<void>) => void;
  /** Does the work again and again, so long after each end of it; a failure is told and survived. */
  every: (name: string, ms: number, work: () => Promise<void>) => void;
  /** Resolves when nothing is running. */
  idle: () => Promise<void>;
  /** Aborts everything and waits for it to end. Nothing starts afterwards. */
  stop: () => Promise<void>;
};

export function createTasks(
  { sleep }: Pick<Runtime, 'sleep'>,
  onFailure: (name: string, error: unknown) => void,
): Tasks {
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  // Without this, Node warns about the eleventh task that listens to the signal.
  setMaxListeners(0, stopping.signal);

  async function idle(): Promise<void> {
    while (running.size > 0) await Promise.all(running);
  }

  function start(name: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (stopping.signal.aborted) return;
    const task = work(stopping.signal)
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) onFailure(name, error);
      })
      .finally(() => running.delete(task));
    running.add(task);
  }

  return {
    start,
    every: (name, ms, work) =>
      start(name, async (signal) => {
        for (;;) {
          await sleep(ms, signal);
          await work().catch((error: unknown) => onFailure(name, error));
        }
      }),
    idle,
    async stop() {
      stopping.abort();
      await idle();
    },
  };
}
