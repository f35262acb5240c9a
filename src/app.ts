// The composition root: makes the engines, hangs the features on the tree, mounts REST and SOAP on one server.
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { clientAddress } from './auth/address.ts';
import { createTokenService } from './auth/token-service.ts';
import { tokensResource } from './auth/tokens.rest.ts';
import { securityResource } from './auth/users.rest.ts';
import { pathOfService } from './catalog/catalog.ts';
import { type CatalogFile, loadCatalog } from './catalog/catalog-file.ts';
import { createCatalogCache } from './catalog/catalog-cache.ts';
import { fillWsdl, catalogNames } from './catalog/wsdl.ts';
import { showCatalogPage } from './catalog/pages/endpoint.ts';
import { catalogResource } from './catalog/rest.ts';
import { catalogOperations } from './catalog/soap.ts';
import type { Config } from './config.ts';
import type { Resource } from './rest/resource.ts';
import type { Json } from './lib/json.ts';
import { mountDirectory } from './rest/mount.ts';
import { openApiDocument } from './rest/openapi/document.ts';
import { createRequestLog } from './http/request-log.ts';
import { type AssetFiles, createAssets } from './http/assets.ts';
import { createHttp } from './http/server.ts';
import { createMetrics } from './http/metrics.ts';
import { showHome } from './home/pages/home.ts';
import { mountProbes } from './http/probes.ts';
import { createAdmission, modeResource, rootResource } from './home/root.rest.ts';
import { openShortWay } from './http/short-way.ts';
import { createRetryAfterRefresh } from './store/refresh.ts';
import { createEndpoint } from './soap/handler.ts';
import { mountSoap } from './soap/plugin.ts';
import type { Store } from './store/store.ts';
import { createTasks } from './tasks.ts';
import type { Executor } from './upgrades/executors/executor.ts';
import { type OnJobChange, isJobRunning, newestJob } from './upgrades/job-table.ts';
import { deployment, newestInstalled } from './upgrades/deployment.ts';
import { systemResource } from './upgrades/upgrades.rest.ts';
import { JobRunner } from './upgrades/job-runner.ts';
import { JobWatcher } from './upgrades/job-watcher.ts';
import { uploadsResource } from './uploads/rest.ts';
import { startDeliveryWorker } from './webhooks/delivery-worker.ts';
import { jobEvent, serviceEvent } from './webhooks/event.ts';
import { webhookStats } from './webhooks/stats.ts';
import { createEventPublisher } from './webhooks/event-publisher.ts';
import { webhookResources } from './webhooks/webhooks.rest.ts';
import { listWebhooks } from './webhooks/webhook.ts';
import type { Runtime } from './runtime.ts';

export type AppOptions = {
  config: Config;
  store: Store;
  runtime: Runtime;
  executor: Executor;
  logger: FastifyBaseLogger;
  /** The text of wsdl/ServiceCatalog.wsdl. */
  wsdl: string;
  assets: AssetFiles;
  /** What a store that has never had a catalog is loaded with. */
  catalog: CatalogFile;
  /** This program's own, as receivers of webhooks are told. */
  version: string;
  /** Of the password of the first administrator, where there is none yet. */
  adminHash: () => Promise<string>;
};

export type App = {
  http: FastifyInstance;
  /** Whether the first administrator was created just now. */
  createdAdministrator: boolean;
  publicUrl: () => string;
  /** The trees as mounted, for whoever must look at all of them. */
  directories: Readonly<Record<'admin' | 'tokens', Resource>>;
  /** Stops accepting, finishes what runs, stops background work. */
  close: () => Promise<void>;
};

