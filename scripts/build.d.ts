/** Whether the last build in the checkout is newer than everything that it was made from. */
export function isBuildCurrent(root: string): boolean;
