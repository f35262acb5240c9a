// A real PostgreSQL for tests: an empty private place within the server that all of a run share, or a server of one's own to
// kill. What a test leaves behind is gone at the end of its file.
import { randomUUID } from 'node:crypto';
import { Pool, type QueryResultRow } from 'pg';
import { afterAll, inject } from 'vitest';
import { type PostgresServer, createPostgresServer } from './postgres-server.js';

export type { PostgresServer };

let admin: Pool | undefined;
const places = new Set<{ drop: () => Promise<void> }>();
const servers = new Set<PostgresServer>();

afterAll(async () => {
  await Promise.all([...servers].map((server) => server.stop()));
  await Promise.all([...places].map((place) => place.drop()));
  await admin?.end();
  admin = undefined;
});

/** By one connection for all of a file. */
async function ask<R extends QueryResultRow>(statement: string): Promise<R[]> {
  admin ??= new Pool({ connectionString: inject('databaseUrl'), max: 1, allowExitOnIdle: true });
  return (await admin.query<R>(statement)).rows;
}

/**
 * A schema, which takes half a millisecond where a database takes twenty; what connects by its URL is inside of it. Advisory
 * locks and notifications are not: those are the database's, and all places are in one.
 */
export async function createDatabase() {
  const name = `place_${randomUUID().replaceAll('-', '')}`;
  await ask(`CREATE SCHEMA ${name}`);
  const url = new URL(inject('databaseUrl'));
  url.searchParams.set('options', `--search_path=${name}`);
  const place = {
    url: url.href,
    /** Removes all rows that the program has put there, and leaves the tables. */
    async empty(): Promise<void> {
      const tables = await ask<{ name: string }>(
        `SELECT table_name AS name FROM information_schema.tables
         WHERE table_schema = '${name}' AND table_name NOT IN ('migrations', 'clock')`,
      );
      const removals = tables.map((table) => `DELETE FROM ${name}.${table.name}`);
      const reset = `UPDATE ${name}.clock SET version = 0, pruned_to = 0, seal = NULL`;
      await ask([...removals, reset].join(';'));
    },
    /** Whoever still works there is cut off. */
    async drop(): Promise<void> {
      if (!places.delete(place)) return;
      // Out of sight first, so that nobody comes back while the tables are locked one by one.
      await ask(`ALTER SCHEMA ${name} RENAME TO dropped_${name}`);
      await ask(
        `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_class ON pg_class.oid = relation
         WHERE relnamespace = 'dropped_${name}'::regnamespace AND pid <> pg_backend_pid()
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      await ask(`DROP SCHEMA dropped_${name} CASCADE`);
    },
  };
  places.add(place);
  return place;
}

/** A server of one's own, as durable as PostgreSQL is by default: for tests of what survives a crash. */
export async function startPostgres(): Promise<PostgresServer> {
  const server = await createPostgresServer(inject('postgresDirectory'));
  servers.add(server);
  return server;
}