export async function createApp(given: AppOptions): Promise<App> {
  const { config, store, runtime, executor, logger, ...options } = given;
  const tasks = createTasks(runtime, (name, error) =>
    logger.error({ err: error, task: name }, 'background work failed'),
  );
  const tokenService = createTokenService(store, runtime, tasks);
  const catalogCache = createCatalogCache(store);
  const metrics = createMetrics(() => webhookStats(store, runtime.now()));
  const eventPublisher = createEventPublisher({
    store,
    runtime,
    tasks,
    maxPending: config.webhookMaxPending,
  });
  const notify: OnJobChange = (transaction, job, at) =>
    eventPublisher.publishWithin(transaction, jobEvent(job), at);
  const { upgradeStepTimeoutMs: stepTimeoutMs, upgradeExecutor } = config;
  const jobRunner = new JobRunner({ store, runtime, tasks, executor, stepTimeoutMs, notify });
  const jobWatcher = new JobWatcher(store, runtime);
  const mountedAssets = createAssets(options.assets, config.adminPath);
  const addressOf = ({ socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>) =>
    clientAddress(socket.remoteAddress ?? '', headers['x-forwarded-for']?.toString(), config.trustedProxies);
  const frame = () => ({ assets: assets(), crumbs: [{ name: 'admin', href: homePath() }] });
  let closing = false;
  const isClosing = () => closing;
  const account = createRequestLog(logger, metrics, addressOf);
  const http = createHttp({ logger, account, frame, isClosing });
  const retryAfterRefresh = createRetryAfterRefresh(store.refresh);

  const startedAt = runtime.now();
  await store.update((transaction) => loadCatalog(transaction, options.catalog, startedAt));
  const createdAdministrator = await tokenService.ensureAdministrator(
    config.adminUsername,
    options.adminHash,
  );

  // The port is known only once it is bound.
  const boundPort = () => (http.server.address() as AddressInfo | null)?.port ?? config.port;
  const publicUrl = () => config.publicUrl ?? `http://localhost:${boundPort()}`;
  const linkBase = () => new URL(publicUrl()).pathname.replace(/\/$/, '');
  const homePath = () => linkBase() + config.adminPath || '/';
  const assets = () => mountedAssets.locate(linkBase());
  const baseUrl = () => publicUrl() + config.catalogPath;
  const tokenServiceUrl = () => `${publicUrl()}${config.tokensPath}/generateToken`;

  const webhooks = webhookResources({
    store,
    runtime,
    eventPublisher,
    allowed: config.webhookAllowCidrs,
    history: config.webhookHistory,
  });
  const installed = () => newestInstalled(store.read(deployment));
  const home = showHome({
    store,
    runtime,
    catalogCache,
    installed,
    startedAt,
    inUse: { store: config.storeUrl === undefined ? 'memory' : 'postgres', executor: upgradeExecutor },
  });
  const admin = rootResource(installed, home, {
    mode: modeResource(store, isJobRunning),
    security: securityResource(store, runtime, tokenService),
    services: catalogResource({
      store,
      runtime,
      catalogCache,
      baseUrl,
      webhooksOf: (service) => listWebhooks(store, pathOfService(service)),
      tell: (transaction, change, id, at) =>
        eventPublisher.publishWithin(transaction, serviceEvent(change, id), at),
      resources: { webhooks: webhooks.ofAll },
      serviceResources: { webhooks: webhooks.ofService },
    }),
    system: systemResource({ store, runtime, executor, jobRunner, jobWatcher, notify }),
    uploads: uploadsResource({
      store,
      runtime,
      mostBytesInAll: config.maxUploadsTotalBytes,
      isInUse: (reader, id) => isJobRunning(reader) && newestJob(reader)?.uploads.includes(id) === true,
    }),
  });
  const tokens = tokensResource({
    tokenService,
    publicUrl,
    homePath,
    signInPath: () => `${linkBase()}${config.tokensPath}/generateToken?f=html`,
  });
  const directory = {
    publicUrl,
    assets,
    tokensPath: config.tokensPath,
    identify: tokenService.identify,
    retryAfterRefresh,
    admit: createAdmission(store, isJobRunning),
    addressOf,
    formsBeingRead: { anonymous: 0, bytes: 0 },
    sleep: runtime.sleep,
    yieldToEventLoop: runtime.yieldToEventLoop,
    maxFileBytes: config.maxUploadBytes,
    errorStatus200: config.errorStatus200,
  };
  await http.register((scope) =>
    mountDirectory(scope, { ...directory, prefix: config.adminPath, root: admin, rootName: 'admin' }),
  );
  await http.register((scope) =>
    mountDirectory(scope, { ...directory, prefix: config.tokensPath, root: tokens, rootName: 'tokens' }),
  );

  const { requireTokens, catalogNamespace: namespace } = config;
  const names = catalogNames(config.vendorPrefix, config.productName);
  const operations = catalogOperations({ catalogCache, names, requireTokens, baseUrl, tokenServiceUrl });
  const endpoint = createEndpoint({
    namespace,
    operations,
    requireTokens,
    addressOf,
    retryAfterRefresh,
    logger,
    identify: tokenService.identify,
    keep: catalogCache.get,
  });
  let wsdl: Buffer | undefined;
  await http.register((scope, _options, done) => {
    mountSoap(scope, {
      path: config.catalogPath,
      endpoint,
      wsdl: () =>
        (wsdl ??= Buffer.from(fillWsdl(options.wsdl, { ...config, namespace, baseUrl: baseUrl() }))),
      showPage: (reply) =>
        showCatalogPage(reply, {
          assets: assets(),
          baseUrl: baseUrl(),
          directoryUrl: `${publicUrl()}${config.adminPath}/services`,
          operations,
          namespace,
          requireTokens,
        }),
    });
    done();
  });
  openShortWay(http, { path: config.catalogPath, call: endpoint.call, account, isClosing });

  const trees = [
    { name: 'admin', prefix: config.adminPath, root: admin },
    { name: 'tokens', prefix: config.tokensPath, root: tokens },
  ];
  let openApi: Json | undefined;
  const describeTrees = () =>
    openApiDocument(trees, {
      version: options.version,
      publicUrl: publicUrl(),
      soapUrl: baseUrl(),
      errorStatus200: config.errorStatus200,
    });

  mountedAssets.mount(http);
  mountProbes(http, {
    metrics,
    reasonsNotReady: () => [...(closing ? ['shutting down'] : []), ...store.problems()],
    openApi: { path: `${config.adminPath}/openapi.json`, document: () => (openApi ??= describeTrees()) },
    homePath: config.adminPath === '' ? undefined : homePath,
  });
  await http.ready();
  await jobRunner.recover();
  startDeliveryWorker({
    store,
    runtime,
    tasks,
    eventPublisher,
    concurrency: config.webhookConcurrency,
    history: config.webhookHistory,
    userAgent: `Steward/${options.version}`,
    onAttempt: ({ durationMs, error }, { state, isPing }) => {
      metrics.countAttempt({ succeeded: error === null, seconds: durationMs / 1000 });
      if (state === 'failed' && !isPing) metrics.countFailedDelivery();
    },
    onDeactivated: ({ webhook, window }) =>
      logger.warn(
        {
          webhookId: webhook.id,
          webhookName: webhook.name,
          failures: window.count,
          windowStart: window.start,
        },
        'webhook deactivated: too many deliveries to it have failed',
      ),
  });

  return {
    http,
    createdAdministrator,
    publicUrl,
    directories: { admin, tokens },
    async close() {
      closing = true;
      jobWatcher.stop();
      await Promise.all([http.close(), tasks.stop()]);
      await store.close();
    },
  };
}
