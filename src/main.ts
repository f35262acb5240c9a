// Starts the process: environment → configuration → store → app → listen. SIGTERM and SIGINT close it.
import { readFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type AddressInfo, isIPv6 } from 'node:net';
import { type Logger, pino } from 'pino';
import { collectDefaultMetrics } from 'prom-client';
import type { App } from './app.ts';
import { hashPassword, saltBytes } from './auth/password.ts';
import { type InitialCatalog, findCatalogExcess } from './catalog/catalog.ts';
import { readCatalogFile } from './catalog/catalog-file.ts';
import { sampleCatalog } from './catalog/sample.ts';
import { type Config, ConfigError, readConfig } from './config.ts';
import { formatProblem } from './errors.ts';
import { tables } from './records.ts';
import { createMemoryStore } from './store/memory/store.ts';
import type { Retention, Store } from './store/store.ts';
import { builtInNames } from './upgrades/built-in-manifest.ts';
import type { Executor } from './upgrades/executors/executor.ts';
import { readRegistryAuth } from './upgrades/executors/kubernetes/registry-auth.ts';
import { createSimulatedExecutor } from './upgrades/executors/simulated.ts';
import { findReasonOfAbandoning, hasJobEnded } from './upgrades/job-service.ts';
import { simulatedPerformers } from './upgrades/performers.ts';
import { readAuthorities } from './webhooks/authorities-file.ts';
import { type HttpClient, createHttpClient } from './webhooks/http-client.ts';
import { realRuntime } from './runtime.ts';

const closeWithinMs = 8_000;
const graceMs = 4_000;
/** Some work, such as a DNS lookup, cannot be cancelled and would keep the process alive. */
const lingerMs = 500;

async function main(): Promise<void> {
  if (existsSync('.env')) process.loadEnvFile('.env');
  const catalog = await readCatalog(process.env.CATALOG_FILE);
  const registryAuth = await readRegistryAuth(process.env.REGISTRY_AUTH_FILE || undefined);
  const receiverAuthorities = await readAuthorities(process.env.WEBHOOK_CA_FILE || undefined);
  const config = readConfig(process.env, [
    ...('problems' in catalog ? catalog.problems : []),
    ...('problems' in registryAuth ? registryAuth.problems : []),
    ...('problems' in receiverAuthorities ? receiverAuthorities.problems : []),
  ]);
  if ('catalog' in catalog) refuseLargeCatalog(catalog.catalog, config);
  const logger = await createLogger(config);
  process.on('uncaughtException', (error) => exitWithError(logger, error));
  process.on('unhandledRejection', (error) => exitWithError(logger, error));

  const generatedPassword = randomBytes(12).toString('base64url');
  const hashAdminPassword = () =>
    hashPassword(config.adminPassword ?? generatedPassword, randomBytes(saltBytes));
  // Hashing takes about as long as loading the app, so both run at the same time. A database usually has an administrator already.
  const early = config.storeUrl === undefined ? hashAdminPassword() : undefined;
  const { createApp } = await import('./app.ts');
  const store = await openStore(config, logger);
  const httpClient = createHttpClient(
    config.webhookAllowCidrs,
    'authorities' in receiverAuthorities ? receiverAuthorities : {},
  );
  const app = await createApp({
    config,
    store,
    executor: await createExecutor(config, store, logger),
    runtime: realRuntime,
    httpClient,
    version: await readVersion(),
    logger,
    assets: {
      stylesheet: await readBuiltFile('http/assets/steward.css'),
      script: await readBuiltFile('http/assets/steward.js'),
      icon: await readBuiltFile('http/assets/steward.svg'),
    },
    wsdl: await readBuiltFile('wsdl/ServiceCatalog.wsdl'),
    catalog: 'catalog' in catalog ? catalog.catalog : sampleCatalog,
    adminHash: () => early ?? hashAdminPassword(),
  });
  collectDefaultMetrics({ register: app.metricsRegistry, prefix: 'steward_' });
  try {
    await app.http.listen({ host: config.host, port: config.port, listenTextResolver: () => 'listening' });
  } catch (error) {
    await app.close();
    throw error;
  }
  // Signals are handled before the addresses are printed: a program that has read them may send a signal at once.
  closeOnSignals(app, httpClient, logger);
  printAddresses(app, config);
  if (app.createdAdministrator && config.adminPassword === undefined) {
    print([
      `  sign in as ${config.adminUsername} with the password ${generatedPassword} (generated for this run; ADMIN_PASSWORD sets one)`,
    ]);
  }
  const unknown = [...config.simulatedFailures.keys()].filter(
    (name) => !name.startsWith('@') && !builtInNames.has(name),
  );
  if (unknown.length > 0)
    logger.warn({ names: unknown }, 'SIMULATED_FAILURES names containers that no built-in version has');
}

function exitWithError(logger: Logger, error: unknown): void {
  logger.fatal({ err: error }, 'unexpected failure, the process ends');
  logger.flush();
  process.exit(1);
}

function closeOnSignals(app: App, httpClient: HttpClient, logger: Logger): void {
  let isClosing = false;
  async function close(signal: string): Promise<void> {
    // Ctrl-C arrives twice under npm: from the terminal and from npm.
    if (isClosing) return;
    isClosing = true;
    logger.info({ signal }, 'closing');
    const deadline = setTimeout(() => app.http.server.closeAllConnections(), closeWithinMs);
    // Without this, the process would wait much longer for a database that does not respond.
    const limit = closeWithinMs + graceMs;
    setTimeout(() => exitWithError(logger, new Error('closing took too long')), limit).unref();
    try {
      await app.close();
      await httpClient.close();
    } catch (error) {
      exitWithError(logger, error);
    }
    clearTimeout(deadline);
    logger.info('closed');
    logger.flush();
    setTimeout(() => process.exit(), lingerMs).unref();
  }
  process.on('SIGTERM', (signal) => void close(signal));
  process.on('SIGINT', (signal) => void close(signal));
}

