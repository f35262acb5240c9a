// Creates an empty store of the kind that TEST_STORE selects. It reports when no call is running.
import { type Retention, createMemoryStore } from '../../src/app/stores/memory-store.ts';
import { openPostgresStore, readMigrations } from '../../src/app/stores/postgres-store.ts';
import { tables } from '../../src/app/backends.ts';
import type { Config } from '../../src/config/config.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import type { Store } from '../../src/store/store.ts';
import { type Database, claimDatabase, releaseDatabase, takeDatabase } from './postgres.ts';

export type TestStore = Store & {
  /** Resolves when all calls of the store have settled; false if none is running. */
  idle: () => Promise<void> | false;
  /** Opens the data of a closed store again, as the next process would. */
  reopen: () => Promise<TestStore>;
};

export type TestStoreOptions = { readonly retention: Retention; readonly maxEventIds: number };

/** The store as the configuration describes it. */
export function storeOptionsOf(config: Config): TestStoreOptions {
  const deliveries = { history: config.WEBHOOK_HISTORY, recoverable: config.WEBHOOK_RECOVERABLE };
  return { retention: { deliveries, jobs: config.JOB_HISTORY }, maxEventIds: config.MAX_EVENT_IDS };
}

export const defaultStoreOptions: TestStoreOptions = {
  retention: { deliveries: { history: 100, recoverable: 10_000 }, jobs: 500 },
  maxEventIds: 100_000,
};

export const isOnPostgres = process.env.TEST_STORE === 'postgres';

export async function createTestStore(options: TestStoreOptions = defaultStoreOptions): Promise<TestStore> {
  return isOnPostgres ? openAt(await takeDatabase(), options) : createInMemory(options);
}

function createInMemory(options: TestStoreOptions): TestStore {
  const store: TestStore = Object.assign(createMemoryStore(options), {
    idle: () => false as const,
    reopen: () => Promise.resolve(store),
  });
  return store;
}

export const migrations = await readMigrations(
  new URL('../../src/store/postgres/migrations/', import.meta.url),
);

/** The tests claim and complete few deliveries at a time, and need not wait for more. */
export const noPauses = { claimPauseMs: 0, completeWaitMs: 0 };

/** Methods of ports that return no promise. */
const synchronous = new Set(['pending', 'evicted', 'onFree', 'read']);

async function openAt(database: Database, options: TestStoreOptions): Promise<TestStore> {
  const store = await openPostgresStore({
    url: database.url,
    tables,
    migrations,
    runtime: realRuntime,
    secretKey: undefined,
    previousSecretKey: undefined,
    retention: options.retention,
    pace: noPauses,
    logger: undefined,
  });
  let running = 0;
  let idle: Promise<void> | false = false;
  let resolveIdle: () => void = () => undefined;

  function counted<F extends (...args: never[]) => Promise<unknown>>(call: F): F {
    return (async (...args) => {
      running += 1;
      if (!idle) idle = new Promise((resolve) => (resolveIdle = resolve));
      try {
        return await call(...args);
      } finally {
        running -= 1;
        if (running === 0) {
          idle = false;
          resolveIdle();
        }
      }
    }) as F;
  }

  /** The port with its asynchronous methods counted. */
  function countedPort<P extends object>(port: P): P {
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(port)) as (keyof P & string)[];
    return Object.fromEntries(
      names.map((name) => {
        const method = (port[name] as (...args: never[]) => Promise<unknown>).bind(port);
        return [name, synchronous.has(name) ? method : counted(method)];
      }),
    ) as P;
  }

  return {
    ...store,
    update: counted(store.update),
    refresh: counted(store.refresh),
    audit: countedPort(store.audit),
    deliveries: countedPort(store.deliveries),
    jobs: countedPort(store.jobs),
    uploads: countedPort(store.uploads),
    idle: () => idle,
    close: async () => {
      await store.close();
      releaseDatabase(database);
    },
    reopen: () => {
      claimDatabase(database);
      return openAt(database, options);
    },
  };
}
