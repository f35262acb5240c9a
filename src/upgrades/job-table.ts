// The stored records of jobs: the job itself, its plan and its messages.
import type { Shape } from '../store/shape.ts';
import type { Cell, Log, Reader, Table, Transaction } from '../store/transaction.ts';
import type { Message } from './messages.ts';
import type { Plan } from './plan.ts';
import type { Deployment } from './deployment.ts';

export const stateCodes = { no_upgrade: 0, in_progress: 1, failed: 2, success: 3, cancelled: 4 } as const;

export type JobState = Exclude<keyof typeof stateCodes, 'no_upgrade'>;

export type Job = {
  readonly id: string;
  /** Counts jobs in the order they were started. */
  readonly number: number;
  readonly operation: 'upgrade' | 'rollback';
  readonly kind: 'release' | 'patch' | 'rollback';
  readonly targetId: string;
  /** The ids of the versions that the job installs. */
  readonly installs: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly state: JobState;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly startedBy: string;
  /** The id of the process that runs the job. */
  readonly runner: string;
  /** Goes up when a job is resumed or taken over. Updates with an older fence change nothing. */
  readonly fence: number;
  readonly runStartedAt: number;
  /** Whether this run has announced read-only mode. */
  readonly announced: boolean;
  /** The index of the first step that is not done. */
  readonly next: number;
  readonly workloadsDone: number;
  /** `workloadsDone` when this run began. */
  readonly doneBeforeRun: number;
  readonly workloads: number;
  /** The administrator who asked to cancel the job. */
  readonly cancelledBy: string | null;
  /** Why the newest run failed or was cancelled. */
  readonly reason: string | null;
  /** Set while workloads are being reverted: next are those applied by steps before `before`. `then` is the final state. */
  readonly reverting: { readonly before: number; readonly then: 'failed' | 'cancelled' } | null;
  /** The uploads that must not be deleted while the job runs. */
  readonly uploads: readonly string[];
  readonly lastMessageAt: number;
};

/** A table of its own, because the job is stored again with every step and the plan never changes. */
export type StoredPlan = Plan & { readonly jobId: string; readonly after: Deployment };

/** Called when a job has started and when a run has ended, within the same update. */
export type OnJobChange = (transaction: Transaction, job: Job, at: number) => void;

export const jobs: Table<Job> = {
  name: 'jobs',
  keyOf: (job) => job.id,
  shape: {
    id: 'key',
    number: 'number',
    operation: 'text',
    kind: 'text',
    targetId: 'text',
    installs: 'json',
    from: 'text',
    to: 'text',
    state: 'text',
    startedAt: 'number',
    endedAt: 'number',
    startedBy: 'text',
    runner: 'text',
    fence: 'number',
    runStartedAt: 'number',
    announced: 'flag',
    next: 'number',
    workloadsDone: 'number',
    doneBeforeRun: 'number',
    workloads: 'number',
    cancelledBy: 'text',
    reason: 'text',
    reverting: 'json',
    uploads: 'json',
    lastMessageAt: 'number',
  } satisfies Shape<Job>,
};
export const plans: Table<StoredPlan> = {
  name: 'plans',
  keyOf: (plan) => plan.jobId,
  shape: { jobId: 'key', steps: 'json', workloads: 'number', after: 'json' } satisfies Shape<StoredPlan>,
};
export const messages: Log<Message> = {
  name: 'messages',
  shape: { code: 'number', message: 'text', when: 'number' } satisfies Shape<Message>,
};
export const newestJobId: Cell<string | null> = { name: 'newestJob', initial: null };

export function newestJob(reader: Reader): Job | undefined {
  const id = reader.read(newestJobId);
  return id === null ? undefined : reader.get(jobs, id);
}

export function isJobRunning(reader: Reader): boolean {
  return newestJob(reader)?.state === 'in_progress';
}

/** The newest job that installed a version. A fresh deployment has a version that no job installed. */
export function findInstallingJob(reader: Reader, versionId: string): Job | undefined {
  return listJobs(reader).find(({ state, installs }) => state === 'success' && installs.includes(versionId));
}

/** Newest first. */
export function listJobs(reader: Reader): Job[] {
  return [...reader.all(jobs)].sort((a, b) => b.number - a.number);
}