function printAddresses({ http, urls }: App, { catalogPath, adminPath }: Config): void {
  const { address, port } = http.server.address() as AddressInfo;
  print([
    `Steward listens on http://${isIPv6(address) ? `[${address}]` : address}:${port}`,
    `  catalog  ${urls.base}${catalogPath}`,
    `  WSDL     ${urls.base}${catalogPath}?wsdl`,
    `  admin    ${urls.base}${adminPath}`,
  ]);
}

async function openStore(config: Config, logger: Logger): Promise<Store> {
  const { storeUrl: url, secretKey } = config;
  const retention: Retention = {
    deliveries: { history: config.webhookHistory, recoverable: config.webhookRecoverable },
    jobs: config.jobHistory,
  };
  if (url === undefined) {
    logger.info('the store is in memory: nothing survives a restart');
    return createMemoryStore({ retention, maxEventIds: config.maxEventIds });
  }
  logger.info('the store is PostgreSQL');
  if (secretKey === undefined)
    logger.warn(
      'SECRET_KEY is not set: webhook keys and header values are stored in the database without encryption',
    );
  // The PostgreSQL client takes longer to load than the rest of the server takes to start, so it is loaded only when it is used.
  const { openPostgresStore, readMigrations } = await import('./store/postgres/store.ts');
  const migrations = await readMigrations(new URL('store/postgres/migrations/', import.meta.url));
  return openPostgresStore({
    url,
    tables,
    migrations,
    runtime: realRuntime,
    secretKey,
    previousSecretKey: config.secretKeyPrevious,
    retention,
    logger,
  });
}

async function createExecutor(config: Config, store: Store, logger: Logger): Promise<Executor> {
  if (config.upgradeExecutor === 'simulated')
    return createSimulatedExecutor({
      runtime: realRuntime,
      stepMs: config.upgradeStepMs,
      failures: config.simulatedFailures,
      performers: simulatedPerformers(config.simulatedStepTemplates),
    });
  // The Kubernetes client is the largest library, so it is loaded only when it is used.
  const { ImageChecker, connectCluster, createKubernetesExecutor } =
    await import('./upgrades/executors/kubernetes/executor.ts');
  const cluster = connectCluster({
    runtime: realRuntime,
    kubeconfig: config.kubeconfig,
    namespace: config.kubernetesNamespace,
    onRetry: (message) => logger.warn(`${message} Retrying.`),
  });
  logger.info(
    { server: cluster.server, namespace: cluster.namespace },
    'upgrades change workloads of a Kubernetes namespace',
  );
  if (config.storeUrl === undefined)
    logger.warn('STORE_URL is not set: an upgrade of the cluster that this process does not finish is lost');
  return createKubernetesExecutor({
    cluster,
    runtime: realRuntime,
    hasEnded: (jobId) => hasJobEnded(store, jobId),
    findReasonOfAbandoning: (jobId) => findReasonOfAbandoning(store, jobId),
    hasDatabase: config.storeUrl !== undefined,
    parallelism: config.upgradeParallelism,
    imageRegistry: config.imageRegistry,
    optionalContainers: config.optionalContainers,
    imageChecker:
      config.imageCheck === 'off'
        ? undefined
        : new ImageChecker({
            runtime: realRuntime,
            mode: config.imageCheck,
            insecureHosts: config.registryInsecure,
            authFile: config.registryAuthFile,
            userAgent: `Steward/${await readVersion()}`,
          }),
    stepTemplates: config.stepTemplates,
    rolloutTimeoutMs: config.rolloutTimeoutMs,
    stepTimeoutMs: config.upgradeStepTimeoutMs,
    patienceMs: config.clusterPatienceMs,
  });
}

/** Standard output is the log, so texts for people go to standard error. */
function print(lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`);
}

async function createLogger({ logLevel: level }: Config) {
  if (!process.stdout.isTTY) return pino({ level });
  const { default: pretty } = await import('pino-pretty');
  return pino({ level }, pretty({ ignore: 'pid,hostname', translateTime: 'HH:MM:ss.l', sync: true }));
}

/** `npm run build` copies the file next to the compiled code. */
function readBuiltFile(path: string): Promise<string> {
  return readFile(new URL(path, import.meta.url), 'utf8');
}

async function readVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

async function readCatalog(path = ''): Promise<{ catalog: InitialCatalog } | { problems: string[] }> {
  if (path === '') return { catalog: sampleCatalog };
  try {
    const result = readCatalogFile(await readFile(path, 'utf8'));
    return 'catalog' in result
      ? result
      : { problems: result.problems.map((problem) => `CATALOG_FILE: ${formatProblem(problem)}`) };
  } catch (error) {
    return { problems: [`CATALOG_FILE cannot be read: ${(error as Error).message}.`] };
  }
}

function refuseLargeCatalog(catalog: InitialCatalog, { maxServices, maxCatalogBytes }: Config): void {
  const problem = findCatalogExcess(catalog, { services: maxServices, bytes: maxCatalogBytes });
  if (problem !== undefined) throw new ConfigError([`CATALOG_FILE is too large: ${problem}`]);
}

main().catch((error: unknown) => {
  if (error instanceof ConfigError)
    print(['Steward cannot start:', ...error.problems.map((problem) => `  ${problem}`)]);
  else print([`Steward cannot start: ${(error as Error).message}`]);
  // Without this, a store that is already open would keep the process alive.
  process.exit(1);
});
