/** Whether the last build in the checkout is newer than everything that it was made from. */
export function isBuildCurrent(root: string): boolean;

/** The commit of the checkout, with `-dirty` if files have changed. Undefined without git. */
export function findCommit(checkout: string): string | undefined;
