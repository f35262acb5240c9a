// Starts the process: environment → configuration → store → app → listen. SIGTERM and SIGINT close it.
import { readFile } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { type AddressInfo, isIPv6 } from 'node:net';
import { type Logger, pino } from 'pino';
import { hashPassword, saltBytes } from './auth/password.ts';
import type { InitialCatalog } from './catalog/catalog.ts';
import { readCatalogFile } from './catalog/catalog-file.ts';
import { sampleCatalog } from './catalog/sample.ts';
import { type Config, ConfigError, readConfig } from './config.ts';
import { formatProblem } from './errors.ts';
import { records } from './records.ts';
import { createMemoryStore } from './store/memory.ts';
import type { Store } from './store/store.ts';
import { builtInNames } from './upgrades/built-in-manifest.ts';
import type { Executor } from './upgrades/executors/executor.ts';
import { createSimulatedExecutor } from './upgrades/executors/simulated.ts';
import { jobs } from './upgrades/job-table.ts';
import { createHttpClient } from './webhooks/http-client.ts';
import { realRuntime } from './runtime.ts';

const closeWithinMs = 8_000;
const graceMs = 4_000;
const lingerMs = 500;

async function main(): Promise<void> {
  if (existsSync('.env')) process.loadEnvFile('.env');
  const catalog = await readCatalog(process.env.CATALOG_FILE);
  const config = readConfig(process.env, 'problems' in catalog ? catalog.problems : []);
  const logger = await createLogger(config);
  process.on('uncaughtException', (error) => giveUp(error));
  process.on('unhandledRejection', (error) => giveUp(error));

  function giveUp(error: unknown): void {
    logger.fatal({ err: error }, 'unexpected failure, the process ends');
    logger.flush();
    process.exit(1);
  }

  const madeUpPassword = randomBytes(12).toString('base64url');
  const hashFirst = () => hashPassword(config.adminPassword ?? madeUpPassword, randomBytes(saltBytes));
  // It takes about as long as to load all the rest. A database has an administrator most of the time.
  const early = config.storeUrl === undefined ? hashFirst() : undefined;
  const { createApp } = await import('./app.ts');
  const store = await openStore(config, logger);
  const httpClient = createHttpClient(config.webhookAllowCidrs);
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
    adminHash: () => early ?? hashFirst(),
  });
  try {
    await app.http.listen({ host: config.host, port: config.port, listenTextResolver: () => 'listening' });
  } catch (error) {
    await app.close();
    throw error;
  }

  let isClosing = false;
  function close(signal: string): void {
    // A terminal and npm both pass a Ctrl-C on: the second one is no impatience.
    if (isClosing) return;
    isClosing = true;
    logger.info({ signal }, 'closing');
    const deadline = setTimeout(() => app.http.server.closeAllConnections(), closeWithinMs);
    // A database that is gone without a word would be waited for much longer.
    setTimeout(() => giveUp(new Error('it took too long to close')), closeWithinMs + graceMs).unref();
    app
      .close()
      .then(() => httpClient.close())
      .then(
        () => {
          clearTimeout(deadline);
          logger.info('closed');
          logger.flush();
          // A look-up of a name that nobody answers for cannot be called off.
          setTimeout(() => process.exit(), lingerMs).unref();
        },
        (error: unknown) => giveUp(error),
      );
  }
  // Before anybody is told that it listens: whoever is may end it.
  process.on('SIGTERM', close);
  process.on('SIGINT', close);

  const { address, port } = app.http.server.address() as AddressInfo;
  tell([
    `Steward listens on http://${isIPv6(address) ? `[${address}]` : address}:${port}`,
    `  catalog  ${app.urls.base}${config.catalogPath}`,
    `  WSDL     ${app.urls.base}${config.catalogPath}?wsdl`,
    `  admin    ${app.urls.base}${config.adminPath}`,
  ]);
  if (app.createdAdministrator && config.adminPassword === undefined) {
    tell([
      `  sign in as ${config.adminUsername} with the password ${madeUpPassword} (made up for this run; ADMIN_PASSWORD sets one)`,
    ]);
  }
  const unknown = [...config.simulatedFailures.keys()].filter((name) => !builtInNames.has(name));
  if (unknown.length > 0)
    logger.warn({ names: unknown }, 'SIMULATED_FAILURES names containers of no built-in version');
}

async function openStore({ storeUrl: url, secretKey }: Config, logger: Logger): Promise<Store> {
  if (url === undefined) {
    logger.info('the store is in memory: nothing survives a restart');
    return createMemoryStore();
  }
  logger.info('the store is PostgreSQL');
  if (secretKey === undefined)
    logger.warn('SECRET_KEY is not set: webhook keys are kept in the database as they are');
  // Load the PostgreSQL client only when it is used: it takes longer to load than the rest of the server takes to start.
  const { openPostgresStore, readMigrations } = await import('./store/postgres/store.ts');
  const migrations = await readMigrations(new URL('store/postgres/migrations/', import.meta.url));
  return openPostgresStore({ url, secretKey, logger, records, migrations, runtime: realRuntime });
}

async function createExecutor(config: Config, store: Store, logger: Logger): Promise<Executor> {
  if (config.upgradeExecutor === 'simulated')
    return createSimulatedExecutor({
      runtime: realRuntime,
      stepMs: config.upgradeStepMs,
      failures: config.simulatedFailures,
    });
  // Load the Kubernetes client only when it is used: it is the largest library.
  const { connectCluster, createKubernetesExecutor } =
    await import('./upgrades/executors/kubernetes/executor.ts');
  const cluster = connectCluster({
    runtime: realRuntime,
    kubeconfig: config.kubeconfig,
    namespace: config.kubernetesNamespace,
    onRetry: (message) => logger.warn(`${message} Retrying.`),
  });
  logger.info({ server: cluster.server, namespace: cluster.namespace }, 'upgrades change a cluster');
  return createKubernetesExecutor({
    cluster,
    runtime: realRuntime,
    hasEnded: (jobId) => (store.get(jobs, jobId)?.state ?? 'in_progress') !== 'in_progress',
    parallelism: config.upgradeParallelism,
    imageRegistry: config.imageRegistry,
    optionalContainers: config.optionalContainers,
    rolloutTimeoutMs: config.rolloutTimeoutMs,
  });
}

/** What a person reads goes to standard error; standard output is the log. */
function tell(lines: readonly string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`);
}

async function createLogger({ logLevel: level }: Config) {
  if (!process.stdout.isTTY) return pino({ level });
  const { default: pretty } = await import('pino-pretty');
  return pino({ level }, pretty({ ignore: 'pid,hostname', translateTime: 'HH:MM:ss.l', sync: true }));
}

/** Reads a file that `npm run build` copied next to the compiled code. */
function readBuiltFile(path: string): Promise<string> {
  return readFile(new URL(path, import.meta.url), 'utf8');
}

async function readVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** The catalog of a first start, or what is wrong with its file. */
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

main().catch((error: unknown) => {
  if (error instanceof ConfigError)
    tell(['Steward cannot start:', ...error.problems.map((problem) => `  ${problem}`)]);
  else tell([`Steward cannot start: ${(error as Error).message}`]);
  // What was opened before would keep the process alive.
  process.exit(1);
});
