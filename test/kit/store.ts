// A store of the kind that this run of the suite is about, empty, which tells when nothing is being asked of it.
import { records } from '../../src/records.ts';
import { createMemoryStore } from '../../src/store/memory.ts';
import { openPostgresStore, readMigrations } from '../../src/store/postgres/store.ts';
import type { Store } from '../../src/store/store.ts';
import { realRuntime } from '../../src/runtime.ts';
import { createDatabase } from './postgres.ts';

export type TestStore = Store & {
  /** Resolves when everything that was asked of the store is answered; false when that is so already. */
  idle: () => Promise<void> | false;
  /** After it was closed: what the next process would find. */
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

type Place = Awaited<ReturnType<typeof createDatabase>>;

/** Places that nobody uses any more: to empty one is quicker than to make one. */
const free = new Set<Place>();

async function createOnPostgres(): Promise<TestStore> {
  const [used] = free;
  if (used === undefined) return openAt(await createDatabase());
  free.delete(used);
  await used.empty();
  return openAt(used);
}

async function openAt(place: Place): Promise<TestStore> {
  const store = await openPostgresStore({ url: place.url, records, migrations, runtime: realRuntime });
  let asked = 0;
  let isIdle: Promise<void> | false = false;
  let tellIdle: () => void = () => undefined;

  function watched<F extends (...args: never[]) => Promise<unknown>>(ask: F): F {
    return (async (...args) => {
      asked += 1;
      if (!isIdle) isIdle = new Promise((resolve) => (tellIdle = resolve));
      try {
        return await ask(...args);
      } finally {
        asked -= 1;
        if (asked === 0) {
          isIdle = false;
          tellIdle();
        }
      }
    }) as F;
  }

  return {
    ...store,
    update: watched(store.update),
    claim: watched(store.claim),
    find: watched(store.find),
    oldest: watched(store.oldest),
    page: watched(store.page),
    fetch: watched(store.fetch),
    idle: () => isIdle,
    close: async () => {
      await store.close();
      free.add(place);
    },
    reopen: () => {
      free.delete(place);
      return openAt(place);
    },
  };
}
