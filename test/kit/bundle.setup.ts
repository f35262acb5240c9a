// Bundles the server for the tests that start processes, once per run, with the checks of process-main.ts.
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bundleVariant } from '../../scripts/bundle.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The file that starts a server process. */
    serverEntry: string;
  }
}

export async function setup({ vitest }: TestProject): Promise<(() => void) | undefined> {
  // Every project calls this. The first call bundles for all of them.
  if ('serverEntry' in vitest.getRootProject().getProvidedContext()) return undefined;
  const { folder, remove } = await bundleVariant({ main: 'test/kit/process-main.ts' });
  vitest.provide('serverEntry', join(folder, 'main.js'));
  return remove;
}
