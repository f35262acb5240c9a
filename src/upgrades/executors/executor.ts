// The port through which the job runner changes a deployment. The runner owns order, messages and counters; an executor knows none of them.
import type { Inventory, Workload } from '../workloads.ts';

/**
 * After a crash the runner calls the method of the interrupted step again, so a second call must end like the first.
 * Every method ends soon after the signal of its context is aborted.
 */
export type Executor = {
  /** Reads what plans are made from. Does not reject: a deployment that cannot be read is a problem in every move plan. */
  inventory: () => Promise<Inventory>;
  /** Performs a step that concerns the whole deployment. */
  perform: (step: string, context: StepContext) => Promise<void>;
  /** Gives a workload its new images. */
  apply: (workload: Workload, context: StepContext) => Promise<void>;
  /** Resolves when the workload runs with its new images. */
  verify: (workload: Workload, context: StepContext) => Promise<void>;
  /** Gives a workload its former images, and resolves when it runs with them. */
  rollback: (workload: Workload, context: StepContext) => Promise<void>;
  /** Frees what the executor holds for a job that has ended. Does not reject. */
  release: (jobId: string) => Promise<void>;
};

/** The job that a step belongs to, and when to stop. */
export type StepContext = {
  readonly jobId: string;
  /** Grows whenever a process takes over the job. */
  readonly fence: number;
  readonly runStartedAt: number;
  /** Rejects if another process has taken over the job. An executor calls it before every change to the deployment. */
  readonly assertOwnership: () => Promise<void>;
  readonly signal: AbortSignal;
};
