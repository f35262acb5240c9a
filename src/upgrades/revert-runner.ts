// Reverts the workloads of a failed or cancelled patch, one after another, until its deadline.
import { isUnavailable } from '../errors.ts';
import type { Runtime } from '../runtime.ts';
import type { Executor } from './executors/executor.ts';
import {
  type AppliedStep,
  finishReverting,
  nextToRevert,
  revertStep,
  stopReverting,
} from './job-reverting.ts';
import type { Job, StoredPlan } from './job-table.ts';
import { type RunningJobService, errorText } from './running-job-service.ts';

export type RevertRunnerOptions = {
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly jobs: RunningJobService;
  readonly timeoutMs: number;
};

export class RevertRunner {
  readonly #runtime: Runtime;
  readonly #executor: Executor;
  readonly #jobs: RunningJobService;
  readonly #timeoutMs: number;

  constructor({ runtime, executor, jobs, timeoutMs }: RevertRunnerOptions) {
    this.#runtime = runtime;
    this.#executor = executor;
    this.#jobs = jobs;
    this.#timeoutMs = timeoutMs;
  }

  async revert(job: Job, plan: StoredPlan, signal: AbortSignal): Promise<void> {
    const applied = nextToRevert(job, plan);
    const why = this.#reasonToStop(job);
    if (!applied) await this.#jobs.update(job, finishReverting);
    else if (why !== undefined)
      await this.#jobs.update(job, (transaction, current, at) =>
        stopReverting(transaction, current, plan, why, at),
      );
    else await this.#revertNext(job, plan, applied, signal);
  }

  /** Tries each workload once: the executor retries what may succeed later, and the other workloads must not wait for this one. */
  async #revertNext(job: Job, plan: StoredPlan, applied: AppliedStep, signal: AbortSignal): Promise<void> {
    const { workload } = applied.step;
    const remainingMs = this.#deadline(job) - this.#runtime.now();
    let failure: string | undefined;
    try {
      if (workload)
        await this.#jobs.execute(
          job,
          (context) => this.#executor.rollback(workload, context),
          signal,
          remainingMs,
        );
    } catch (error) {
      // The next decision stops the job at its deadline, and then this workload is one of those that are left.
      if (signal.aborted || this.#runtime.now() >= this.#deadline(job)) return;
      if (isUnavailable(error)) throw error;
      failure = errorText(error);
    }
    await this.#jobs.update(job, (transaction, current, at) =>
      revertStep(transaction, current, plan, { ...applied, failure }, at),
    );
  }

  #deadline({ reverting }: Job): number {
    return (reverting?.since ?? Infinity) + this.#timeoutMs;
  }

  #reasonToStop(job: Job): string | undefined {
    const stoppedBy = job.reverting?.stoppedBy;
    if (stoppedBy !== undefined) return `${stoppedBy} stopped it.`;
    return this.#runtime.now() >= this.#deadline(job)
      ? `it took longer than ${this.#timeoutMs / 1000} seconds.`
      : undefined;
  }
}
