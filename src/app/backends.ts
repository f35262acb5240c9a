// Creates the store and the executor that the configuration names.
import type { Logger } from 'pino';
import { keys } from '../auth/key.ts';
import { tokens } from '../auth/token.ts';
import { users } from '../auth/user.ts';
import { folders, services } from '../catalog/catalog.ts';
import { uploads } from '../uploads/upload.ts';
import { redeliveries } from '../webhooks/queue/redelivery.ts';
import { failureWindows } from '../webhooks/sending/failure-window.ts';
import { webhooks } from '../webhooks/webhook.ts';
import type { Table } from '../store/state.ts';
import type { Config } from '../config/config.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { Store } from '../store/store.ts';
import type { Executor } from '../upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../upgrades/executors/simulated.ts';
import { findJobEnd, hasJobEnded } from '../upgrades/jobs/job-service.ts';
import { simulatedPerformers } from '../upgrades/executors/steps.ts';
import { type Retention, createMemoryStore } from './stores/memory-store.ts';

/** How long the start waits for a database that is unavailable or too slow. */
export const storePatienceMs = 30_000;

/** The tables of the replicated state. */
export const tables: readonly Table<never>[] = [
  users,
  keys,
  tokens,
  folders,
  services,
  uploads,
  webhooks,
  failureWindows,
  redeliveries,
];

export type BackendOptions = {
  readonly config: Config;
  readonly runtime: Runtime;
  readonly logger: Logger;
  /** The folder that holds the migrations. */
  readonly builtFiles: URL;
  /** Undefined: the default of the store. */
  readonly leaseMs: number | undefined;
};

export async function openStore({
  config,
  runtime,
  logger,
  builtFiles,
  leaseMs,
}: BackendOptions): Promise<Store> {
  const { STORE_URL: url, SECRET_KEY: secretKey } = config;
  const retention: Retention = {
    deliveries: { history: config.WEBHOOK_HISTORY, recoverable: config.WEBHOOK_RECOVERABLE },
    jobs: config.JOB_HISTORY,
  };
  if (url === undefined) {
    logger.info('the store is in memory: nothing survives a restart');
    return createMemoryStore({
      retention,
      maxEventIds: config.MAX_EVENT_IDS,
      since: runtime.now(),
    });
  }
  logger.info('the store is PostgreSQL');
  if (secretKey === undefined)
    logger.warn(
      'SECRET_KEY is not set: webhook keys and header values are stored in the database without encryption',
    );
  // The PostgreSQL client takes longer to load than the rest of the server takes to start, so it is loaded only
  // when it is used.
  const { openPostgresStore, readMigrations } = await import('./stores/postgres-store.ts');
  const migrations = await readMigrations(new URL('store/postgres/migrations/', builtFiles));
  return openPostgresStore({
    url,
    tables,
    migrations,
    runtime,
    secretKey,
    previousSecretKey: config.SECRET_KEY_PREVIOUS,
    retention,
    patienceMs: storePatienceMs,
    logger,
    leaseMs,
  });
}

export async function createExecutor(
  options: BackendOptions,
  store: Store,
  version: string,
): Promise<Executor> {
  const { config, runtime } = options;
  switch (config.UPGRADE_EXECUTOR) {
    case 'simulated':
      return createSimulatedExecutor({
        runtime,
        stepMs: config.UPGRADE_STEP_MS,
        failures: new Map(config.SIMULATED_FAILURES),
        performers: simulatedPerformers(config.SIMULATED_STEP_TEMPLATES),
      });
    case 'kubernetes':
      return createClusterExecutor(options, store, version);
  }
}

async function createClusterExecutor(
  { config, runtime, logger }: BackendOptions,
  store: Store,
  version: string,
): Promise<Executor> {
  // The Kubernetes client is the largest library, so it is loaded only when it is used.
  const { ImageChecker, connectCluster, KubernetesExecutor } =
    await import('../upgrades/executors/kubernetes/kubernetes-executor.ts').catch(explainMissingClient);
  const cluster = connectCluster({
    runtime,
    kubeconfig: config.KUBECONFIG,
    namespace: config.KUBERNETES_NAMESPACE,
    onRetry: (message) => logger.warn(`${message} Retrying.`),
  });
  logger.info(
    { server: cluster.server, namespace: cluster.namespace },
    'upgrades change workloads of a Kubernetes namespace',
  );
  if (config.STORE_URL === undefined)
    logger.warn('STORE_URL is not set: an upgrade of the cluster that this process does not finish is lost');
  return new KubernetesExecutor({
    cluster,
    runtime,
    hasEnded: (jobId) => hasJobEnded(store, jobId),
    findJobEnd: (jobId) => findJobEnd(store, jobId),
    hasDatabase: config.STORE_URL !== undefined,
    parallelism: config.UPGRADE_PARALLELISM,
    imageRegistry: config.IMAGE_REGISTRY,
    optionalContainers: config.OPTIONAL_CONTAINERS,
    imageChecker:
      config.IMAGE_CHECK === 'off'
        ? undefined
        : new ImageChecker({
            runtime,
            mode: config.IMAGE_CHECK,
            insecureHosts: config.REGISTRY_INSECURE,
            authFile: config.REGISTRY_AUTH_FILE,
            userAgent: `Steward/${version}`,
          }),
    stepTemplates: config.STEP_TEMPLATES === 'on',
    rolloutTimeoutMs: config.rolloutTimeoutMs,
    stepTimeoutMs: config.upgradeStepTimeoutMs,
    patienceMs: config.clusterPatienceMs,
  });
}

/** npm installs the package of Steward without the Kubernetes client: most projects never use it. */
function explainMissingClient(error: unknown): never {
  if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
  const message =
    'UPGRADE_EXECUTOR=kubernetes needs the package @kubernetes/client-node 1.4: install it with `npm install @kubernetes/client-node@1.4`.';
  throw new Error(message, { cause: error });
}
