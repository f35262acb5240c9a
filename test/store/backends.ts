// Opens the stores that the suites run on. Every store is closed at the end of its test, also if the test fails.
import { readFileSync } from 'node:fs';
import { Client } from 'pg';
import { onTestFinished } from 'vitest';
import { createMemoryStore } from '../../src/store/memory.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import type { Store } from '../../src/store/store.ts';
import { realRuntime } from '../../src/runtime.ts';
import { createDatabase } from '../kit/postgres.ts';
import { records } from './definitions.ts';
import { createTables } from './tables.ts';

type Options = Partial<Parameters<typeof openPostgresStore>[0]>;

/** Opens another store on the same data, as another process would. */
const openAnother = new WeakMap<Store, () => Promise<Store>>();

export const backends: [string, () => Promise<Store>][] = [
  ['memory', openMemory],
  ['PostgreSQL', openPostgres],
];

function openMemory(): Promise<Store> {
  const store = closing(createMemoryStore());
  openAnother.set(store, () => Promise.resolve(store));
  return Promise.resolve(store);
}

async function openPostgres(): Promise<Store> {
  const { open } = await createTestDatabase();
  return await open();
}

/** Opens the data of the store in another process, which reads it from the database. In memory: returns the same store. */
export function openElsewhere(store: Store): Promise<Store> {
  const open = openAnother.get(store);
  if (!open) throw new Error('This store was not opened here.');
  return open();
}

/** Two processes that share one database. */
export async function openTwice(options?: Options): Promise<[Store, Store]> {
  const { open } = await createTestDatabase();
  return [await open(options), await open(options)];
}

export type TestDatabase = {
  readonly open: (options?: Options) => Promise<Store>;
  /** Queries the database directly, without a store. */
  readonly ask: (statement: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
};

export function readMigration(name: string): string {
  return readFileSync(new URL(`../../src/store/postgres/migrations/${name}`, import.meta.url), 'utf8');
}

/** The tables of the store itself. */
export const storeTables = [readMigration('001-store.sql'), readMigration('005-queue-bytes.sql')];

const migrations = [...storeTables, createTables(records)];

/** Creates an empty database for the records of the suites, and drops it after the test. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = await createDatabase();
  const { url } = database;
  onTestFinished(() => database.drop());

  async function open(options: Options = {}): Promise<Store> {
    const given = { url, records, migrations, runtime: realRuntime, secretKey: 'the key of the tests' };
    const store = closing(await openPostgresStore({ ...given, ...options }));
    openAnother.set(store, () => open(options));
    return store;
  }

  async function ask(statement: string, values: unknown[] = []) {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement, values)).rows;
    } finally {
      await client.end();
    }
  }

  return { open, ask };
}

/** Closes the store after the test unless the test has closed it. */
function closing(store: Store): Store {
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= store.close());
  onTestFinished(close);
  return { ...store, close };
}
