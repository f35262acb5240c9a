// Background work of the process: started by name, waited for, and stopped together.

export type Tasks = {
  /** Work must end soon after its signal is aborted. */
  start: (name: string, work: (signal: AbortSignal) => Promise<void>) => void;
  /** Resolves when nothing is running. */
  idle: () => Promise<void>;
  /** Aborts everything and waits for it to end. Nothing starts afterwards. */
  stop: () => Promise<void>;
};

export function createTasks(onFailure: (name: string, error: unknown) => void): Tasks {
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();

  async function idle(): Promise<void> {
    while (running.size > 0) await Promise.all(running);
  }

  return {
    start(name, work) {
      if (stopping.signal.aborted) return;
      const task = work(stopping.signal)
        .catch((error: unknown) => {
          if (!stopping.signal.aborted) onFailure(name, error);
        })
        .finally(() => running.delete(task));
      running.add(task);
    },
    idle,
    async stop() {
      stopping.abort();
      await idle();
    },
  };
}
