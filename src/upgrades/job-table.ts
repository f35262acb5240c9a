// The stored records of jobs: the newest job, which is replicated state, and the plan of a job.
import { notAudited } from '../audit/value.ts';
import type { Cell, Reader } from '../store/state.ts';
import type { Plan } from './plan.ts';
import type { Progress } from './progress.ts';
import type { Deployment } from './deployment.ts';
import type { Timeline } from './timeline.ts';

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
  /** Goes up when the job is resumed. Jobs of version 0.1 have none. */
  readonly run?: number;
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
  /** The final check of this run has repaired those of the first `repaired` moved workloads that differed. */
  readonly repaired?: number;
  readonly workloadsDone: number;
  readonly workloads: number;
  /** Only if the job has several hops, like the three fields below. */
  readonly hops?: readonly JobHop[];
  readonly hopsDone?: number;
  /** The ids of the versions of finished hops. They stay installed, however the job ends. */
  readonly installed?: readonly string[];
  /** When their hop ended, by their ids. */
  readonly installedAt?: Readonly<Record<string, number>>;
  /** Jobs that version 0.1 has ended have none. */
  readonly progress?: Progress;
  /** Jobs that version 0.1 has started have none. */
  readonly timeline?: Timeline;
  /** Set when an administrator asks to cancel. The job still runs then. */
  readonly cancelledBy: string | null;
  readonly reason: string | null;
  /** The number of the step that has failed last. `next` may be an earlier one, because the job has reverted workloads since. */
  readonly failedAt?: number;
  /** Set while the job reverts workloads, and in a failed job that stopped before it had reverted all of them. */
  readonly reverting: Reverting | null;
  /** These uploads must not be deleted while the job runs. */
  readonly uploads: readonly string[];
  readonly lastMessageAt: number;
  /** All messages that the job has recorded, even if the store has removed them since. */
  readonly messageCount: number;
};

export type JobHop = {
  /** The release, or the last of the patches. */
  readonly version: string;
  readonly isRelease: boolean;
};

export type Reverting = {
  /** Steps before this index are not reverted yet. */
  readonly before: number;
  /** Steps after it that an earlier run was refused, newest first. This run reverts them before the others. */
  readonly again?: readonly number[];
  /** Steps that this run was refused, newest first. */
  readonly refused?: readonly number[];
  /** The state in which the job ends when all workloads are reverted. */
  readonly then: 'failed' | 'cancelled';
  /** The start of the deadline, in this run. Absent in a job that version 0.1 has begun to revert. */
  readonly since?: number;
  readonly reason?: string | null;
  /** Set when an administrator asks to stop. The job still reverts the current workload then. */
  readonly stoppedBy?: string;
};

/** The plan is stored apart from the job, because the job is stored again with every step and the plan never changes. */
export type StoredPlan = Plan & { readonly jobId: string; readonly after: Deployment };

export const newestJob: Cell<Job | null> = {
  name: 'newestJob',
  initial: null,
  auditFields: (job) =>
    job === null
      ? {}
      : {
          operation: job.operation,
          from: job.from,
          to: job.to,
          state: job.state,
          reason: job.reason,
          cancelledBy: job.cancelledBy,
        },
  idOf: (job) => job?.id,
};

/**
 * The failed job that had to be repaired when the newest one started, if there was one. If the newest has not repaired it, this one decides
 * what may start. Version 0.1 stored the newest job that was not cancelled, in whatever state.
 */
export const jobBefore: Cell<Job | null> = { name: 'jobBefore', initial: null, auditFields: notAudited };

export type EndState = Exclude<JobState, 'in_progress'>;

/** What the runs of all jobs have come to. A job that fails, is resumed and succeeds has two runs. */
export type RunTotals = {
  readonly ended: Readonly<Record<Job['operation'], Readonly<Record<EndState, number>>>>;
  readonly lastSuccessAt: number | null;
};

const noRuns = { success: 0, failed: 0, cancelled: 0 };

export const runTotals: Cell<RunTotals> = {
  name: 'runTotals',
  initial: { ended: { upgrade: noRuns, rollback: noRuns }, lastSuccessAt: null },
  auditFields: notAudited,
};

export function isJobRunning(reader: Reader): boolean {
  return reader.read(newestJob)?.state === 'in_progress';
}

export function hasInstalled({ state, installs, installed = [] }: Job, versionId: string): boolean {
  return state === 'success' ? installs.includes(versionId) : installed.includes(versionId);
}

/** The last hop ends with the job. Null if it has not. */
export function timeOfInstalling({ endedAt, installedAt = {} }: Job, versionId: string): number | null {
  return installedAt[versionId] ?? endedAt;
}
