// Uploaded files, without their contents, and the rules for changing them.
import { ServiceError } from '../lib/errors.ts';
import { toNfc } from '../lib/text.ts';
import type { Reader, Table } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';

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
  keyOf: ({ itemID }) => itemID,
  defaults: {},
  bytesOf: ({ size }) => size,
  auditFields: ({ itemName, description, contentType, size }) => ({
    itemName,
    description,
    contentType,
    size,
  }),
};

/** Oldest first. */
export function listUploads(reader: Reader): Upload[] {
  return [...reader.all(uploads)].sort((a, b) => a.date - b.date || (a.itemID < b.itemID ? -1 : 1));
}

/** Bounds the list, which bytes alone do not: files may be empty. */
const maxUploads = 10_000;

export function addUpload(transaction: Transaction, upload: Upload, maxTotalBytes: number): void {
  if (transaction.bytes(uploads) + upload.size > maxTotalBytes)
    throw noRoom(`all uploads together must be at most ${maxTotalBytes} bytes`);
  if (transaction.count(uploads) >= maxUploads) throw noRoom(`there must be at most ${maxUploads} uploads`);
  transaction.put(uploads, upload);
}

function noRoom(rule: string): ServiceError {
  return new ServiceError('too-large', 'There is no room for this upload.', {
    problems: [{ field: 'itemFile', message: `${rule}; delete some first.` }],
  });
}

export function inUse({ itemID }: Upload): ServiceError {
  return new ServiceError('conflict', `The upload ${itemID} is used by a job that is in progress.`);
}

/** Some browsers send the path on the user's machine. */
export function plainFileName(name: string): string {
  return toNfc(name.split(/[/\\]/).at(-1) ?? '').trim();
}

/** The client chooses the content type of a part. */
export function isContentType(text: string): boolean {
  return text.length <= 255 && !/\p{Cc}/u.test(text);
}
