// The port of uploaded files. `Transaction.uploads` deletes one.
import type { AuditEntry } from '../store/audit-entry.ts';
import type { Upload } from './upload.ts';

export type UploadStore = {
  /** Oldest first. */
  list: () => Promise<readonly Upload[]>;
  find: (id: string) => Promise<Upload | undefined>;
  content: (id: string) => Promise<Uint8Array | undefined>;
  /** Stores the file and the entry, unless all uploads together would then exceed a limit: the result names it. */
  add: (upload: NewUpload, limits: UploadLimits, entry: AuditEntry) => Promise<'stored' | keyof UploadLimits>;
};

export type NewUpload = { readonly upload: Upload; readonly bytes: Uint8Array };

export type UploadLimits = { readonly bytes: number; readonly count: number };

export type UploadWrites = {
  delete: (id: string) => Promise<void>;
};

declare module '../store/transaction.ts' {
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface Needs {
    /** Ids of uploads. */
    readonly uploads?: readonly string[] | undefined;
  }
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface TransactionFacts {
    readonly upload: (id: string) => Upload | undefined;
  }
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface TransactionWrites {
    readonly uploads: UploadWrites;
  }
}

declare module '../store/store.ts' {
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface StorePorts {
    readonly uploads: UploadStore;
  }
}
