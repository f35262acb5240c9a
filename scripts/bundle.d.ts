/** Bundles a variant of the server for tests. `remove` deletes its folder. */
export function bundleVariant(
  entries: Readonly<Record<string, string>>,
): Promise<{ folder: string; remove: () => void }>;
