// The stored records of jobs: the newest job, which is replicated state, the plan of a job, and the port of the others.
import { notAudited } from '../../lib/audit-fields.ts';
import type { Cell, Reader } from '../../store/state.ts';
import type { Wait } from '../executors/executor.ts';
import type { Plan } from '../planning/plan.ts';
import type { Message } from '../planning/messages.ts';
import type { Progress } from './progress.ts';
import type { Timeline } from './timeline.ts';

export const stateCodes = {
  no_upgrade: 0,
  in_progress: 1,
  failed: 2,
  success: 3,
  cancelled: 4,
  scheduled: 5,
} as const;

export type JobState = Exclude<keyof typeof stateCodes, 'no_upgrade'>;

/** What a request gives to a job. */
export type RequestedJob = {
  readonly id: string;
  readonly operation: 'upgrade' | 'rollback';
  readonly kind: 'release' | 'patch' | 'rollback';
  readonly targetId: string;
  readonly from: string;
  readonly to: string;
  readonly startedBy: string;
  readonly runner: string;
  /** These uploads must not be deleted before the job ends. */
  readonly uploads: readonly string[];
  /** Whether it may start while no maintenance window is open. */
  readonly ignoresWindows: boolean;
};

export type Job = RequestedJob & {
  readonly number: number;
  readonly state: JobState;
  /** When the job is to start. Null if it started as soon as it was accepted. */
  readonly startAt: number | null;
  /** Null until the job starts. A job that failed or was cancelled before has not changed anything. */
  readonly startedAt: number | null;
  /** Whether no process could start it in time. */
  readonly hasMissedStart: boolean;
  readonly endedAt: number | null;
  /** Goes up when a job is resumed or taken over. Updates with an older fence change nothing. */
  readonly fence: number;
  /** Goes up with every update of the runner. An update that was made for an older revision changes nothing. */
  readonly revision: number;
  /** Goes up when the job is resumed. */
  readonly run: number;
  readonly runStartedAt: number;
  /** Whether this run has announced read-only mode. */
  readonly announced: boolean;
  readonly next: number;
  /** Whether the start messages of the step `next` are recorded. */
  readonly isBegun: boolean;
  /** The attempts that have ended, by the `seqNum` of their step. */
  readonly attempts: Readonly<Record<number, number>>;
  /** The steps that a rollback or reverting has begun ahead, and the run that has begun each. Absent: none. */
  readonly begun?: Readonly<Record<number, number>>;
  readonly workloadsDone: number;
  readonly workloads: number;
  readonly hops: JobHops;
  readonly progress: Progress;
  readonly timeline: Timeline;
  /** Set when an administrator asks to cancel. The job still runs then. */
  readonly cancelledBy: string | null;
  readonly reason: string | null;
  /**
   * The number of the step that has failed last. `next` may be an earlier one, because the job has reverted
   * workloads since.
   */
  readonly failedAt: number | null;
  /** Set while the job reverts workloads, and in a failed job that stopped before it had reverted all of them. */
  readonly reverting: Reverting | null;
  /** What the current step waits for. Absent: nothing is known. */
  readonly waitingFor?: JobWait | null;
  readonly lastMessageAt: number;
  /** All messages that the job has recorded, even if the store has removed them since. */
  readonly messageCount: number;
};

/** `since` is when the step began to wait for the object. */
export type JobWait = Wait & { readonly step: string; readonly since: number };

type JobHops = {
  readonly all: readonly JobHop[];
  readonly done: number;
  /** When finished hops ended, by the ids of their versions. These stay installed, however the job ends. */
  readonly installedAt: Readonly<Record<string, number>>;
};

type JobHop = {
  /** The release, or the last of the patches. */
  readonly version: string;
  readonly isRelease: boolean;
};

export type Reverting = {
  /** The indexes of the steps that this run still has to revert, newest first. */
  readonly left: readonly number[];
  /** Those that this run was refused, newest first. */
  readonly refused: readonly number[];
  /** The state in which the job ends when all workloads are reverted. */
  readonly then: 'failed' | 'cancelled';
  /** The start of the deadline, in this run. */
  readonly since: number;
  readonly reason: string | null;
  /** Set when an administrator asks to stop. The job still completes what it has begun. */
  readonly stoppedBy?: string;
};

/**
 * The plan is stored apart from the job, because the job is stored again with every step and the plan never
 * changes.
 */
export type StoredPlan = Plan & {
  readonly jobId: string;
  /** Of a scheduled job: what its second preflight needs. */
  readonly request?: ScheduledRequest;
};

export type ScheduledRequest = {
  /** The digest of the plan that was accepted. */
  readonly digest: string;
  readonly versionManifest: string;
  readonly upgradeSettings?: Readonly<Record<string, unknown>> | undefined;
  readonly updateToLatestPatch?: boolean | undefined;
};

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
          ...(job.startAt !== null && { startAt: job.startAt }),
        },
  idOf: (job) => job?.id,
};

/**
 * The failed job that had to be repaired when the newest one started, if there was one. If the newest has not
 * repaired it, this one decides what may start.
 */
export const jobBefore: Cell<Job | null> = { name: 'jobBefore', initial: null, auditFields: notAudited };

export type EndState = Exclude<JobState, 'scheduled' | 'in_progress'>;

/** What the runs of all jobs have come to. A job that fails, is resumed and succeeds has two runs. */
type RunTotals = {
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

/** A scheduled job changes nothing yet, but no other job may start. */
export function isOpen({ state }: Job): boolean {
  return state === 'scheduled' || state === 'in_progress';
}

export function hasInstalled({ hops }: Job, versionId: string): boolean {
  return hops.installedAt[versionId] !== undefined;
}

/** Jobs that are no longer the newest, and the plans and messages of all jobs. `Transaction.jobs` has the writes. */
export type JobStore = {
  find: (id: string) => Promise<Job | undefined>;
  /** Archived jobs with a number below `below`, newest first, and how many there are. */
  page: (
    below: number,
    start: number,
    num: number,
  ) => Promise<{ readonly jobs: readonly Job[]; readonly total: number }>;
  /** The newest archived job that has installed the version. It may have failed in a later hop. */
  findInstalling: (versionId: string) => Promise<Job | undefined>;
  plan: (jobId: string) => Promise<StoredPlan | undefined>;
  /** The messages of a job after the first `after`. Empty if they were removed (`Retention`). */
  messages: (jobId: string, after?: number) => Promise<readonly Message[]>;
};

export type JobWrites = {
  savePlan: (plan: StoredPlan) => Promise<void>;
  deletePlan: (jobId: string) => Promise<void>;
  /** Adds messages; `from` is the number of messages that the job has before. */
  appendMessages: (jobId: string, from: number, messages: readonly Message[]) => Promise<void>;
  /** Stores a job that is no longer the newest. */
  archive: (job: Job) => Promise<void>;
};

declare module '../../store/transaction.ts' {
  interface TransactionWrites {
    readonly jobs: JobWrites;
  }
}

declare module '../../store/store.ts' {
  interface StorePorts {
    readonly jobs: JobStore;
  }
}
