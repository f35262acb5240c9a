// Creates an empty store of the kind that TEST_STORE selects. It reports when no call is running.
import { records } from '../../src/records.ts';
import { createMemoryStore } from '../../src/store/memory.ts';
import { openPostgresStore, readMigrations } from '../../src/store/postgres/store.ts';
import type { Store } from '../../src/store/store.ts';
import { realRuntime } from '../../src/runtime.ts';
import { createDatabase } from './postgres.ts';

export type TestStore = Store & {
  /** Resolves when all calls of the store have settled; false if none is running. */
  idle: () => Promise<void> | false;
  /** Opens the data of a closed store again, as the next process would. */
  reopen: () => Promise<TestStore>;
};

export const isOnPostgres = process.env.TEST_STORE === 'postgres';

export const createTestStore: () => Promise<TestStore> = isOnPostgres
  ? createOnPostgres
  : () => Promise.resolve(createInMemory());

function createInMemory(): TestStore {
  const store: TestStore = Object.assign(createMemoryStore(), {
    idle: () => false as const,
    reopen: () => Promise.resolve(store),
  });
  return store;
}

export const migrations = await readMigrations(
  new URL('../../src/store/postgres/migrations/', import.meta.url),
);

type Database = Awaited<ReturnType<typeof createDatabase>>;

/** Databases of closed stores. It is faster to empty one than to create one. */
const free = new Set<Database>();

async function createOnPostgres(): Promise<TestStore> {
  for (const used of free) {
    free.delete(used);
    if (used.isDropped) continue;
    await used.empty();
    return openAt(used);
  }
  return openAt(await createDatabase());
}

async function openAt(database: Database): Promise<TestStore> {
  const store = await openPostgresStore({ url: database.url, records, migrations, runtime: realRuntime });
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

  return {
    ...store,
    update: counted(store.update),
    claim: counted(store.claim),
    find: counted(store.find),
    oldest: counted(store.oldest),
    page: counted(store.page),
    fetch: counted(store.fetch),
    idle: () => idle,
    close: async () => {
      await store.close();
      free.add(database);
    },
    reopen: () => {
      free.delete(database);
      return openAt(database);
    },
  };
}
