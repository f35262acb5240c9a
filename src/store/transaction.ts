// The transaction of an update, which a rule reads and writes.
//
// A rule is synchronous and may run more than once, so it must do nothing but read and write the transaction. A write that belongs to
// another port but must commit with the change, such as the deliveries of an event, is a method of the transaction too.
import type { AuditEntry } from '../audit/entry.ts';
import type { Token } from '../auth/token.ts';
import type { StoredPlan, Job } from '../upgrades/job-table.ts';
import type { Message } from '../upgrades/messages.ts';
import type { Upload } from '../uploads/upload.ts';
import type { Delivery } from '../webhooks/delivery.ts';
import type { FailureWindow } from '../webhooks/failure-window.ts';
import type { Cell, ChangedRow, Reader, Table } from './state.ts';

/** Rows of other ports that a rule reads. The store reads them in the transaction, before it runs the rule. */
export type Needs = {
  /** Hashes of tokens. */
  readonly tokens?: readonly string[] | undefined;
  /** Ids of uploads. */
  readonly uploads?: readonly string[] | undefined;
  /** Webhooks whose failure windows are read. No other update changes these windows until this one has ended. */
  readonly failuresOf?: readonly string[] | undefined;
};

export type Transaction = Reader & {
  /** Adds the row, or replaces the one with the same key. */
  put: <T>(table: Table<T>, row: T) => void;
  remove: (table: Table<never>, key: string) => void;
  write: <T>(cell: Cell<T>, value: T) => void;
  /** What the transaction has put, removed and written so far. */
  changed: () => readonly ChangedRow[];
  /** Reads a token that `Needs` names. */
  token: (hash: string) => Token | undefined;
  /** Reads an upload that `Needs` names. */
  upload: (id: string) => Upload | undefined;
  /** Reads the failure window of a webhook that `Needs` names. */
  failures: (webhookId: string) => FailureWindow | null;
} & { readonly [P in keyof TransactionWrites]: RecordedWrites<TransactionWrites[P]> };

/** Writes to the other ports. They take effect with the commit, in the order of the calls. */
export type TransactionWrites = {
  readonly audit: AuditWrites;
  readonly deliveries: DeliveryWrites;
  readonly jobs: JobWrites;
  readonly tokens: TokenWrites;
  readonly uploads: UploadWrites;
};

/** The same methods, which record the call. The promise of a count is resolved by the commit: a rule returns it, and does not wait. */
type RecordedWrites<W> = { readonly [M in keyof W]: RecordedWrite<W[M]> };

type RecordedWrite<F> = F extends (...args: infer A) => Promise<number>
  ? (...args: A) => Promise<number>
  : F extends (...args: infer A) => unknown
    ? (...args: A) => void
    : never;

export type AuditWrites = {
  record: (entry: AuditEntry) => Promise<void>;
};

export type DeliveryWrites = {
  enqueue: (deliveries: readonly Delivery[]) => Promise<void>;
  /** Links a finished delivery to the one that repeats it. */
  markRedelivered: (id: string, as: string) => Promise<void>;
  /** Ends every pending delivery of the webhook that is neither claimed nor a ping as `discarded`. The result is their number. */
  discardPending: (webhookId: string, at: number) => Promise<number>;
  /** Deletes every delivery and the failure window of the webhook. Claims of its deliveries are lost. The result is how many were pending. */
  deleteAll: (webhookId: string) => Promise<number>;
  /** Sets the failure window; null removes it. */
  setFailures: (webhookId: string, window: FailureWindow | null) => Promise<void>;
  /** Replaces a claimed delivery and releases the claim. The update fails with `LostClaim` if the process no longer holds it. */
  complete: (claimed: Delivery, delivery: Delivery) => Promise<void>;
};

export type JobWrites = {
  savePlan: (plan: StoredPlan) => Promise<void>;
  deletePlan: (jobId: string) => Promise<void>;
  /** Adds messages; `from` is the number of messages that the job has before. */
  appendMessages: (jobId: string, from: number, messages: readonly Message[]) => Promise<void>;
  /** Stores a job that is no longer the newest. */
  archive: (job: Job) => Promise<void>;
};

export type TokenWrites = {
  /** Ends all tokens of the user, ignoring case, except one, which stays valid with another credential id. */
  endAll: (username: string, except?: KeptToken) => Promise<void>;
  end: (hash: string) => Promise<void>;
};

export type KeptToken = Pick<Token, 'hash' | 'credentialId'>;

export type UploadWrites = {
  delete: (id: string) => Promise<void>;
};

/** This process no longer holds the claim, so it must not complete the delivery. */
export class LostClaim extends Error {
  constructor(id: string) {
    super(`The claim of ${id} is lost.`);
    this.name = 'LostClaim';
  }
}
