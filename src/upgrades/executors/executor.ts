// The port through which the job runner changes a deployment. The runner owns order, messages and counters; an
// executor knows none of them.
import type { StepId } from './steps.ts';
import type { Direction, Findings, Inventory, Workload } from './workloads.ts';

/**
 * After a crash the runner calls the method of the interrupted step again, so a second call must end like the first.
 * Every method ends soon after the signal of its context is aborted.
 */
export type Executor = {
  /** If the deployment cannot be read, every move plan reports this as a problem. Rejects if the store is unavailable. */
  inventory: () => Promise<Inventory>;
  /**
   * Looks up the images that these workloads will get. Does not reject. Undefined if the executor looks up no
   * images.
   */
  checkImages: (workloads: readonly Workload[]) => Promise<Findings | undefined>;
  /** A step of Steward itself, which changes no workload. */
  perform: (step: StepId, context: StepContext) => Promise<void>;
  /** Starts the Job of the attempt unless it exists. */
  startTemplate: (run: TemplateRun, context: StepContext) => Promise<void>;
  /** Waits until the Job of the attempt ends. Rejects if it fails. */
  runTemplate: (run: TemplateRun, context: StepContext) => Promise<TemplateResult>;
  /** Ends the Job of the attempt, if it exists, and waits until it is gone with its pods. */
  stopTemplate: (run: TemplateRun, context: StepContext) => Promise<void>;
  /** Does not wait until the workload runs: `verify` does, so that several rollouts can overlap. */
  apply: (workload: Workload, context: StepContext) => Promise<ApplyResult>;
  verify: (workload: Workload, context: StepContext) => Promise<void>;
  /** Begins what a `rollback` with the same context completes, so that several rollouts can overlap. */
  beginRollback: (workload: Workload, context: StepContext) => Promise<void>;
  /**
   * Waits until the workload runs, because no `verify` follows. Like `beginRollback`, rejects with a `RefusedError` if a
   * later call may succeed.
   */
  rollback: (workload: Workload, context: StepContext) => Promise<ApplyResult>;
  /**
   * Rejects if a workload does not have the images of `which`, or does not run in time. With `repaired`, it gives the
   * workloads these images again first, one after another, and adds each to the list when it runs, also those of a
   * process that this one has replaced.
   */
  check: (
    workloads: readonly Workload[],
    which: Direction,
    context: StepContext,
    repaired?: RepairedWorkload[],
  ) => Promise<void>;
  /** Does not reject: the job has ended and can no longer fail. */
  release: (jobId: string) => Promise<void>;
};

export type StepContext = {
  readonly jobId: string;
  readonly fence: number;
  /** The versions before and after the job. Equal in a repair. */
  readonly from: string;
  readonly to: string;
  readonly runStartedAt: number;
  /**
   * Identifies the change that the step makes in the job, in letters, digits and `-`. A step that is repeated in
   * the same run makes the same change.
   */
  readonly change: string;
  /** Rejects if another process has taken over the job. An executor calls it before every change to the deployment. */
  readonly assertOwnership: () => Promise<void>;
  readonly signal: AbortSignal;
  /** Says what the step waits for now. An executor calls it as often as it looks. */
  readonly report: (wait: Wait) => void;
};

export type Wait = {
  /** By its name in the deployment, for example `deployment/map-server`. */
  readonly object: string;
  /** A sentence without its full stop. */
  readonly reason: string;
};

/** One attempt to perform a step by a Job. */
export type TemplateRun = {
  readonly step: StepId;
  /** Null if the executor needs no template. */
  readonly template: string | null;
  readonly jobName: string;
  readonly from: string;
  readonly to: string;
};

export type TemplateResult = {
  /** The JSON object that the Job has left, as text. */
  readonly result?: string;
};

/** `isPatched` is false if the workload had the images before the step. */
export type ApplyResult = { readonly isPatched: boolean };

export type RepairedWorkload = ApplyResult & { readonly workload: Workload };

/** The deployment cannot be changed now: its server refuses or is unavailable, or another Steward holds its lock. */
export class RefusedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RefusedError';
  }
}
