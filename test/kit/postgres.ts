// Provides PostgreSQL to tests: an empty schema in the server of the test run, or a separate server that a test can
// kill. Both are removed at the end of the test file, except schemas that the next file can use.
import { randomUUID } from 'node:crypto';
import { Pool, type QueryResultRow } from 'pg';
import { inject } from 'vitest';
import { noteRecord } from './leaks.ts';
import { type PostgresServer, createPostgresServer } from './postgres-server.js';

export type { PostgresServer };

export type Database = Awaited<ReturnType<typeof createDatabase>>;

let admin: Pool | undefined;
const databases = new Set<Database>();
/** Databases with all tables that no test uses any more. Emptying one takes a tenth of the time of creating one. */
const free = new Set<Database>();
const servers = new Set<PostgresServer>();

/**
 * Removes everything that a test file has created, and empties the free databases. `cleanup.setup.ts` calls it
 * after each file.
 */
export async function removeDatabases(): Promise<void> {
  await Promise.all([...servers].map((server) => server.stop()));
  servers.clear();
  await Promise.all(
    [...databases].map((database) => (free.has(database) ? database.empty() : database.drop())),
  );
  await admin?.end();
  admin = undefined;
}

/** Uses one connection per test file. */
async function ask<R extends QueryResultRow>(statement: string): Promise<R[]> {
  admin ??= new Pool({ connectionString: inject('databaseUrl'), max: 1, allowExitOnIdle: true });
  return (await admin.query<R>(statement)).rows;
}

/** Returns a database without rows: one that another test has released, or a new one without tables. */
export async function takeDatabase(): Promise<Database> {
  for (const database of free) {
    free.delete(database);
    await database.empty();
    return database;
  }
  return createDatabase();
}

/** Lets other tests use the database. It must have all tables, and no open store. */
export function releaseDatabase(database: Database): void {
  if (databases.has(database)) free.add(database);
}

/** Keeps a released database from other tests. */
export function claimDatabase(database: Database): void {
  free.delete(database);
}

/**
 * Creates a schema; connections with its URL use only this schema. It takes half a millisecond, a database would
 * take twenty. Advisory locks and notifications belong to the database, so all schemas share them.
 */
export async function createDatabase() {
  const name = `${inject('schemaPrefix')}${randomUUID().replaceAll('-', '')}`;
  await ask(`CREATE SCHEMA ${name}`);
  const url = new URL(inject('databaseUrl'));
  url.searchParams.set('options', `--search_path=${name}`);
  async function noteAuditTrail(): Promise<void> {
    const [audit] = await ask<{ name: string | null }>(`SELECT to_regclass('${name}.audit') AS name`);
    if (audit?.name) noteRecord(JSON.stringify(await ask(`SELECT * FROM ${name}.audit`)));
  }
  let removals: string | undefined;
  /** The statements that delete all rows. */
  async function readRemovals(): Promise<string> {
    const tables = await ask<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables
       WHERE table_schema = '${name}' AND table_name NOT IN ('steward_migrations', 'clock')`,
    );
    return tables.map((table) => `DELETE FROM ${name}.${table.name}`).join(';');
  }
  const database = {
    url: patientAddress(url.href),
    /** Deletes all rows that the server has created, and keeps the tables. */
    async empty(): Promise<void> {
      await noteAuditTrail();
      removals ??= await readRemovals();
      await ask(`${removals};UPDATE ${name}.clock SET version = 0, pruned_to = 0, seal = NULL`);
    },
    /** Ends connections that still use the schema, and drops it. */
    async drop(): Promise<void> {
      if (!databases.delete(database)) return;
      free.delete(database);
      await noteAuditTrail();
      // Renamed first, so that no connection uses it again while its tables are locked one by one.
      await ask(`ALTER SCHEMA ${name} RENAME TO dropped_${name}`);
      await ask(
        `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_class ON pg_class.oid = relation
         WHERE relnamespace = 'dropped_${name}'::regnamespace AND pid <> pg_backend_pid()
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      await ask(`DROP SCHEMA dropped_${name} CASCADE`);
    },
  };
  databases.add(database);
  return database;
}

const patience = {
  connect_timeout: '60',
  query_timeout: '60000',
  statement_timeout: '60000',
  lock_timeout: '60000',
  idle_in_transaction_session_timeout: '60000',
};

/** The limits precede those of the server that uses the address. */
export function withLimits(address: string, limits: Readonly<Record<string, number | string>>): string {
  const url = new URL(address);
  for (const [name, value] of Object.entries(limits)) url.searchParams.set(name, String(value));
  return url.href;
}

/** Lets connections, statements and locks take longer than by default: a busy machine may stall for seconds. */
export const patientAddress = (address: string) => withLimits(address, patience);

/** For tests of the limits themselves: what hangs must be noticed as soon as it is by default. */
export function impatientAddress(address: string): string {
  const url = new URL(address);
  for (const name of Object.keys(patience)) url.searchParams.delete(name);
  return url.href;
}

/** Starts a separate server with the default durability of PostgreSQL, for tests of crashes. */
export async function startPostgres(): Promise<PostgresServer> {
  const server = await createPostgresServer(inject('postgresDirectory'));
  servers.add(server);
  return server;
}
