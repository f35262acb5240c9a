// The stored records of jobs: the newest job, which is replicated state, and the plan of a job.
import type { Cell, Reader } from '../store/state.ts';
import type { Plan } from './plan.ts';
import type { Deployment } from './deployment.ts';

export const stateCodes = { no_upgrade: 0, in_progress: 1, failed: 2, success: 3, cancelled: 4 } as const;

export type JobState = Exclude<keyof typeof stateCodes, 'no_upgrade'>;

export type Job = {
  readonly id: string;
  readonly number: number;
  readonly operation: 'upgrade' | 'rollback';
  readonly kind: 'release' | 'patch' | 'rollback';
  readonly targetId: string;
  readonly installs: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly state: JobState;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly startedBy: string;
  readonly runner: string;
  /** Goes up when a job is resumed or taken over. Updates with an older fence change nothing. */
  readonly fence: number;
  readonly runStartedAt: number;
  /** Whether this run has announced read-only mode. */
  readonly announced: boolean;
  readonly next: number;
  /** Whether the start messages of the step `next` are recorded. Jobs of version 0.1 have none of these three fields. */
  readonly isBegun?: boolean;
  /** The attempts that have ended, by the `seqNum` of their step. */
  readonly attempts?: Readonly<Record<number, number>>;
  /** Why the step `next` must end. Its Job may still exist. */
  readonly stopping?: string | null;
  readonly workloadsDone: number;
  readonly doneBeforeRun: number;
  readonly workloads: number;
  /** Set when an administrator asks to cancel. The job still runs then. */
  readonly cancelledBy: string | null;
  readonly reason: string | null;
  /** Set while the job reverts workloads. Steps before the index `before` are not reverted yet. The job ends in the state `then`. */
  readonly reverting: { readonly before: number; readonly then: 'failed' | 'cancelled' } | null;
  /** These uploads must not be deleted while the job runs. */
  readonly uploads: readonly string[];
  readonly lastMessageAt: number;
  /** All messages that the job has recorded, even if the store has removed them since. */
  readonly messageCount: number;
};

/** The plan is stored apart from the job, because the job is stored again with every step and the plan never changes. */
export type StoredPlan = Plan & { readonly jobId: string; readonly after: Deployment };

export const newestJob: Cell<Job | null> = { name: 'newestJob', initial: null };

/** The newest of the earlier jobs that were not cancelled. A cancelled job has changed nothing, so this one decides what may start. */
export const jobBefore: Cell<Job | null> = { name: 'jobBefore', initial: null };

export function isJobRunning(reader: Reader): boolean {
  return reader.read(newestJob)?.state === 'in_progress';
}
