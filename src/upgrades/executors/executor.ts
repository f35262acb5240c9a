// The port through which the job runner changes a deployment. The runner owns order, messages and counters; an executor knows none of them.
import type { ImageCheck, Inventory, Workload } from '../workloads.ts';

/**
 * After a crash the runner calls the method of the interrupted step again, so a second call must end like the first.
 * Every method ends soon after the signal of its context is aborted.
 */
export type Executor = {
  /** Does not reject: if the deployment cannot be read, every move plan reports this as a problem. */
  inventory: () => Promise<Inventory>;
  /** Looks up the images that these workloads will get. Does not reject. Undefined if the executor looks up no images. */
  checkImages: (workloads: readonly Workload[]) => Promise<ImageCheck | undefined>;
  perform: (step: string, context: StepContext) => Promise<void>;
  /** Does not wait until the workload runs: `verify` does, so that several rollouts can overlap. */
  apply: (workload: Workload, context: StepContext) => Promise<void>;
  verify: (workload: Workload, context: StepContext) => Promise<void>;
  /** Waits until the workload runs, because no `verify` follows. */
  rollback: (workload: Workload, context: StepContext) => Promise<void>;
  /** Does not reject: the job has ended and can no longer fail. */
  release: (jobId: string) => Promise<void>;
};

export type StepContext = {
  readonly jobId: string;
  readonly fence: number;
  readonly runStartedAt: number;
  /** Rejects if another process has taken over the job. An executor calls it before every change to the deployment. */
  readonly assertOwnership: () => Promise<void>;
  readonly signal: AbortSignal;
};
