// What carries out the steps of a plan. The runner owns order, messages and counters; an executor knows none of them.
import type { Inventory, Workload } from '../workloads.ts';

/** Each act may be asked for again after a crash, must then end the same way, and ends soon after its signal is aborted. */
export type Executor = {
  /** What a plan is made from. Does not reject: a deployment that cannot be seen is a problem of every placement. */
  inventory: () => Promise<Inventory>;
  /** A step of the deployment as a whole, by its name. */
  perform: (step: string, errand: StepContext) => Promise<void>;
  /** Moves a workload to its new images. */
  apply: (workload: Workload, errand: StepContext) => Promise<void>;
  /** Resolves once the workload runs with its new images. */
  verify: (workload: Workload, errand: StepContext) => Promise<void>;
  /** Moves a workload to its former images, and resolves once it runs with those. */
  rollback: (workload: Workload, errand: StepContext) => Promise<void>;
  /** The run of the job has ended: whatever was kept for it is let go. Does not reject. */
  release: (jobId: string) => Promise<void>;
};

/** What an act is done for, and when to leave off. */
export type StepContext = {
  readonly jobId: string;
  /** Goes up whenever a process takes the job up. */
  readonly fence: number;
  readonly runStartedAt: number;
  /** Rejects where the job is not this process's any more. To be asked before everything that cannot be undone by asking again. */
  readonly assertOwnership: () => Promise<void>;
  readonly signal: AbortSignal;
};
