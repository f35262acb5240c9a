// Computes the numbers about upgrade jobs for the metrics, from the store only, so that all processes show the same.
import { isUnavailable } from '../errors.ts';
import type { Store } from '../store/store.ts';
import { type Job, newestJob, runTotals } from './job-table.ts';

export type UpgradeStats = {
  readonly running: boolean;
  readonly stepsDone: number;
  readonly stepsTotal: number;
  readonly stepAgeSeconds: number;
  readonly ended: readonly { readonly operation: string; readonly state: string; readonly count: number }[];
  readonly lastSuccessSeconds: number;
};

const noJob = { running: false, stepsDone: 0, stepsTotal: 0, stepAgeSeconds: 0 };

export class UpgradeStatsReader {
  readonly #store: Store;
  /** A plan never changes and may be large, so it is read once. */
  #known: { readonly jobId: string; readonly steps: number } | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  async read(at: number): Promise<UpgradeStats> {
    const job = this.#store.read(newestJob);
    const { ended, lastSuccessAt } = this.#store.read(runTotals);
    return {
      ...(job?.state === 'in_progress' ? await this.#readRunning(job, at) : noJob),
      ended: Object.entries(ended).flatMap(([operation, states]) =>
        Object.entries(states).map(([state, count]) => ({ operation, state, count })),
      ),
      lastSuccessSeconds: (lastSuccessAt ?? 0) / 1000,
    };
  }

  async #readRunning({ id, next, lastMessageAt }: Job, at: number) {
    return {
      running: true,
      stepsDone: next,
      stepsTotal: await this.#countSteps(id),
      stepAgeSeconds: Math.max(0, at - lastMessageAt) / 1000,
    };
  }

  /** NaN while the database is unavailable, or if the job has just ended: the metrics still show the other numbers. */
  async #countSteps(jobId: string): Promise<number> {
    if (this.#known?.jobId === jobId) return this.#known.steps;
    try {
      const plan = await this.#store.jobs.plan(jobId);
      if (!plan) return NaN;
      this.#known = { jobId, steps: plan.steps.length };
      return plan.steps.length;
    } catch (error) {
      if (isUnavailable(error)) return NaN;
      throw error;
    }
  }
}
