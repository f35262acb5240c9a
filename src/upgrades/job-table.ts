// What is stored of a job, and how it is found.
import type { Shape } from '../store/shape.ts';
import type { Cell, Log, Reader, Table, Transaction } from '../store/transaction.ts';
import type { Message } from './messages.ts';
import type { Plan } from './plan.ts';
import type { Deployment } from './deployment.ts';

export const stateCodes = { no_upgrade: 0, in_progress: 1, failed: 2, success: 3, cancelled: 4 } as const;

export type JobState = Exclude<keyof typeof stateCodes, 'no_upgrade'>;

export type Job = {
  readonly id: string;
  /** Jobs in the order they were started. */
  readonly number: number;
  readonly operation: 'upgrade' | 'rollback';
  readonly kind: 'release' | 'patch' | 'rollback';
  readonly targetId: string;
  /** The ids of the versions it installs. */
  readonly installs: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly state: JobState;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly startedBy: string;
  /** The process that runs it. */
  readonly runner: string;
  /** Goes up whenever a process takes the job up: what is left of an earlier one changes nothing any more. */
  readonly fence: number;
  readonly runStartedAt: number;
  /** Whether this run has announced read-only mode. */
  readonly announced: boolean;
  readonly next: number;
  readonly workloadsDone: number;
  /** How many were done when this run began. */
  readonly doneBeforeRun: number;
  readonly workloads: number;
  readonly cancelledBy: string | null;
  /** Why its newest run failed or was cancelled. */
  readonly reason: string | null;
  /** Set while workloads are being put back: those applied by steps before `before`. */
  readonly reverting: { readonly before: number; readonly then: 'failed' | 'cancelled' } | null;
  /** Uploads that must not be deleted while it runs. */
  readonly uploads: readonly string[];
  readonly lastMessageAt: number;
};

/** Kept apart from the job, which changes with every step. */
export type StoredPlan = Plan & { readonly jobId: string; readonly after: Deployment };

/** Message of each job when it has been started and when a run of it has ended, within the same update. */
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

/** The newest job that installed a version; no job installed what a fresh deployment has. */
export function findInstallingJob(reader: Reader, versionId: string): Job | undefined {
  return listJobs(reader).find(({ state, installs }) => state === 'success' && installs.includes(versionId));
}

export function listJobs(reader: Reader): Job[] {
  return [...reader.all(jobs)].sort((a, b) => b.number - a.number);
}
