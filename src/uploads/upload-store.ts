// The port of the contents of uploaded files. The uploads themselves are rows of the replicated state.
//
// A content is stored before the update that adds its upload, and removed after the update that deletes it: no upload
// lacks its content, and no update waits while a file is transferred. If a process ends in between, the store removes
// the content that has no upload after an hour.

export type UploadContents = {
  content: (id: string) => Promise<Uint8Array | undefined>;
  add: (id: string, content: Uint8Array) => Promise<void>;
  /** Never throws: the store removes later what it cannot remove now. */
  remove: (id: string) => Promise<void>;
};

declare module '../store/store.ts' {
  interface StorePorts {
    readonly uploads: UploadContents;
  }
}
