// Records in the job what its current step waits for, so that every process can show it.
import type { Runtime } from '../../lib/runtime.ts';
import type { Store } from '../../store/store.ts';
import type { Wait } from '../executors/executor.ts';
import { type Job, newestJob } from './job-table.ts';

/** Executors report with every look, so that the last report of a pause is never older than this. */
const minPauseMs = 10_000;

export class WaitRecorder {
  readonly #store: Store;
  readonly #runtime: Pick<Runtime, 'now' | 'elapsed'>;
  #recordedAt = -Infinity;
  #last: { readonly key: string; readonly since: number } | undefined;

  constructor(store: Store, runtime: Pick<Runtime, 'now' | 'elapsed'>) {
    this.#store = store;
    this.#runtime = runtime;
  }

  report({ id, fence, revision }: Job, step: string, { object, reason }: Wait): void {
    const key = `${id} ${revision} ${object}`;
    const since = this.#last?.key === key ? this.#last.since : this.#runtime.now();
    this.#last = { key, since };
    const waitingFor = { step, object, reason, since };
    const at = this.#runtime.elapsed();
    if (at < this.#recordedAt + minPauseMs) return;
    this.#recordedAt = at;
    const write = this.#store.update((transaction) => {
      const job = transaction.read(newestJob);
      const isCurrent = job?.id === id && job.fence === fence && job.revision === revision;
      // The revision stays: the update of the step must find the job that it has read.
      if (isCurrent && job.state === 'in_progress') transaction.write(newestJob, { ...job, waitingFor });
    });
    // It is for information only. The next report tries again.
    write.catch(() => undefined);
  }
}
