// Background tasks of the process: each has a name, and all of them are stopped together.
import { setMaxListeners } from 'node:events';
import type { Runtime } from './runtime.ts';

export type Tasks = {
  /** The work must end soon after its signal is aborted, because `stop` waits for it. */
  start: (name: string, work: (signal: AbortSignal) => Promise<void>) => void;
  every: (name: string, ms: number, work: (signal: AbortSignal) => Promise<void>) => void;
  idle: () => Promise<void>;
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
      // The abort itself may make a task fail.
      if (!stopping.signal.aborted) onFailure(name, error);
    }
  }

  function start(name: string, work: (signal: AbortSignal) => Promise<void>): void {
    if (stopping.signal.aborted) return;
    const task = run(name, work).finally(() => running.delete(task));
    running.add(task);
  }

  function every(name: string, ms: number, work: (signal: AbortSignal) => Promise<void>): void {
    start(name, async (signal) => {
      for (;;) {
        await sleep(ms, signal);
        try {
          await work(signal);
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
