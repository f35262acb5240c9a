// Bundles the server for the tests that start processes, once per run: a process loads a few files instead of a thousand.
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  // oxlint-disable-next-line typescript/consistent-type-definitions -- Only an interface can be extended.
  interface ProvidedContext {
    /** The file that starts a server process. */
    serverEntry: string;
  }
}

const checkout = fileURLToPath(new URL('../../', import.meta.url));

/** The files that the server reads at run time, and where it expects them beside its code. */
const files = [
  ['package.json', 'package.json'],
  ['wsdl', 'dist/wsdl'],
  ['src/http/assets', 'dist/http/assets'],
  ['src/store/postgres/migrations', 'dist/store/postgres/migrations'],
] as const;

export async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Every project calls this. The first call bundles for all of them.
  if ('serverEntry' in vitest.getRootProject().getProvidedContext()) return undefined;
  // Inside node_modules, so that the bundle finds the packages that are no part of it.
  const cache = join(checkout, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const directory = await mkdtemp(join(cache, 'steward-server-'));
  await build({
    entryPoints: { main: join(checkout, 'test/kit/process-main.ts') },
    outdir: join(directory, 'dist'),
    bundle: true,
    // What the server loads only when it is used stays in files of its own.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    keepNames: true,
    sourcemap: 'linked',
    // The server imports undici when it sends a request, and a bundled package in CommonJS has no named exports then.
    external: ['pg-native', 'undici'],
    // Packages in CommonJS call `require`, which modules do not have.
    banner: {
      js: "import { createRequire as bundledRequire } from 'node:module'; const require = bundledRequire(import.meta.url);",
    },
    logLevel: 'error',
  });
  for (const [from, to] of files) await cp(join(checkout, from), join(directory, to), { recursive: true });
  vitest.provide('serverEntry', join(directory, 'dist/main.js'));
  return () => rm(directory, { recursive: true, force: true });
}
