/** Writes the executable and the licenses into the folder, and returns the path of the executable. */
export function buildExecutable(folder: string): Promise<string>;
