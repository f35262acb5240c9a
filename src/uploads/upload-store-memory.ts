// The contents of uploaded files in memory.
import type { UploadContents } from './upload-store.ts';

/** The contents in base64, by id. */
export type UploadDump = Readonly<Record<string, string>>;

export class MemoryUploads {
  readonly #contents = new Map<string, Uint8Array>();

  readonly port: UploadContents = {
    content: async (id) => this.#contents.get(id),
    add: async (id, content) => {
      this.#contents.set(id, content);
    },
    remove: async (id) => {
      this.#contents.delete(id);
    },
  };

  dump(): UploadDump {
    return Object.fromEntries(
      [...this.#contents].map(([id, content]) => [id, Buffer.from(content).toString('base64')]),
    );
  }

  load(contents: UploadDump): void {
    for (const [id, base64] of Object.entries(contents))
      this.#contents.set(id, Buffer.from(base64, 'base64'));
  }
}
