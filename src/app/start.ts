// Starts a server: variables → configuration → store → app → listen. Handles no signals and prints nothing.
import type { FastifyInstance } from 'fastify';
import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { createPasswords, saltBytes } from '../auth/password.ts';
import { type InitialCatalog, findCatalogExcess } from '../catalog/catalog.ts';
import { sampleCatalog } from '../catalog/sample.ts';
import { type Config, ConfigError, readConfig } from '../config/config.ts';
import { unknownVariables } from '../config/variables.ts';
import { formatBuild, readBuild } from '../lib/build.ts';
import { ServiceError, formatProblem } from '../lib/errors.ts';
import { realRuntime, withSharedClock } from '../lib/runtime.ts';
import { readRegistryAuth } from '../upgrades/executors/images/registry.ts';
import type { BaseManifest } from '../upgrades/versions/deployment.ts';
import { type Version, readManifest } from '../upgrades/versions/manifest.ts';
import { GuardedHttpClient, readAuthorities } from '../webhooks/sending/http-client.ts';
import type { App, NewApp } from './app.ts';
import { type BackendOptions, createExecutor, openStore } from './backends.ts';
import { readCatalogFile } from './catalog-file.ts';

const closeWithinMs = 8_000;

export type Variables = Readonly<Record<string, string | undefined>>;

export type StartOptions = Pick<AppOptions, 'measuresProcess'> & {
  readonly env: Variables;
  /** The text of a catalog file. Default: the file that CATALOG_FILE names. */
  readonly catalogText?: string | undefined;
  /** The text of a manifest file. Default: the file that MANIFEST_FILE names. */
  readonly manifestText?: string | undefined;
  readonly createLogger: (config: Config) => Logger | Promise<Logger>;
  /** Starts the app with TEST_CONTROL=true. */
  readonly startControlled: (options: AppOptions) => Promise<App>;
  /** Called before the start continues with what may take long. */
  readonly onConfigured?: (logger: Logger) => void;
  /**
   * The folder of the files that the server reads at run time. Default: that of the compiled code, where `npm run
   * build` puts them.
   */
  readonly builtFiles?: URL;
  /** The lease of this process in a shared database. Default: ten seconds; tests have a shorter one. */
  readonly leaseMs?: number;
  /** Whether the program that starts the server gets a token of the first administrator. */
  readonly issueAdminToken?: true;
};

/** What starting an app needs beside its store and its executor. */
export type AppOptions = Omit<NewApp, 'store' | 'executor' | 'isRestored' | 'signInLimit' | 'extend'>;

export type StartedServer = {
  readonly app: App;
  readonly config: Config;
  readonly logger: Logger;
  /** The address that the server listens on. */
  readonly address: string;
  /** The address of the second listener. */
  readonly metricsAddress: string | undefined;
  /** Empty unless the options ask for it. */
  readonly adminToken: string;
  /** Undefined unless this start has created the first administrator. */
  readonly adminPassword: string | undefined;
  /** Answers the requests in progress, then closes everything. */
  readonly close: () => Promise<void>;
};

export async function startServer(options: StartOptions): Promise<StartedServer> {
  const { config, catalog, receivers, manifest: given } = await readSettings(options);
  const adminPassword = config.ADMIN_PASSWORD ?? randomBytes(12).toString('base64url');
  const hashAdminPassword = async () => {
    // Other processes would not know a random password.
    if (config.STORE_URL !== undefined && config.ADMIN_PASSWORD === undefined)
      throw new ConfigError(['ADMIN_PASSWORD must be given: the database has no administrator.']);
    // Nobody can guess 96 random bits, so a fast hash protects them as well.
    const passwords = createPasswords(config.ADMIN_PASSWORD === undefined ? { N: 2, r: 8, p: 1 } : undefined);
    return passwords.hash(adminPassword, randomBytes(saltBytes));
  };
  // Hashing takes about as long as loading and creating the app, so both run at the same time. A database usually
  // has an administrator already.
  const early = config.STORE_URL === undefined ? hashAdminPassword() : undefined;
  const logger = await options.createLogger(config);
  options.onConfigured?.(logger);
  const runtime = withSharedClock(realRuntime);
  const builtFiles = options.builtFiles ?? new URL('./', import.meta.url);
  const read = (path: string) => readFile(new URL(path, builtFiles), 'utf8');
  const build = await readBuild(builtFiles);
  const manifest = given ?? sampleManifest(await read('upgrades/versions/sample-manifest.json'));
  const httpClient = new GuardedHttpClient(config.WEBHOOK_ALLOW_CIDRS, receivers);
  const appOptions = {
    config,
    runtime,
    httpClient,
    version: build.version,
    commit: build.commit,
    measuresProcess: options.measuresProcess,
    logger,
    assets: {
      stylesheet: await read('console/assets/steward.css'),
      script: await read('console/assets/steward.js'),
      tryScript: await read('console/assets/try.js'),
      icon: await read('console/assets/steward.svg'),
      attentionIcon: await read('console/assets/attention.svg'),
      offlineIcon: await read('console/assets/offline.svg'),
    },
    wsdl: await read('wsdl/ServiceCatalog.wsdl'),
    catalog,
    manifest,
    adminHash: () => early ?? hashAdminPassword(),
  };
  const backends = { config, runtime, logger, leaseMs: options.leaseMs, builtFiles };
  const starting = config.TEST_CONTROL ? options.startControlled(appOptions) : startApp(appOptions, backends);
  const app = await starting.catch(async (error: unknown) => {
    await httpClient.close();
    throw error;
  });
  let adminToken = '';
  try {
    if (options.issueAdminToken) adminToken = await app.issueAdminToken();
    const listening = {
      host: config.HOST,
      listenTextResolver: () => `listening, version ${formatBuild(build)}`,
    };
    await app.http.listen({ ...listening, port: config.PORT });
    if (app.metricsHttp) await app.metricsHttp.listen({ ...listening, port: config.METRICS_PORT ?? 0 });
  } catch (error) {
    await app.close();
    throw error;
  }
  const unknown = unknownVariables(Object.keys(options.env));
  if (unknown.length > 0)
    logger.warn({ variables: unknown }, 'these variables are unknown, and have no effect');
  warnOfUnknownContainers(config, manifest, logger);
  return {
    app,
    config,
    logger,
    address: addressOf(app.http),
    metricsAddress: app.metricsHttp && addressOf(app.metricsHttp),
    adminToken,
    adminPassword: app.createdAdministrator ? adminPassword : undefined,
    async close() {
      const closed = new AbortController();
      runtime.sleep(closeWithinMs, closed.signal).then(
        () => [app.http, app.metricsHttp].forEach((http) => http?.server.closeAllConnections()),
        () => undefined,
      );
      try {
        await app.close();
        await httpClient.close();
      } finally {
        closed.abort();
      }
    },
  };
}

