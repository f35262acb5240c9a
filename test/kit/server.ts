// A whole server in this process: the real app on an empty store, with a user of every role already signed in.
import type { FastifyInstance } from 'fastify';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { type Logger, pino } from 'pino';
import { type App, type NewApp, createApp } from '../../src/app/app.ts';
import { createExecutor } from '../../src/app/backends.ts';
import { hashToken, tokens } from '../../src/auth/token.ts';
import { users } from '../../src/auth/user.ts';
import type { InitialCatalog } from '../../src/catalog/catalog.ts';
import { sampleCatalog } from '../../src/catalog/sample.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { type Role, roles } from '../../src/lib/caller.ts';
import type { Runtime } from '../../src/lib/runtime.ts';
import type { Store } from '../../src/store/store.ts';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { type BaseManifest, type Deployment, deployment } from '../../src/upgrades/versions/deployment.ts';
import { closeOnce } from './cleanup.ts';
import { type Receiver, createFakeHttpClient } from './http-client.ts';
import { noteRecord, noteSecret } from './leaks.ts';
import { createTestPasswords, hashCheaply } from './password.ts';
import { type FakeRuntime, createFakeRuntime } from './runtime.ts';
import { freshDeployment, sampleManifest } from './sample-manifest.ts';
import { type TestStore, createTestStore, isOnPostgres, storeOptionsOf } from './store.ts';

export const password = 'a password for tests';

const passwordHash = hashCheaply(password);
const noAssets = {
  stylesheet: 'main {}',
  script: '',
  tryScript: '',
  icon: '<svg/>',
  attentionIcon: '<svg/>',
  offlineIcon: '<svg/>',
};
const root = new URL('../../', import.meta.url);
const wsdl = readFileSync(new URL('wsdl/ServiceCatalog.wsdl', root), 'utf8');

export const namespace = 'http://www.example.com/schemas/Product/10.0';

/** The operations of the SOAP catalog, as the types of the WSDL list them. */
export const operationNames = [...wsdl.matchAll(/<xs:element name="(\w+)Response"/g)].map(
  ([, name = '']) => name,
);

/** The values of custom headers of a webhook. */
function valuesOf(headers = ''): string[] {
  try {
    return Object.values(JSON.parse(headers) as Record<string, unknown>).map(String);
  } catch {
    return [];
  }
}

let others = 0;

function createIds(prefix: string): () => string {
  let ids = 0;
  return () => `${prefix}-${(ids += 1)}`;
}

/** What every app of the tests gets. `logLines` gets its log. */
export function appOptions(config: Config, runtime: Runtime, logLines: string[]) {
  const write = (line: string) => {
    logLines.push(line);
    noteRecord(line);
  };
  return {
    config,
    runtime,
    logger: pino({ level: 'info' }, { write }),
    wsdl,
    assets: noAssets,
    catalog: sampleCatalog,
    manifest: sampleManifest,
    version: '0.0.0',
    commit: 'c0ffee',
    adminHash: () => Promise.resolve(passwordHash),
    passwords: createTestPasswords(),
  };
}

/** Creates an app on a store, with the executor of the configuration unless another one is given. */
export async function createAppOn(
  store: Store,
  options: Omit<NewApp, 'store' | 'executor'> & { logger: Logger; executor?: Executor },
): Promise<App> {
  const backends = { ...options, builtFiles: root, leaseMs: undefined };
  const executor = options.executor ?? (await createExecutor(backends, store, options.version));
  return createApp({ ...options, store, executor });
}

export type Server = Awaited<ReturnType<typeof startServer>>;

export type ServerOptions = {
  env?: Record<string, string>;
  catalog?: InitialCatalog;
  /** Default: the built-in sample. */
  manifest?: BaseManifest;
  /** What is installed in an empty store. Default: the oldest release of the sample. Null: the server decides. */
  present?: Deployment | null;
  /** The store of an earlier server. Default: an empty one. */
  store?: TestStore;
  runtime?: FakeRuntime;
  /** Answers webhook deliveries. */
  receiver?: Receiver;
  /** Default: the simulated executor. */
  executor?: Executor;
  /** Default: none, because most tests read no stylesheet. */
  assets?: typeof noAssets;
  /** Adds hooks that run before all others. */
  extend?: (http: FastifyInstance) => void;
  /** Default: metrics are rendered for every request. */
  metricsMaxAgeMs?: number;
};

/**
 * Starts a server with one user per role, named like the role; `token(role)` returns a token of that user. It is closed
 * after the test, or else after the test file.
 */
