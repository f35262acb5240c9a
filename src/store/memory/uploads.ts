// Uploaded files in memory.
import type { Upload } from '../../uploads/upload.ts';
import { freeze } from '../changes.ts';
import type { UploadWrites } from '../transaction.ts';
import type { UploadLimits, UploadStore } from '../upload-store.ts';
import { done, run } from './run.ts';

export class MemoryUploads {
  readonly #files = new Map<string, { readonly upload: Upload; readonly bytes: Uint8Array }>();
  #bytes = 0;

  readonly port: UploadStore = {
    list: () =>
      run(() =>
        [...this.#files.values()]
          .map(({ upload }) => upload)
          .sort((a, b) => a.date - b.date || (a.itemID < b.itemID ? -1 : 1)),
      ),
    find: (id) => run(() => this.find(id)),
    content: (id) => run(() => this.#files.get(id)?.bytes),
    add: (upload, bytes, limits) => run(() => this.#add(upload, bytes, limits)),
  };

  readonly writes: UploadWrites = {
    delete: (id) => {
      this.#bytes -= this.find(id)?.size ?? 0;
      this.#files.delete(id);
      return done;
    },
  };

  find(id: string): Upload | undefined {
    return this.#files.get(id)?.upload;
  }

  #add(upload: Upload, bytes: Uint8Array, limits: UploadLimits): 'stored' | keyof UploadLimits {
    if (this.#bytes + upload.size > limits.bytes) return 'bytes';
    if (this.#files.size + 1 > limits.count) return 'count';
    this.#files.set(upload.itemID, { upload: freeze(upload), bytes });
    this.#bytes += upload.size;
    return 'stored';
  }
}
