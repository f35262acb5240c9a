// The port of uploaded files. `Transaction.uploads` deletes one.
import type { Upload } from '../uploads/upload.ts';

export type UploadStore = {
  /** Oldest first. */
  list: () => Promise<readonly Upload[]>;
  find: (id: string) => Promise<Upload | undefined>;
  content: (id: string) => Promise<Uint8Array | undefined>;
  /** Stores the file, unless all uploads together would then exceed a limit: the result names it. */
  add: (upload: Upload, bytes: Uint8Array, limits: UploadLimits) => Promise<'stored' | keyof UploadLimits>;
};

export type UploadLimits = { readonly bytes: number; readonly count: number };
