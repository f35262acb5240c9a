// A server in this process that real clients use: it listens, its time is real unless a test replaces it, and its
// webhooks are sent.
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { type App, createApp } from '../../src/app/app.ts';
import { createExecutor, openStore } from '../../src/app/backends.ts';
import { readCatalogFile } from '../../src/app/catalog-file.ts';
import { type InitialCatalog } from '../../src/catalog/catalog.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { readConfig } from '../../src/config/config.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { startControlled } from '../../src/testing/routes.ts';
import { type HttpClient, createHttpClient } from '../../src/webhooks/sending/http-client.ts';
import { checkDelivery } from './check-deliveries.js';
import { noteRecord, noteSecret } from './leaks.ts';
import { createTestPasswords, hashCheaply } from './password.ts';
import type { FakeRuntime } from './runtime.ts';

export const password = 'a password for tests';

type Variables = Readonly<Record<string, string>>;

const readSource = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
export const assets = {
  stylesheet: readSource('src/console/assets/steward.css'),
  script: readSource('src/console/assets/steward.js'),
  icon: readSource('src/console/assets/steward.svg'),
  offlineIcon: readSource('src/console/assets/offline.svg'),
};
const wsdl = readSource('wsdl/ServiceCatalog.wsdl');
const { version } = JSON.parse(readSource('package.json')) as { version: string };

function readCatalog(path: string | undefined): InitialCatalog {
  if (path === undefined) return sampleCatalog;
  const result = readCatalogFile(readFileSync(path, 'utf8'));
  if ('problems' in result) throw new Error(`${path} has problems.`);
  return result.catalog;
}

/** Checks every delivery and sends it. */
function createCheckedClient(client: HttpClient): HttpClient {
  return {
    post(request, signal) {
      checkDelivery(request.headers, request.body);
      return client.post(request, signal);
    },
    close: () => client.close(),
  };
}

/**
 * Starts the server that a process with these variables would start. A fake runtime moves its time only when a test
 * advances it.
 */
export async function listen(env: Variables, fake?: FakeRuntime) {
  const config = readConfig({ ADMIN_PASSWORD: password, ...env });
  const runtime = fake ?? realRuntime;
  const httpClient = createCheckedClient(createHttpClient(config.WEBHOOK_ALLOW_CIDRS));
  const logger = pino({ level: 'error' }, { write: noteRecord });
  const options = {
    config,
    runtime,
    httpClient,
    logger,
    version,
    assets,
    wsdl,
    catalog: readCatalog(env.CATALOG_FILE),
    adminHash: () => Promise.resolve(hashCheaply(config.ADMIN_PASSWORD ?? password)),
    passwords: createTestPasswords(),
  };
  noteSecret(config.ADMIN_PASSWORD);

  async function create(): Promise<App> {
    if (config.TEST_CONTROL) return startControlled(options);
    const backends = {
      config,
      runtime,
      logger,
      builtFiles: new URL('../../dist/', import.meta.url),
      leaseMs: undefined,
    };
    const store = await openStore(backends);
    return createApp({ ...options, store, executor: await createExecutor(backends, store, version) });
  }
  const app = await create();
  await app.http.listen({ host: '127.0.0.1', port: 0 });

  return {
    app,
    port: new URL(app.http.listeningOrigin).port,
    close: async () => {
      const closed = app.close();
      // Attempts in progress have some seconds to end.
      await fake?.advance(10_000);
      await closed;
      await httpClient.close();
    },
  };
}

export type Steward = Awaited<ReturnType<typeof startSteward>>;

/** Starts a server, and stops it after the test. The functions it returns create data as the administrator. */
export async function startSteward(env: Variables = {}, runtime?: FakeRuntime) {
  const { app, port, close } = await listen(env, runtime);
  onTestFinished(close);
  const token = await app.issueAdminToken();
  noteSecret(token);
  // The address that its links contain.
  const address = `http://localhost:${port}`;

  async function ask<T>(path: string, init: RequestInit): Promise<T> {
    const response = await fetch(`${address}${path}`, init);
    expect(response.ok, `${path}: ${response.status}`).toBe(true);
    return (await response.json()) as T;
  }
  const askAsAdministrator = <T>(path: string, init: RequestInit = {}) =>
    ask<T>(`/admin/${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });

  return {
    address,
    /** Of the administrator. */
    token,
    trees: app.trees,
    tokenOf: async (username: string): Promise<string> => {
      const body = new URLSearchParams({ username, password });
      return (await ask<{ token: string }>('/tokens/generateToken', { method: 'POST', body })).token;
    },
    read: <T>(path: string) => askAsAdministrator<T>(path),
    act: <T>(path: string, fields: Record<string, string> = {}) =>
      askAsAdministrator<T>(path, { method: 'POST', body: new URLSearchParams(fields) }),
    upload: async (name: string, content: string) => {
      const body = new FormData();
      body.set('itemFile', new Blob([content]), name);
      const sent = { method: 'POST', body };
      return (await askAsAdministrator<{ item: { itemID: string } }>('uploads/upload', sent)).item.itemID;
    },
  };
}
