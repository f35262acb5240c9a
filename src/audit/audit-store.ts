// The port of the audit trail. `Transaction.audit` records an entry together with the change that it describes.
import type { AuditEntry, AuditFilter } from '../store/audit-entry.ts';

/** How many entries a batch of `read` has. A client that does not read its export keeps one batch in memory. */
export const readBatch = 500;

export type AuditStore = {
  /** Newest first, and how many match, at most `maxCountedEntries`. */
  page: (
    filter: AuditFilter,
    start: number,
    num: number,
  ) => Promise<{ readonly entries: readonly AuditEntry[]; readonly total: number }>;
  /** All matching entries, newest first, in batches, so that entries that are added meanwhile move nothing. */
  read: (filter: AuditFilter, start: number) => AsyncIterable<readonly AuditEntry[]>;
  /** Stores an entry that describes no change, unless one with its id is stored already. */
  add: (entry: AuditEntry) => Promise<void>;
  /**
   * Stores a refusal, or counts it in the entry of an equal one (`mergeKeyOf`) that is less than a minute old. The
   * result is the id of the entry that counts it.
   */
  count: (refusal: AuditEntry) => Promise<string>;
  /** Deletes older entries, in batches. */
  removeBefore: (at: number, stopping?: AbortSignal) => Promise<void>;
};

export type AuditWrites = {
  record: (entry: AuditEntry) => Promise<void>;
};

/** The names of what the entries concern. The features know them. */
export type TargetNames = {
  /** Undefined if the path has no name, or is that of something deleted. */
  nameOf: (target: string) => Promise<string | undefined>;
  /** The targets whose names contain the text, ignoring case. */
  find: (text: string) => readonly string[];
};

declare module '../store/transaction.ts' {
  interface TransactionWrites {
    readonly audit: AuditWrites;
  }
}

declare module '../store/store.ts' {
  interface StorePorts {
    readonly audit: AuditStore;
  }
}