export async function startServer({
  env = {},
  store: given,
  runtime = createFakeRuntime(),
  receiver,
  present = freshDeployment,
  ...options
}: ServerOptions = {}) {
  const config = readConfig({ PUBLIC_URL: 'http://localhost:8080', ...env });
  const store = given ?? (await createTestStore(storeOptionsOf(config)));
  // Servers that share a store must not create the same ids.
  if (given) runtime.newId = createIds(`other-${(others += 1)}`);
  runtime.waitFor = store.idle;
  const httpClient = createFakeHttpClient(runtime);
  if (receiver) httpClient.receiver = receiver;
  const token = (role: Role) => `token-of-the-${role}`;
  noteSecret(password, ...roles.map(token));
  await store.update((transaction) => {
    if (present && !transaction.read(deployment)) transaction.write(deployment, present);
    for (const role of roles) {
      transaction.put(users, {
        username: role,
        role,
        passwordHash,
        createdAt: runtime.now(),
        lastSignIn: null,
        subject: null,
      });
      const hash = hashToken(token(role));
      const createdAt = runtime.now() - 1;
      if (transaction.get(tokens, hash)) continue;
      transaction.put(tokens, {
        hash,
        id: `session of the ${role}`,
        username: role,
        createdAt,
        expires: runtime.now() + 1000 * 86_400_000,
        binding: null,
        address: null,
        userAgent: null,
        lastUsedAt: createdAt,
      });
    }
  });
  const logLines: string[] = [];
  const common = appOptions(config, runtime, logLines);
  const app = await createAppOn(store, { ...common, httpClient, metricsMaxAgeMs: 0, ...options });

  // A test may replace the reading of entries.
  const readEntries = store.audit.read.bind(store.audit);
  const close = closeOnce(async () => {
    // A database notes its entries itself, before it is emptied or dropped.
    if (!isOnPostgres) for await (const entries of readEntries({}, 0)) noteRecord(JSON.stringify(entries));
    const isClosed = app.close();
    // Attempts in progress have some seconds to end, which pass only on the fake clock.
    await runtime.advance(10_000);
    await isClosed;
  });

  return {
    app,
    http: app.http,
    store,
    runtime,
    httpClient,
    passwords: common.passwords,
    token,
    logLines,
    close,
    /** Accepts real connections too; returns the address. */
    async listen() {
      await app.http.listen({ host: '127.0.0.1', port: 0 });
      return `http://127.0.0.1:${(app.http.server.address() as AddressInfo).port}`;
    },
    get: (path: string, headers: Record<string, string> = {}) =>
      app.http.inject({ method: 'GET', url: path, headers }),
    /** Sends an urlencoded form. */
    post: (path: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}) => {
      noteSecret(fields.password, fields.token, fields.signatureKey, fields.newPassword);
      noteSecret(...valuesOf(fields.headers));
      return app.http.inject({
        method: 'POST',
        url: path,
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        payload: new URLSearchParams(fields).toString(),
      });
    },
    /** Sends a multipart form of texts and files. */
    postParts: (
      path: string,
      parts: Record<string, string | { name: string; content: string | Buffer; type?: string }>,
      token: string,
    ) => {
      const chunks = Object.entries(parts).flatMap(([name, part]) => {
        const file = typeof part === 'string' ? '' : `; filename="${part.name}"`;
        const content = typeof part === 'string' ? part : part.content;
        const type =
          typeof part === 'string' || part.type === undefined ? '' : `Content-Type: ${part.type}\r\n`;
        const head = `--parts\r\nContent-Disposition: form-data; name="${name}"${file}\r\n${type}\r\n`;
        return [Buffer.from(head), Buffer.from(content), Buffer.from('\r\n')];
      });
      return app.http.inject({
        method: 'POST',
        url: path,
        payload: Buffer.concat([...chunks, Buffer.from('--parts--\r\n')]),
        headers: { authorization: `Bearer ${token}`, 'content-type': 'multipart/form-data; boundary=parts' },
      });
    },
    /** Sends a SOAP 1.1 request; `body` is the content of soap:Body. */
    soap: (body: string, headers: Record<string, string> = {}, query = '') =>
      app.http.inject({
        method: 'POST',
        url: `${config.CATALOG_PATH}${query}`,
        headers: { 'content-type': 'text/xml; charset=utf-8', ...headers },
        payload: `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>${body}</s:Body></s:Envelope>`,
      }),
  };
}

/** A server that accepts real connections at its port. */
export async function startListening(options: ServerOptions = {}) {
  const server = await startServer(options);
  return { ...server, port: Number(new URL(await server.listen()).port) };
}
