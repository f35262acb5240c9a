// Background tasks of the process: each has a name, and all of them are stopped together.
import { setMaxListeners } from 'node:events';
import type { Runtime } from './runtime.ts';

export type Tasks = {
  /** Runs the work in the background. The work must end soon after its signal is aborted. */
  start: (name: string, work: (signal: AbortSignal) => Promise<void>) => void;
  /** Repeats the work, with a pause of `ms` before each run. A failed run is reported and does not end the repetition. */
  every: (name: string, ms: number, work: () => Promise<void>) => void;
  /** Resolves when no task is running. */
  idle: () => Promise<void>;
  /** Aborts all tasks and waits until they have ended. Later calls of `start` and `every` do nothing. */
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

  async function run(name: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    try {
      await work(stopping.signal);
    } catch (error) {
      // An aborted task may fail because of the abort.
      if (!stopping.signal.aborted) onFailure(name, error);
    }
  }

  function start(name: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (stopping.signal.aborted) return;
    const task = run(name, work).finally(() => running.delete(task));
    running.add(task);
  }

  function every(name: string, ms: number, work: () => Promise<void>): void {
    start(name, async (signal) => {
      for (;;) {
        await sleep(ms, signal);
        try {
          await work();
        } catch (error) {
          onFailure(name, error);
        }
      }
    });
  }

  async function idle(): Promise<void> {
    while (running.size > 0) await Promise.all(running);
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await idle();
  }

  return { start, every, idle, stop };
}
