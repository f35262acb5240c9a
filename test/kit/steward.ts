// A server in this process that real clients use: it listens, its time is real unless a test replaces it, and its
// webhooks are sent.
import { readFileSync } from 'node:fs';
import { expect, onTestFinished } from 'vitest';
import { readCatalogFile } from '../../src/app/catalog-file.ts';
import { type InitialCatalog } from '../../src/catalog/catalog.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { readConfig } from '../../src/config/config.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { startControlled } from '../../src/testing/routes.ts';
import { type HttpClient, GuardedHttpClient } from '../../src/webhooks/sending/http-client.ts';
import { checkDelivery } from './check-deliveries.js';
import { noteSecret } from './leaks.ts';
import { hashCheaply } from './password.ts';
import type { FakeRuntime } from './runtime.ts';
import { appOptions, createAppOn, password } from './server.ts';
import { createTestStore, storeOptionsOf } from './store.ts';

type Variables = Readonly<Record<string, string>>;

const readSource = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
export const assets = {
  stylesheet: readSource('src/console/assets/steward.css'),
  script: readSource('src/console/assets/steward.js'),
  icon: readSource('src/console/assets/steward.svg'),
  tryScript: readSource('src/console/assets/try.js'),
  attentionIcon: readSource('src/console/assets/attention.svg'),
  offlineIcon: readSource('src/console/assets/offline.svg'),
};
export const { version } = JSON.parse(readSource('package.json')) as { version: string };

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
    load: () => client.load(),
    close: () => client.close(),
  };
}

/**
 * Starts the server that a process with these variables would start. A fake runtime moves its time only when a test
 * advances it.
 */
export async function listen(env: Variables, fake?: FakeRuntime) {
  const config = readConfig({ ADMIN_PASSWORD: password, ...env });
  const { ADMIN_PASSWORD: adminPassword = password } = config;
  const httpClient = createCheckedClient(new GuardedHttpClient(config.WEBHOOK_ALLOW_CIDRS));
  const logLines: string[] = [];
  const options = {
    ...appOptions(config, fake ?? realRuntime, logLines),
    httpClient,
    version,
    assets,
    catalog: readCatalog(env.CATALOG_FILE),
    adminHash: () => Promise.resolve(hashCheaply(adminPassword)),
  };
  const app = await (config.TEST_CONTROL
    ? startControlled(options)
    : createAppOn(await createTestStore(storeOptionsOf(config)), options));
  await app.http.listen({ host: '127.0.0.1', port: 0 });
  const token = await app.issueAdminToken();
  noteSecret(adminPassword, token);

  return {
    app,
    port: new URL(app.http.listeningOrigin).port,
    /** Of the first administrator. */
    token,
    logLines,
    close: async () => {
      const closed = app.close();
      // Attempts in progress have some seconds to end.
      await fake?.advance(10_000);
      await closed;
      await httpClient.close();
    },
  };
}

/** Requests to a server over HTTP, with the token unless a request has another one. */
export function createClient(address: string, token: string) {
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('authorization')) headers.set('authorization', `Bearer ${token}`);
    return fetch(address + path, { ...init, headers });
  }
  /** Expects success. */
  async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await send(path, init);
    const text = await response.text();
    expect(response.status, `${path}: ${text}`).toBe(200);
    return JSON.parse(text) as T;
  }
  const formOf = (fields: Record<string, string>) => ({ method: 'POST', body: new URLSearchParams(fields) });
  return {
    send,
    ask,
    post: (path: string, fields: Record<string, string> = {}) => send(path, formOf(fields)),
    get: <T>(path: string) => ask<T>(path),
    /** Sends a form and expects success. */
    act: <T>(path: string, fields: Record<string, string> = {}) => ask<T>(path, formOf(fields)),
  };
}

/** Starts a server, and stops it after the test. The functions it returns create data as the administrator. */
export async function startSteward(env: Variables = {}, runtime?: FakeRuntime) {
  const { port, token, close } = await listen(env, runtime);
  onTestFinished(close);
  // The address that its links contain.
  const address = `http://localhost:${port}`;
  const { ask, get, act } = createClient(address, token);

  return {
    address,
    /** Of the administrator. */
    token,
    read: <T>(path: string) => get<T>(`/admin/${path}`),
    act: <T>(path: string, fields: Record<string, string> = {}) => act<T>(`/admin/${path}`, fields),
    upload: async (name: string, content: string) => {
      const body = new FormData();
      body.set('itemFile', new Blob([content]), name);
      const { item } = await ask<{ item: { itemID: string } }>('/admin/uploads/upload', {
        method: 'POST',
        body,
      });
      return item.itemID;
    },
  };
}
