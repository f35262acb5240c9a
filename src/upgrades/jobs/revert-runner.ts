// Reverts the workloads of a failed or cancelled patch, one after another, until its deadline.
import { isUnavailable } from '../../lib/errors.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { type Executor, RefusedError } from '../executors/executor.ts';
import {
  type AppliedStep,
  type RevertedStep,
  finishReverting,
  nextToRevert,
  revertStep,
  stopReverting,
  waitsForRefused,
} from './job-reverting.ts';
import type { Job, StoredPlan } from './job-table.ts';
import { type RunningJobService, errorText } from './running-job-service.ts';

type RevertRunnerOptions = {
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
    if (!applied)
      await this.#jobs.update(job, (transaction, current, at) =>
        finishReverting(transaction, current, plan, at),
      );
    else if (why !== undefined)
      await this.#jobs.update(job, (transaction, current, at) =>
        stopReverting(transaction, current, plan, why, at),
      );
    else await this.#revertNext(job, plan, applied, signal);
  }

  /** Tries each workload once: the executor retries what may succeed later, and the other workloads must not wait for this one. */
  async #revertNext(job: Job, plan: StoredPlan, applied: AppliedStep, signal: AbortSignal): Promise<void> {
    const reverted = waitsForRefused(job, plan, applied)
      ? ({ ...applied, outcome: 'refused' } as const)
      : await this.#tryRevert(job, applied, signal);
    if (!reverted) return;
    await this.#jobs.update(job, (transaction, current, at) =>
      revertStep(transaction, current, plan, reverted, at),
    );
  }

  /** Undefined if the process stops, or the deadline has passed: then this workload is one of those that are left. */
  async #tryRevert(job: Job, applied: AppliedStep, signal: AbortSignal): Promise<RevertedStep | undefined> {
    const { workload, seqNum } = applied.step;
    if (!workload) return { ...applied, outcome: 'already back' };
    try {
      const { isPatched } = await this.#jobs.execute(
        job,
        { action: 'rollback', seqNum },
        (context) => this.#executor.rollback(workload, context),
        { stopping: signal, remainingMs: this.#deadline(job) - this.#runtime.now() },
      );
      return { ...applied, outcome: isPatched ? 'put back' : 'already back' };
    } catch (error) {
      if (signal.aborted || this.#runtime.now() >= this.#deadline(job)) return undefined;
      if (isUnavailable(error)) throw error;
      const outcome = error instanceof RefusedError ? 'refused' : 'failed';
      return { ...applied, outcome, cause: errorText(error) };
    }
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
