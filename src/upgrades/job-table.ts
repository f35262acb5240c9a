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
};

/** The plan has its own table, because the job is stored again with every step and the plan never changes. */
export type StoredPlan = Plan & { readonly jobId: string; readonly after: Deployment };

/** Runs in the update that starts or ends a run, so that the store has the event if and only if it has the new state. */
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

/** Undefined for the version of a fresh deployment, which no job installed. */
export function findInstallingJob(reader: Reader, versionId: string): Job | undefined {
  return listJobs(reader).find(({ state, installs }) => state === 'success' && installs.includes(versionId));
}

export function listJobs(reader: Reader): Job[] {
  return [...reader.all(jobs)].sort((a, b) => b.number - a.number);
}
