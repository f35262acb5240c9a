// What carries out the steps of a plan. The runner owns order, messages and counters; an executor knows none of them.
import type { Workload } from '../plan.ts';

/** Each act may be asked for again after a crash, must then end the same way, and ends soon after its signal is aborted. */
export type Executor = {
  /** Problems that only the deployment itself can tell. */
  preflight: (workloads: readonly Workload[]) => Promise<readonly string[]>;
  /** A step of the deployment as a whole, by its name. */
  perform: (step: string, signal: AbortSignal) => Promise<void>;
  /** Moves a workload to its new image. */
  apply: (workload: Workload, signal: AbortSignal) => Promise<void>;
  /** Resolves once the workload runs with its new image. */
  verify: (workload: Workload, signal: AbortSignal) => Promise<void>;
  /** Moves a workload to its former image, and resolves once it runs with that. */
  rollback: (workload: Workload, signal: AbortSignal) => Promise<void>;
};
