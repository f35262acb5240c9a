// Uploaded files and the limit on their total size.
import { toNfc } from '../lib/text.ts';
import { ServiceError } from '../errors.ts';
import type { Shape } from '../store/shape.ts';
import type { Archive, Reader, Table, Transaction } from '../store/transaction.ts';

export type Upload = {
  readonly itemID: string;
  readonly itemName: string;
  readonly description: string;
  readonly date: number;
  readonly committed: true;
  readonly contentType: string;
  readonly size: number;
};

export const uploads: Table<Upload> = {
  name: 'uploads',
  keyOf: (upload) => upload.itemID,
  shape: {
    itemID: 'key',
    itemName: 'text',
    description: 'text',
    date: 'number',
    committed: 'flag',
    contentType: 'text',
    size: 'number',
  } satisfies Shape<Upload>,
};

export type UploadContent = { readonly itemID: string; readonly bytes: Uint8Array };

export const uploadContents: Archive<UploadContent> = {
  name: 'uploadContents',
  keyOf: (content) => content.itemID,
  shape: { itemID: 'key', bytes: 'bytes' } satisfies Shape<UploadContent>,
  isArchive: true,
};

/** Bounds the list, which bytes alone do not: files may be empty. */
const maxUploads = 10_000;

export function listUploads(reader: Reader): Upload[] {
  return [...reader.all(uploads)].sort((a, b) => a.date - b.date || (a.itemID < b.itemID ? -1 : 1));
}

export function storeUpload(
  transaction: Transaction,
  upload: Upload,
  bytes: Uint8Array,
  maxTotalBytes: number,
): void {
  let total = upload.size;
  let count = 1;
  for (const { size } of transaction.all(uploads)) {
    total += size;
    count += 1;
  }
  if (total > maxTotalBytes)
    throw noRoom(`all uploads together must be at most ${maxTotalBytes} bytes; delete some first.`);
  if (count > maxUploads) throw noRoom(`there must be at most ${maxUploads} uploads; delete some first.`);
  transaction.put(uploads, upload);
  transaction.put(uploadContents, { itemID: upload.itemID, bytes });
}

function noRoom(message: string): ServiceError {
  return new ServiceError('too-large', 'There is no room for this upload.', {
    problems: [{ field: 'itemFile', message }],
  });
}

export function deleteUpload(transaction: Transaction, { itemID }: Upload, isInUse: boolean): void {
  if (isInUse)
    throw new ServiceError('conflict', `The upload ${itemID} is used by a job that is in progress.`);
  transaction.remove(uploads, itemID);
  transaction.remove(uploadContents, itemID);
}

/** Some browsers send the path on the user's machine. */
export function plainFileName(name: string): string {
  return toNfc(name.split(/[/\\]/).at(-1) ?? '').trim();
}
