// Uploaded files, and the errors of the limits on them.
import { ServiceError } from '../lib/errors.ts';
import { toNfc } from '../lib/text.ts';

export type Upload = {
  readonly itemID: string;
  readonly itemName: string;
  readonly description: string;
  readonly date: number;
  readonly committed: true;
  readonly contentType: string;
  readonly size: number;
};

/** Bounds the list, which bytes alone do not: files may be empty. */
export const maxUploads = 10_000;

/** `exceeded` is the limit that one more upload would exceed. */
export function noRoom(exceeded: 'bytes' | 'count', maxTotalBytes: number): ServiceError {
  const rule =
    exceeded === 'bytes'
      ? `all uploads together must be at most ${maxTotalBytes} bytes`
      : `there must be at most ${maxUploads} uploads`;
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
