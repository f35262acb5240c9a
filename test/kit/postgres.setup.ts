// Provides PostgreSQL for a test run: the server of DATABASE_URL, or a temporary one that is configured for speed instead of durability.
import { rm } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import { createPostgresDirectory, createPostgresServer } from './postgres-server.js';

declare module 'vitest' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions -- Only an interface can be extended.
  interface ProvidedContext {
    databaseUrl: string;
    postgresDirectory: string;
  }
}

export async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Every project calls this. The first call starts the server for all of them.
  if ('databaseUrl' in vitest.getRootProject().getProvidedContext()) return undefined;
  const directory = await createPostgresDirectory();
  vitest.provide('postgresDirectory', directory);
  const given = process.env.DATABASE_URL ?? '';
  const fast = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=200'];
  const server = given === '' ? await createPostgresServer(directory, fast) : undefined;
  vitest.provide('databaseUrl', server?.url ?? given);
  return async () => {
    await server?.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  };
}
