// The start on a database that is unavailable or too slow at that moment: it waits, logs each try, and gives up
// when its patience is over.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { openPostgresStore } from '../../src/app/stores/postgres-store.ts';
import { tables } from '../../src/app/backends.ts';
import { ServiceError } from '../../src/lib/errors.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createDatabase } from '../kit/postgres.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { startServer } from '../kit/server.ts';
import { createTestStore, defaultStoreOptions, migrations } from '../kit/store.ts';

type Chooses = (connection: number) => boolean;

/** The address of a database behind a door that closes, or does not answer, the connections with these numbers, from 1. */
async function openBehindDoor(isClosed: Chooses, isSilent: Chooses = () => false): Promise<string> {
  const database = await createDatabase();
  const { hostname, port } = new URL(database.url);
  let connections = 0;
  const door = createServer((client) => {
    connections += 1;
    client.on('error', () => undefined);
    if (isClosed(connections)) {
      client.destroy();
      return;
    }
    if (isSilent(connections)) return;
    const server = connect(Number(port), hostname);
    server.on('error', () => undefined);
    client.pipe(server).pipe(client);
  });
  await once(door.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(async () => {
    door.close();
    await database.drop();
  });
  const url = new URL(database.url);
  url.host = `127.0.0.1:${(door.address() as AddressInfo).port}`;
  return url.href;
}

async function open(url: string, patienceMs: number) {
  const lines: string[] = [];
  const log = (_facts: object, text: string) => void lines.push(text);
  const store = await openPostgresStore({
    url,
    tables,
    migrations,
    runtime: realRuntime,
    retention: defaultStoreOptions.retention,
    patienceMs,
    logger: { info: log, warn: log, error: log },
  });
  onTestFinished(() => store.close());
  return { store, lines };
}

it.each([1, 2, 3])('waits if the connection %i is cut, and logs it', async (cut) => {
  const url = await openBehindDoor((connection) => connection === cut);
  const { store, lines } = await open(url, 10_000);
  await store.update(() => undefined);
  expect(lines).toEqual(['the database cannot be reached']);
  expect(store.problems()).toEqual([]);
});

it('logs one line for each try', async () => {
  const url = await openBehindDoor((connection) => connection <= 3);
  const { lines } = await open(url, 10_000);
  expect(lines).toEqual(Array.from({ length: 3 }, () => 'the database cannot be reached'));
});

it('waits for a connection as long as connect_timeout says', async () => {
  const isFirst: Chooses = (connection) => connection === 1;
  const url = new URL(await openBehindDoor(() => false, isFirst));
  url.searchParams.set('connect_timeout', '1');
  // By default, the first try would take longer than this.
  const { lines } = await open(url.href, 1_900);
  expect(lines).toEqual(['the database cannot be reached']);
});

it('gives up when its patience is over, and says why', async () => {
  const url = await openBehindDoor(() => true);
  await expect(open(url, 700)).rejects.toThrow(
    /^the database cannot be reached: Connection terminated unexpectedly$/,
  );
});

it('does not wait for a database that does not encrypt, and names the settings', async () => {
  const url = new URL(await openBehindDoor(() => false));
  url.searchParams.set('sslmode', 'verify-full');
  await expect(open(url.href, 3_600_000)).rejects.toThrow(
    /^the database cannot be reached: The server does not support SSL connections\. Check sslmode and sslrootcert in STORE_URL\.$/,
  );
});

it('does not wait for a file that is missing, and names it', async () => {
  const url = new URL(await openBehindDoor(() => false));
  url.searchParams.set('sslmode', 'verify-full');
  url.searchParams.set('sslrootcert', '/nowhere/ca.pem');
  await expect(open(url.href, 3_600_000)).rejects.toThrow(
    'STORE_URL names the file /nowhere/ca.pem, which cannot be read: ENOENT.',
  );
});

it('does not wait for a database that does not exist', async () => {
  const url = new URL(await openBehindDoor(() => false));
  url.pathname = '/nowhere';
  await expect(open(url.href, 3_600_000)).rejects.toThrow(
    'the database cannot be reached: database "nowhere" does not exist',
  );
});

it('waits too if the database fails after the store was opened', async () => {
  const store = await createTestStore(defaultStoreOptions);
  let updates = 0;
  const update: typeof store.update = (rule) => {
    updates += 1;
    // The first update belongs to the test server, and creates its users.
    if (updates === 2 || updates === 3)
      return Promise.reject(new ServiceError('unavailable', 'The database cannot be reached.'));
    return store.update(rule);
  };
  const runtime = createFakeRuntime();
  const starting = startServer({ store: { ...store, update }, runtime });
  for (let tries = 0; updates < 4 && tries < 100; tries += 1) await runtime.advance(100);
  const server = await starting;
  onTestFinished(() => server.close());
  expect((await server.get('/ready')).statusCode).toBe(200);
  expect(server.logLines.filter((line) => line.includes('the start waits for the database'))).toHaveLength(2);
});
