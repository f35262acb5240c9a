// A controlled server in this process, with real connections and a receiver of webhooks that answers as the test says.
import { scryptSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, expect } from 'vitest';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { readConfig } from '../../src/config/config.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import { createControlClient } from '../../src/testing/control-client.ts';
import { startControlled } from '../../src/testing/routes.ts';
import { createHttpClient } from '../../src/webhooks/sending/http-client.ts';

export const password = 'a password for tests';
// A hash names its cost, so this one is fast.
const salt = Buffer.alloc(16);
const key = scryptSync(password, salt, 32, { N: 2, r: 8, p: 1 });
const passwordHash = `scrypt$2$8$1$${salt.toString('base64url')}$${key.toString('base64url')}`;
const wsdl = readFileSync(new URL('../../wsdl/ServiceCatalog.wsdl', import.meta.url), 'utf8');
const noAssets = { stylesheet: 'main {}', script: '', icon: '<svg/>', offlineIcon: '<svg/>' };

export type Controlled = Awaited<ReturnType<typeof startControl>>;

/** Starts a server that ends after the tests of the file. */
export async function startControl(env: Record<string, string> = {}, assets = noAssets) {
  const config = readConfig({
    PORT: '0',
    TEST_CONTROL: 'true',
    ADMIN_PASSWORD: password,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    ...env,
  });
  const logLines: string[] = [];
  const httpClient = createHttpClient(config.WEBHOOK_ALLOW_CIDRS);
  const app = await startControlled({
    config,
    runtime: realRuntime,
    httpClient,
    logger: pino({ level: 'info' }, { write: (line: string) => logLines.push(line) }),
    wsdl,
    assets,
    catalog: sampleCatalog,
    version: '0.0.0',
    adminHash: () => Promise.resolve(passwordHash),
  });
  const token = await app.issueAdminToken();
  await app.http.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.http.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const close = async () => {
    await app.close();
    await httpClient.close();
  };
  afterAll(close);

  const authorization = `Bearer ${token}`;
  async function send(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has('authorization')) headers.set('authorization', authorization);
    return fetch(url + path, { ...init, headers });
  }
  const formOf = (fields: Record<string, string>) => ({ method: 'POST', body: new URLSearchParams(fields) });

  return {
    url,
    app,
    token,
    logLines,
    control: createControlClient({ address: url, token: config.TEST_CONTROL_TOKEN }),
    send,
    post: (path: string, fields: Record<string, string> = {}) => send(path, formOf(fields)),
    get: async <T>(path: string) => {
      const response = await send(path);
      expect(response.status).toBe(200);
      return (await response.json()) as T;
    },
    /** Sends a form and expects success. */
    act: async <T>(path: string, fields: Record<string, string> = {}) => {
      const response = await send(path, formOf(fields));
      const text = await response.text();
      expect(response.status, text).toBe(200);
      return JSON.parse(text) as T;
    },
    /** A request to the control API itself. */
    raw: (path: string, init: RequestInit = {}) => fetch(`${url}/control${path}`, init),
    soap: (content: string, headers: Record<string, string> = {}) =>
      send('/services', {
        method: 'POST',
        headers: { 'content-type': 'text/xml; charset=utf-8', authorization: '', ...headers },
        body: `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${content}</s:Body></s:Envelope>`,
      }),
  };
}

/** A receiver of webhooks. A status of 0 leaves requests without an answer. */
export async function startReceiver() {
  const arrivals: string[] = [];
  const receiver = { status: 200, url: '', arrivals };
  const server = createServer((request, response) => {
    arrivals.push(request.url ?? '');
    request.resume();
    if (receiver.status > 0) response.writeHead(receiver.status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return receiver;
}

export const dayMs = 86_400_000;

/** Creates a webhook and returns its id. */
export async function createWebhook({ act }: Controlled, hookUrl: string, name = 'hook'): Promise<string> {
  const fields = { name, hookUrl, changeTypes: '*' };
  const { webhook } = await act<{ webhook: { id: string } }>('/admin/services/webhooks/create', fields);
  return webhook.id;
}
