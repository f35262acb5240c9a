// Provides PostgreSQL for a test run: the server of DATABASE_URL, or a temporary one that is configured for speed
// instead of durability.
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { createPostgresDirectory, createPostgresServer } from './postgres-server.js';

declare module 'vitest' {
  interface ProvidedContext {
    databaseUrl: string;
    /** Begins the names of all schemas of this run. */
    schemaPrefix: string;
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
  const schemaPrefix = `test_${randomBytes(4).toString('hex')}_`;
  vitest.provide('schemaPrefix', schemaPrefix);
  return async () => {
    if (server) await server.stop();
    else await dropSchemas(given, schemaPrefix);
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  };
}

async function dropSchemas(url: string, prefix: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    'SELECT nspname AS name FROM pg_namespace WHERE starts_with(nspname, $1)',
    [prefix],
  );
  for (const { name } of rows) await client.query(`DROP SCHEMA ${name} CASCADE`);
  await client.end();
}
