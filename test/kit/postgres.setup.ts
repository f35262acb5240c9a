// Brings PostgreSQL to a run of the tests: the server that DATABASE_URL names, or else one of our own, quick instead of durable and gone
// at the end.
import { rm } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import { createPostgresDirectory, createPostgresServer } from './postgres-server.js';

declare module 'vitest' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions -- Only an interface can be added to.
  interface ProvidedContext {
    databaseUrl: string;
    postgresDirectory: string;
  }
}

export async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Every project runs this, one after the other; the first one has done it for all.
  if ('databaseUrl' in vitest.getRootProject().getProvidedContext()) return undefined;
  const directory = await createPostgresDirectory();
  vitest.provide('postgresDirectory', directory);
  const given = process.env.DATABASE_URL ?? '';
  const quick = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=200'];
  const server = given === '' ? await createPostgresServer(directory, quick) : undefined;
  vitest.provide('databaseUrl', server?.url ?? given);
  return async () => {
    await server?.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  };
}
