// Creates the services of the features and connects them: a feature calls another through a function that it gets here.
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { AuditService } from '../audit/audit-service.ts';
import { auditResource } from '../audit/audit.rest.ts';
import { operationTitles } from '../audit/pages/audit.ts';
import type { Passwords } from '../auth/password.ts';
import type { SignInLimit } from '../auth/sign-in-limit.ts';
import { SignInService } from '../auth/sign-in-service.ts';
import { TokenService } from '../auth/token-service.ts';
import { expirationMinutes } from '../auth/token.ts';
import { generateTokenOperation } from '../auth/tokens.rest.ts';
import { securityResource } from '../auth/users.rest.ts';
import { CatalogCache } from '../catalog/catalog-cache.ts';
import { pathOfService } from '../catalog/catalog.ts';
import { serviceJobsResource } from '../catalog/running.rest.ts';
import { directoryResource } from '../catalog/directory.rest.ts';
import { catalogResource } from '../catalog/rest.ts';
import type { Config } from '../config/config.ts';
import type { AssetFiles } from '../console/assets.ts';
import { infoResource, rootResource, versionNumber } from '../home/root.rest.ts';
import { showHome } from '../home/pages/home.ts';
import type { Metrics, MetricsOptions } from '../http/metrics.ts';
import type { PublicUrls } from '../http/urls.ts';
import { isUnavailable } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { createTasks } from '../lib/tasks.ts';
import { createAdmission, modeResource } from '../mode/mode.rest.ts';
import { type Resource, folder } from '../rest/resource.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Executor } from '../upgrades/executors/executor.ts';
import { JobRunner } from '../upgrades/jobs/job-runner.ts';
import { JobScheduler } from '../upgrades/starting/job-scheduler.ts';
import { isJobRunning, isOpen, newestJob } from '../upgrades/jobs/job-table.ts';
import { JobWatcher, upgradeStats } from '../upgrades/jobs/job-service.ts';
import type { OnJobChange } from '../upgrades/jobs/job.ts';
import { createDriftReader } from '../upgrades/starting/drift.ts';
import { systemResource } from '../upgrades/upgrades.rest.ts';
import { createFirstVersion } from '../upgrades/starting/first-version.ts';
import { type BaseManifest, deployment, installedVersions } from '../upgrades/versions/deployment.ts';
import { uploadsResource } from '../uploads/rest.ts';
import {
  type WebhookNotice,
  adoptionEvent,
  jobEvent,
  noticeData,
  serviceEvent,
  webhookEvent,
} from '../webhooks/own-events.ts';
import { EventPublisher } from '../webhooks/queue/event-publisher.ts';
import { RedeliveryWorker } from '../webhooks/queue/redelivery-worker.ts';
import type { RequestOptions } from '../webhooks/sending/delivery-request.ts';
import { DeliveryWorker } from '../webhooks/sending/delivery-worker.ts';
import type { HttpClient } from '../webhooks/sending/http-client.ts';
import { webhookStats } from '../webhooks/stats.ts';
import { listForAllServices, listWebhooks } from '../webhooks/webhook.ts';
import { serviceWebhooksResource, webhooksResource } from '../webhooks/webhooks.rest.ts';
import { targetNames } from './target-names.ts';

export type AppOptions = MetricsOptions & {
  readonly config: Config;
  readonly store: Store;
  readonly runtime: Runtime;
  readonly httpClient: HttpClient;
  readonly executor: Executor;
  readonly logger: FastifyBaseLogger;
  readonly wsdl: string;
  readonly assets: AssetFiles;
  readonly manifest: BaseManifest;
  readonly version: string;
  /** Undefined for a build without git. */
  readonly commit?: string | undefined;
  readonly adminHash: () => Promise<string>;
  /** The store holds the state of an earlier app of this process, whose job continues. */
  readonly isRestored?: boolean;
  /** Failed sign-ins that still count. Default: none. */
  readonly signInLimit?: SignInLimit;
  readonly passwords?: Passwords;
  /** Adds hooks that run before all others. */
  readonly extend?: (http: FastifyInstance) => void;
};

/** An error of our own, not of the deployment. */
function isDefect(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
}

export type Services = ReturnType<typeof createServices>;

