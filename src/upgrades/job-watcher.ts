// The watcher tells when a job has something new to say, so that nobody has to ask again and again.
import type { Store } from '../store/store.ts';
import type { Runtime } from '../runtime.ts';
import { type Job, jobs, messages, newestJobId } from './job-table.ts';

export type JobWatcher = {
  /** Resolves once the job has more than `after` messages, is in another state, or the time is up; at once when it cannot change. */
  waitForChange: (job: Job, after: number, waitMs: number) => Promise<void>;
  /** Lets everybody go. */
  stop: () => void;
};

export function createJobWatcher(store: Store, runtime: Runtime): JobWatcher {
  const waiting = new Set<() => void>();
  let isStopping = false;

  return {
    async waitForChange(job, after, waitMs) {
      const hasNews = () =>
        store.entries(messages, job.id).length > after ||
        store.get(jobs, job.id)?.state !== 'in_progress' ||
        store.read(newestJobId) !== job.id;
      if (isStopping || hasNews()) return;
      const over = new AbortController();
      await new Promise<void>((resolve) => {
        const stopListening = store.onUpdate(() => {
          if (hasNews()) finish();
        });
        const finish = () => {
          waiting.delete(finish);
          stopListening();
          over.abort();
          resolve();
        };
        waiting.add(finish);
        runtime.sleep(waitMs, over.signal).then(finish, finish);
      });
    },
    stop() {
      isStopping = true;
      for (const finish of waiting) finish();
    },
  };
}