async function startApp(options: AppOptions, backends: BackendOptions): Promise<App> {
  const { createApp } = await import('./app.ts');
  const store = await openStore(backends);
  const executor = await createExecutor(backends, store, options.version).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  return createApp({ ...options, store, executor });
}

type Settings = {
  config: Config;
  catalog: InitialCatalog;
  receivers: { authorities?: readonly string[] };
  manifest: BaseManifest | undefined;
};

async function readSettings({ env, catalogText, manifestText }: StartOptions): Promise<Settings> {
  const result = await readCatalog(catalogText, env.CATALOG_FILE);
  const registryAuth = await readRegistryAuth(env.REGISTRY_AUTH_FILE || undefined);
  const receivers = await readAuthorities(env.WEBHOOK_CA_FILE || undefined);
  const manifest = await readManifestFile(manifestText, env.MANIFEST_FILE);
  const config = readConfig(env, [
    ...('problems' in result ? result.problems : []),
    ...('problems' in registryAuth ? registryAuth.problems : []),
    ...('problems' in receivers ? receivers.problems : []),
    ...(manifest && 'problems' in manifest ? manifest.problems : []),
  ]);
  const catalog = 'catalog' in result ? result.catalog : sampleCatalog;
  const excess = findCatalogExcess(catalog, config);
  if (excess !== undefined) throw new ConfigError([`CATALOG_FILE is too large: ${excess}`]);
  return {
    config,
    catalog,
    receivers: 'authorities' in receivers ? receivers : {},
    manifest: manifest && 'versions' in manifest ? manifest : undefined,
  };
}

async function readCatalog(
  text: string | undefined,
  path = '',
): Promise<{ catalog: InitialCatalog } | { problems: string[] }> {
  if (text === undefined && path === '') return { catalog: sampleCatalog };
  try {
    const result = readCatalogFile(text ?? (await readFile(path, 'utf8')));
    return 'catalog' in result
      ? result
      : { problems: result.problems.map((problem) => `CATALOG_FILE: ${formatProblem(problem)}`) };
  } catch (error) {
    return { problems: [`CATALOG_FILE cannot be read: ${(error as Error).message}.`] };
  }
}

/** Its links are checked when the installed version is known. */
async function readManifestFile(
  text: string | undefined,
  path = '',
): Promise<BaseManifest | { problems: string[] } | undefined> {
  if (text === undefined && path === '') return undefined;
  try {
    const bytes = text === undefined ? await readFile(path) : Buffer.from(text);
    const result = readManifest(bytes);
    return 'versions' in result
      ? { source: 'file', versions: result.versions, digest: digestOf(bytes) }
      : { problems: result.problems.map((problem) => `MANIFEST_FILE: ${problem}`) };
  } catch (error) {
    const { message } = error instanceof ServiceError ? (error.problems[0] ?? error) : (error as Error);
    return { problems: [`MANIFEST_FILE cannot be read: ${message.replace(/\.$/, '')}.`] };
  }
}

/** The built-in sample is known to be correct. */
function sampleManifest(text: string): BaseManifest {
  return { source: 'built-in', versions: JSON.parse(text) as Version[], digest: digestOf(text) };
}

const digestOf = (content: string | Uint8Array) => createHash('sha256').update(content).digest('hex');

function warnOfUnknownContainers(
  { SIMULATED_FAILURES }: Config,
  { versions }: BaseManifest,
  logger: Logger,
): void {
  const containers = versions.flatMap((version) => [...version.containers, ...version.newContainers]);
  const known = new Set(containers.map(({ name }) => name.toUpperCase()));
  const unknown = [...SIMULATED_FAILURES.keys()].filter((name) => !name.startsWith('@') && !known.has(name));
  if (unknown.length > 0)
    logger.warn(
      { names: unknown },
      'SIMULATED_FAILURES names containers that no version of the manifest has',
    );
}

function addressOf({ server }: FastifyInstance): string {
  const { address, family, port } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
