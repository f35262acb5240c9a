// Opens the stores that the suites run on. Every store is closed at the end of its test, also if the test fails.
import { Client } from 'pg';
import { it, onTestFinished } from 'vitest';
import { type Retention, createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { openPostgresStore } from '../../src/app/stores/postgres-store.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import type { Store } from '../../src/store/store.ts';
import { createDatabase, releaseDatabase, takeDatabase } from '../kit/postgres.ts';
import { migrations, noPauses } from '../kit/store.ts';
import { tables } from './definitions.ts';

type Options = Partial<Parameters<typeof openPostgresStore>[0]>;

export type OpenStore = (retention?: Partial<Retention>) => Promise<Store>;

/** Opens another store on the same data, as another process would. */
const openAnother = new WeakMap<Store, () => Promise<Store>>();

export const backends: [string, OpenStore][] = [
  ['memory', openMemory],
  ['PostgreSQL', openPostgres],
];

/** Tests that get a new store as `store`. */
export const onStore = (open: OpenStore) => it.extend('store', () => open());

const unlimited: Retention = {
  deliveries: { history: 1_000_000, recoverable: 1_000_000 },
  jobs: 1_000_000,
};

/** Keeps the same number of each kind of finished deliveries. */
export const keeping = (most: number) => ({ deliveries: { history: most, recoverable: most } });

export function openMemory(retention: Partial<Retention> = {}, maxEventIds = 1_000_000): Promise<Store> {
  const store = closing(createMemoryStore({ retention: { ...unlimited, ...retention }, maxEventIds }));
  openAnother.set(store, () => Promise.resolve(store));
  return Promise.resolve(store);
}

async function openPostgres(retention: Partial<Retention> = {}): Promise<Store> {
  return await openAt(await borrowDatabase(), { retention: { ...unlimited, ...retention } });
}

/**
 * Opens the data of the store in another process, which reads it from the database. In memory: returns the same
 * store.
 */
export function openElsewhere(store: Store): Promise<Store> {
  const open = openAnother.get(store);
  if (!open) throw new Error('This store was not opened here.');
  return open();
}

/** Two processes that share one database. */
export async function openTwice(options?: Options): Promise<[Store, Store]> {
  const url = await borrowDatabase();
  return [await openAt(url, options), await openAt(url, options)];
}

/** Opens a store whose database others may use as soon as it is closed. */
export async function openBriefly(options?: Options): Promise<Store> {
  const database = await takeDatabase();
  const store = await openAt(database.url, options);
  return {
    ...store,
    close: async () => {
      await store.close();
      releaseDatabase(database);
    },
  };
}

/** The URL of an empty database, which other tests may use after this one. */
async function borrowDatabase(): Promise<string> {
  const database = await takeDatabase();
  onTestFinished(() => releaseDatabase(database));
  return database.url;
}

async function openAt(url: string, options: Options = {}): Promise<Store> {
  const store = await openPostgresStore({
    url,
    tables,
    migrations,
    runtime: realRuntime,
    secretKey: 'the key of the tests',
    previousSecretKey: undefined,
    retention: unlimited,
    pace: noPauses,
    logger: undefined,
    ...options,
  });
  const opened = closing(store);
  openAnother.set(opened, () => openAt(url, options));
  return opened;
}

export type TestDatabase = {
  readonly url: string;
  readonly open: (options?: Options) => Promise<Store>;
  /** Queries the database directly, without a store. */
  readonly ask: (statement: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
};

/** Creates a database without tables, for tests that may change the schema, and drops it after the test. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = await createDatabase();
  const { url } = database;
  onTestFinished(() => database.drop());

  async function ask(statement: string, values: unknown[] = []) {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement, values)).rows;
    } finally {
      await client.end();
    }
  }

  return { url, open: (options) => openAt(url, options), ask };
}

/** Closes the store after the test unless the test has closed it. */
function closing(store: Store): Store {
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= store.close());
  onTestFinished(close);
  return { ...store, close };
}
