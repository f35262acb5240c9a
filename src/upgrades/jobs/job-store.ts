// The port of jobs that are no longer the newest, and of the plans and messages of all jobs. The newest job itself
// is replicated state (`newestJob` in job-table.ts). `Transaction.jobs` has the writes.
import type { Job, StoredPlan } from './job-table.ts';
import type { Message } from './messages.ts';

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
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface TransactionWrites {
    readonly jobs: JobWrites;
  }
}

declare module '../../store/store.ts' {
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface StorePorts {
    readonly jobs: JobStore;
  }
}
