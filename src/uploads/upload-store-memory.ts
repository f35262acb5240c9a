// Uploaded files in memory.
import type { MemoryAudit } from '../audit/audit-store-memory.ts';
import { freeze } from '../store/changes.ts';
import type { UploadStore, UploadWrites } from './upload-store.ts';
import type { Upload } from './upload.ts';

export type UploadDump = { readonly upload: Upload; readonly base64: string };

export class MemoryUploads {
  readonly #audit: MemoryAudit;
  readonly #files = new Map<string, { readonly upload: Upload; readonly bytes: Uint8Array }>();
  #bytes = 0;

  constructor(audit: MemoryAudit) {
    this.#audit = audit;
  }

  readonly port: UploadStore = {
    list: async () =>
      [...this.#files.values()]
        .map(({ upload }) => upload)
        .sort((a, b) => a.date - b.date || (a.itemID < b.itemID ? -1 : 1)),
    find: async (id) => this.find(id),
    content: async (id) => this.#files.get(id)?.bytes,
    add: async ({ upload, bytes }, limits, entry) => {
      if (this.#bytes + upload.size > limits.bytes) return 'bytes';
      if (this.#files.size + 1 > limits.count) return 'count';
      this.#put(upload, bytes);
      this.#audit.add(entry);
      return 'stored';
    },
  };

  readonly writes: UploadWrites = {
    delete: async (id) => {
      this.#bytes -= this.find(id)?.size ?? 0;
      this.#files.delete(id);
    },
  };

  find(id: string): Upload | undefined {
    return this.#files.get(id)?.upload;
  }

  dump(): UploadDump[] {
    return [...this.#files.values()].map(({ upload, bytes }) => ({
      upload,
      base64: Buffer.from(bytes).toString('base64'),
    }));
  }

  load(uploads: readonly UploadDump[]): void {
    for (const { upload, base64 } of uploads) this.#put(upload, Buffer.from(base64, 'base64'));
  }

  #put(upload: Upload, bytes: Uint8Array): void {
    this.#files.set(upload.itemID, { upload: freeze(upload), bytes });
    this.#bytes += upload.size;
  }
}