export function createServices(options: AppOptions, isReady: () => boolean) {
  const { config, store, runtime, httpClient, executor, logger } = options;
  const startedAt = runtime.now();
  let metrics: Promise<Metrics> | undefined;
  const loadMetrics = () => (metrics ??= createMetrics(options, isReady));
  const logFailure = (isExpected: boolean, facts: object, message: string) => {
    logger[isExpected ? 'warn' : 'error'](facts, message);
    if (!isExpected) void loadMetrics().then(({ failures }) => failures.inc());
  };
  // The store logs an outage of the database once, with its reason, and tasks that failed during it run again.
  const tasks = createTasks(runtime, (task, error) =>
    logFailure(isUnavailable(error), { err: error, task }, 'background task failed'),
  );
  const auditService = new AuditService({
    store,
    runtime,
    tasks,
    days: config.AUDIT_DAYS,
    onLost: (entry, error) => {
      const facts = isUnavailable(error) ? { entry } : { entry, err: error };
      logFailure(isUnavailable(error), facts, 'an entry of the audit trail could not be stored');
    },
  });
  const tokenService = new TokenService({ store, runtime, tasks, ...config.rules });
  const signInService = new SignInService({
    store,
    runtime,
    tasks,
    maxTokensPerUser: config.MAX_TOKENS_PER_USER,
    onlyPasswordOf: config.LOCAL_SIGN_IN ? undefined : config.ADMIN_USERNAME,
    signInLimit: options.signInLimit,
    passwords: options.passwords,
  });
  const catalogCache = new CatalogCache(store, runtime);
  const limits = { pending: config.WEBHOOK_MAX_PENDING, pendingBytes: config.WEBHOOK_MAX_PENDING_BYTES };
  const eventPublisher = new EventPublisher({ store, runtime, tasks, limits });
  const notifyJob: OnJobChange = (transaction, job, at) => {
    eventPublisher.publishWithin(transaction, jobEvent(job), at);
    // Only the end of a run is an entry of its own: the entry of the request says that a scheduled job was cancelled.
    if (isOpen(job) || (job.state === 'cancelled' && job.startedAt === null)) return;
    const outcome = job.state === 'failed' ? 'failed' : 'success';
    const operation = 'system/jobs/{job}/end';
    const entry = auditService.createEntry({ at, operation, target: `system/jobs/${job.id}`, outcome });
    auditService.recordWithin(transaction, entry);
  };
  const notifyWebhook = (transaction: Transaction, notice: WebhookNotice, at: number) => {
    eventPublisher.publishWithin(transaction, webhookEvent(notice), at);
    if (notice.kind !== 'Deactivated') return;
    const operation = 'services/webhooks/{webhook}/deactivate';
    const target = `services/webhooks/${notice.webhook.id}`;
    auditService.recordWithin(transaction, auditService.createEntry({ at, operation, target }));
  };
  const jobRunner = new JobRunner({
    store,
    runtime,
    tasks,
    executor,
    stepTimeoutMs: config.upgradeStepTimeoutMs,
    revertTimeoutMs: config.revertTimeoutMs,
    notify: notifyJob,
    onStepFailed: ({ id }, step, error) =>
      logFailure(!isDefect(error), { err: error, job: id, step }, 'a step of an upgrade has failed'),
  });
  const jobWatcher = new JobWatcher(store, runtime);

  const firstVersion = createFirstVersion({
    store,
    runtime,
    tasks,
    executor,
    logger,
    named: config.INSTALLED_VERSION,
    looksAgain: config.UPGRADE_EXECUTOR !== 'simulated',
    record: (transaction, at) => {
      const operation = 'system/upgrades/adopt';
      const entry = auditService.createEntry({ at, operation, target: 'system/upgrades' });
      auditService.recordWithin(transaction, entry);
    },
  });

  async function start(): Promise<void> {
    await firstVersion.start();
    await jobRunner.recover(options.isRestored);
    new JobScheduler({
      store,
      runtime,
      tasks,
      executor,
      jobRunner,
      notify: notifyJob,
      graceMs: config.scheduleGraceMs,
    }).start();
    // The first listing sorts the whole catalog, which no request should wait for.
    catalogCache.listing('public');
    new RedeliveryWorker({ store, runtime, tasks, limits }).start();
    const [concurrency = 0, slotsPerReceiver = 0] = config.WEBHOOK_CONCURRENCY.split('/').map(Number);
    new DeliveryWorker({
      store,
      runtime,
      tasks,
      httpClient,
      notify: notifyWebhook,
      concurrency,
      slotsPerReceiver,
      request: requestOptionsOf(options),
      onAttempt: ({ durationMs, error }, { state, isPing }) => {
        const outcome = error === null ? 'succeeded' : 'failed';
        const failsDelivery = state === 'failed' && !isPing;
        void loadMetrics().then((loaded) => loaded.observeAttempt(outcome, durationMs / 1000, failsDelivery));
      },
      onNotice: (notice) => logNotice(logger, notice),
    }).start();
  }

  return {
    startedAt,
    auditService,
    tokenService,
    signInService,
    catalogCache,
    loadMetrics,
    eventPublisher,
    jobRunner,
    jobWatcher,
    notifyJob,
    decideVersion: firstVersion.decide,
    admit: createAdmission(store, isJobRunning),
    start,
    /** Also waits for a load that has begun: an import must not outlive the server. */
    stop: () => Promise.all([tasks.stop(), metrics]),
  };
}

const noticeMessages: Readonly<Record<WebhookNotice['kind'], string>> = {
  Failing: 'half of the failed deliveries that deactivate the webhook are reached',
  Recovered: 'a delivery to the failing webhook succeeded',
  Deactivated: 'webhook deactivated after too many failed deliveries',
};

function logNotice(logger: FastifyBaseLogger, notice: WebhookNotice): void {
  const { kind } = notice;
  logger[kind === 'Recovered' ? 'info' : 'warn'](noticeData(notice), noticeMessages[kind]);
}

/** Loads prom-client, which brings 83 files, when it is first used: usually after the first answer. */
async function createMetrics(options: AppOptions, isReady: () => boolean): Promise<Metrics> {
  const { store, runtime } = options;
  const library = await import('../http/metrics.ts');
  return new library.Metrics(
    () => ({
      ready: Number(isReady()),
      ...webhookStats(store, runtime.now()),
      ...upgradeStats(store, runtime.now()),
    }),
    options,
  );
}

function requestOptionsOf({ config, version }: AppOptions): RequestOptions {
  return { userAgent: `Steward/${version}`, legacyHeader: config.LEGACY_SIGNATURE_HEADER };
}

export function adminResource(options: AppOptions, services: Services, urls: PublicUrls): Resource {
  const { config, store, runtime, executor } = options;
  const { catalogCache, eventPublisher, jobRunner, jobWatcher, notifyJob, signInService } = services;
  const installed = () => installedVersions(store.read(deployment)).at(-1);
  const webhookDeps = {
    store,
    runtime,
    request: requestOptionsOf(options),
    rules: { allowed: config.WEBHOOK_ALLOW_CIDRS, legacyHeader: config.LEGACY_SIGNATURE_HEADER },
  };
  const titles = operationTitles(() => root);
  const names = targetNames(store);
  const readDrift = createDriftReader(store, executor, runtime);
  const home = showHome({
    store,
    readDrift,
    catalogCache,
    installed,
    startedAt: services.startedAt,
    words: { titles, names },
    inUse: {
      store: config.STORE_URL === undefined ? 'memory' : 'postgres',
      executor: config.UPGRADE_EXECUTOR,
    },
  });
  const resources: Resource['resources'] = {
    mode: modeResource(store, isJobRunning),
    security: securityResource(store, runtime, signInService),
    services: catalogResource({
      store,
      catalogCache,
      rules: config.rules,
      limits: config,
      jobUrl: (id) => `${urls.admin}/jobs/${id}`,
      baseUrl: () => urls.catalog,
      soapPath: urls.catalogPagePath,
      webhooksOf: (service) => ({
        own: listWebhooks(store, pathOfService(service)),
        ofAll: listForAllServices(store).length,
      }),
      notify: (transaction, change, id, at) =>
        eventPublisher.publishWithin(transaction, serviceEvent(change, id), at),
      resources: { webhooks: webhooksResource({ ...webhookDeps, eventPublisher }) },
      serviceResources: { webhooks: serviceWebhooksResource(webhookDeps) },
    }),
    system: systemResource({
      store,
      runtime,
      executor,
      jobRunner,
      jobWatcher,
      notify: notifyJob,
      notifyAdoption: (transaction, adoption, at) =>
        eventPublisher.publishWithin(transaction, adoptionEvent(adoption), at),
      decideVersion: services.decideVersion,
      readDrift,
      resources: {
        audit: auditResource({ store, titles, names }),
      },
    }),
    uploads: uploadsResource({
      store,
      runtime,
      maxTotalBytes: config.MAX_UPLOADS_TOTAL_BYTES,
      isInUse: (reader, id) => {
        const job = reader.read(newestJob);
        return job !== null && isOpen(job) && job.uploads.includes(id);
      },
    }),
  };
  // Programs of this family sign in there too.
  const generateToken = generateTokenOperation({ signInService, urls });
  const root: Resource = rootResource(installed, home, {
    resources,
    unlisted: { jobs: serviceJobsResource(runtime.now) },
    operations: { generateToken },
  });
  return root;
}

/** The resources that clients read before they sign in. */
export function restResource(
  { config, store }: AppOptions,
  { catalogCache }: Services,
  urls: PublicUrls,
): Resource {
  const installed = () => installedVersions(store.read(deployment)).at(-1);
  return folder(
    { title: 'Server directory', description: 'The server info and the REST catalog.', access: 'anyone' },
    {
      info: infoResource({
        installed,
        soapUrl: () => urls.catalog,
        owningSystemUrl: () => urls.tokens,
        tokenServiceUrl: () => urls.tokenService,
        tokenMinutes: expirationMinutes.default,
      }),
      services: directoryResource({
        catalogCache,
        requireTokens: config.REQUIRE_TOKENS,
        currentVersion: () => currentVersion(store),
      }),
    },
  );
}

/** The installed version as a number. Null: it is not known. */
export function currentVersion(store: AppOptions['store']): number | null {
  return versionNumber(installedVersions(store.read(deployment)).at(-1));
}
