// The composition root: builds the services, mounts REST and SOAP on one server, starts and stops.
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { AddressInfo } from 'node:net';
import { oidcRoutes } from '../auth/oidc.rest.ts';
import { tokensResource } from '../auth/tokens.rest.ts';
import { findUser, isLocalAdministrator } from '../auth/user.ts';
import { type InitialCatalog, loadCatalog } from '../catalog/catalog.ts';
import { sendEndpointPage } from '../catalog/pages/endpoint.ts';
import { catalogNames, catalogOperations, fillWsdl } from '../catalog/soap.ts';
import { Assets } from '../console/assets.ts';
import { Frame } from '../console/frame.ts';
import { sendHtml } from '../console/layout.ts';
import { errorPage, errorTitle } from '../console/pages.ts';
import { HtmlResponder } from '../console/responder.ts';
import { themeRoute } from '../console/theme.ts';
import { withoutInfoProbe } from '../home/root.rest.ts';
import { navigation, readOnlyState } from '../home/pages/frame.ts';
import { BodyLimits } from '../http/body-limits.ts';
import { identifySession } from '../http/credentials.ts';
import type { Metrics } from '../http/metrics.ts';
import { registerMetrics, registerProbes } from '../http/probes.ts';
import { type ServerOptions, createServer } from '../http/server.ts';
import { PublicUrls } from '../http/urls.ts';
import { retryWhileUnavailable } from '../lib/async.ts';
import { type Tree, openApiDocument } from '../rest/openapi/document.ts';
import type { Resource } from '../rest/resource.ts';
import { restRoutes } from '../rest/routes.ts';
import type { ChildForm } from '../soap/envelope.ts';
import { SoapHandler } from '../soap/handler.ts';
import { soapEndpoint } from '../soap/plugin.ts';
import { loadManifest } from '../upgrades/starting/first-version.ts';
import { eventTypesInOpenApi } from '../webhooks/event-types.rest.ts';
import { storePatienceMs } from './backends.ts';
import {
  type AppOptions,
  type Services,
  adminResource,
  createServices,
  currentVersion,
  restResource,
} from './services.ts';

export type App = {
  readonly http: FastifyInstance;
  /** The second listener, if the configuration has one. */
  readonly metricsHttp: FastifyInstance | undefined;
  readonly loadMetrics: () => Promise<Metrics>;
  readonly urls: PublicUrls;
  readonly trees: { readonly admin: Resource; readonly tokens: Resource; readonly rest: Resource };
  readonly createdAdministrator: boolean;
  /** Ends the background work, answers requests that wait, and closes the store. */
  readonly stop: () => Promise<void>;
  /** A token of the first administrator, for the program that has started the server. */
  readonly issueAdminToken: () => Promise<string>;
  /** Stops, and closes the server after the requests in progress. */
  readonly close: () => Promise<void>;
};

/** A hundred years: tests may advance the clock by any time. */
const adminTokenMinutes = 100 * 365 * 24 * 60;

export type NewApp = AppOptions & { readonly catalog: InitialCatalog };

export async function createApp({ catalog, ...options }: NewApp): Promise<App> {
  const { config, store, runtime } = options;
  let closing: Promise<void> | undefined;
  const reasonsNotReady = () => [...(closing ? ['shutting down'] : []), ...store.problems()];
  const services = createServices(options, () => reasonsNotReady().length === 0);
  const { loadMetrics, tokenService, signInService } = services;
  const assets = new Assets(options.assets, config.ADMIN_PATH);
  const bodyLimits = new BodyLimits({
    runtime,
    maxFileBytes: config.MAX_UPLOAD_BYTES,
    userOf: async (request) => (await identifySession(request, tokenService.identify))?.caller.username,
  });
  const serverOptions: ServerOptions = {
    logger: options.logger,
    loadMetrics,
    elapsed: runtime.elapsed,
    trustedProxies: config.TRUSTED_PROXIES,
    bodyLimits,
    isClosing: () => closing !== undefined,
    hasTreeAtRoot: config.ADMIN_PATH === '',
    tokenHeader: `X-${config.VENDOR_PREFIX}-Authorization`,
    routedUrl: (url) => withoutInfoProbe(url, config),
    extend: options.extend,
    sendErrorPage: async (reply, { status, body }) => {
      const layout = await frame.layout({ title: errorTitle(status), identity: undefined });
      const links = [{ name: 'Go to the home page', href: urls.homePath }];
      return sendHtml(reply, status, errorPage(layout, body.error, links));
    },
  };
  const http = createServer(serverOptions);
  const metricsHttp =
    config.METRICS_PORT === undefined
      ? undefined
      : createServer({ ...serverOptions, hasTreeAtRoot: false, extend: undefined });
  // The port is known only once the server listens.
  const urls = new PublicUrls(
    config,
    () => (http.server.address() as AddressInfo | null)?.port ?? config.PORT,
  );
  const name = config.CONSOLE_NAME ?? 'Steward';
  const frame = new Frame({
    name,
    version: options.version,
    urls,
    prefix: config.ADMIN_PATH,
    assets: () => assets.hrefs(urls.linkBase),
    navigation: navigation(store, () => runtime.now()),
    readOnly: () => readOnlyState(store),
    unavailableSince: store.unavailableSince,
    isControlled: config.TEST_CONTROL,
    now: () => runtime.now(),
    providerLabel: config.oidc?.label,
    localSignIn: config.LOCAL_SIGN_IN,
  });

  const patientUntil = runtime.now() + storePatienceMs;
  /** A start that fails leaves nothing open. */
  const whileStarting = async <T>(work: () => Promise<T>) => {
    const onRetry = (error: unknown) =>
      options.logger.warn({ err: error }, 'the start waits for the database');
    try {
      const ms = patientUntil - runtime.now();
      return await retryWhileUnavailable(work, runtime, undefined, { ms, onRetry });
    } catch (error) {
      await stop();
      throw error;
    }
  };
  await whileStarting(loading(catalog, options));

  const admin = adminResource(options, services, urls);
  const portal = { name, currentVersion: () => currentVersion(store) };
  const hasProvider = config.oidc !== undefined;
  const tokens = tokensResource({ tokenService, signInService, urls, store, runtime, portal, hasProvider });
  const rest = restResource(options, services, urls);
  const trees = [
    { name: 'admin', prefix: config.ADMIN_PATH, root: admin, hasPages: true },
    { name: 'tokens', prefix: config.TOKENS_PATH, root: tokens, hasPages: true },
    { name: 'rest', prefix: config.REST_PATH, root: rest, hasPages: false },
  ];
  const mount: Mount = { http, options, services, urls, frame };
  await mountRest(mount, trees);
  await mountOidc(mount);
  await mountSoap(mount);
  assets.register(http);
  await http.register(themeRoute, { path: `${config.ADMIN_PATH}/assets/theme`, urls });
  registerMetrics(metricsHttp ?? http, loadMetrics);
  registerProbes(http, {
    build: options,
    reasonsNotReady,
    openApi: {
      path: `${config.ADMIN_PATH}/openapi.json`,
      document: () =>
        openApiDocument(trees, {
          version: options.version,
          publicUrl: urls.base,
          soapUrl: urls.catalog,
          errorStatus200: config.rules.errorsHaveStatus200,
          webhooks: eventTypesInOpenApi,
        }),
    },
    homePath: config.ADMIN_PATH === '' ? undefined : () => urls.homePath,
  });
  await http.ready();
  await metricsHttp?.ready();
  // As late as possible, because the password is hashed on another thread meanwhile.
  const createdAdministrator = await whileStarting(() =>
    signInService.ensureAdministrator(config.ADMIN_USERNAME, options.adminHash),
  );
  if (!config.LOCAL_SIGN_IN && !isLocalAdministrator(findUser(store, config.ADMIN_USERNAME)))
    options.logger.warn('no password is accepted: ADMIN_USERNAME names no local administrator');
  await whileStarting(services.start);

  return {
    http,
    metricsHttp,
    loadMetrics,
    urls,
    trees: { admin, tokens, rest },
    createdAdministrator,
    stop: () => stop(),
    issueAdminToken: () =>
      signInService.issueToken(config.ADMIN_USERNAME, adminTokenMinutes, ({ username: user, role }) =>
        services.auditService.createEntry({ operation: 'tokens/generateToken', target: null, user, role }),
      ),
    close: () => (closing ??= stop(() => Promise.all([http.close(), metricsHttp?.close()]))),
  };

  async function stop(closeServer?: () => PromiseLike<unknown>): Promise<void> {
    services.jobWatcher.stop();
    bodyLimits.stop();
    await Promise.all([closeServer?.(), services.stop()]);
    await store.close();
  }
}

/** Outside `createApp`, whose closures would keep the catalog in memory: the store has copied it. */
function loading(
  catalog: InitialCatalog,
  { store, runtime, manifest, config }: AppOptions,
): () => Promise<void> {
  return () =>
    store.update((transaction) => {
      loadCatalog(transaction, catalog, runtime.now());
      loadManifest(transaction, manifest, config.INSTALLED_VERSION);
    });
}

type Mount = {
  readonly http: FastifyInstance;
  readonly options: AppOptions;
  readonly services: Services;
  readonly urls: PublicUrls;
  readonly frame: Frame;
};

async function mountRest(
  { http, options, services, urls, frame }: Mount,
  trees: readonly Tree[],
): Promise<void> {
  const { config } = options;
  const { tokenService, auditService, admit } = services;
  for (const { name, prefix, root, hasPages } of trees) {
    await http.register(restRoutes, {
      prefix,
      root,
      auditPrefix: name === 'admin' ? '' : `${name}/`,
      store: options.store,
      auditService,
      authenticator: tokenService,
      admit,
      maxFileBytes: config.MAX_UPLOAD_BYTES,
      pagesAreDefault: name === 'admin' && config.rules.pagesAreDefault,
      responder: hasPages
        ? new HtmlResponder({
            prefix,
            root,
            rootName: name === 'admin' ? 'Home' : root.title,
            urls,
            frame,
            isNavigated: name === 'admin',
          })
        : undefined,
      errorStatus200: config.rules.errorsHaveStatus200,
    });
  }
}

async function mountOidc({ http, options, services, urls, frame }: Mount): Promise<void> {
  const { config, runtime, logger } = options;
  if (!config.oidc) return;
  const { signInService, auditService } = services;
  // Loads the library of the identity provider only where one is configured.
  const { IdentityProvider } = await import('../auth/oidc/provider.ts');
  const provider = new IdentityProvider({
    ...config.oidc,
    runtime,
    onFailure: (failure) => logger.warn(failure, 'a request to the identity provider failed'),
  });
  const prefix = `${config.TOKENS_PATH}/oidc`;
  await http.register(oidcRoutes, { prefix, provider, signInService, auditService, runtime, urls, frame });
}

async function mountSoap({ http, options, services, urls, frame }: Mount): Promise<void> {
  const { config, wsdl: template } = options;
  const { tokenService, catalogCache } = services;
  const { CATALOG_NAMESPACE: namespace, REQUIRE_TOKENS: requireTokens } = config;
  const names = catalogNames(config.VENDOR_PREFIX, config.PRODUCT_NAME);
  const form: ChildForm = config.rules.soapChildrenAreUnqualified ? 'unqualified' : 'qualified';
  const operations = catalogOperations({
    catalogCache,
    names,
    requireTokens,
    baseUrl: () => urls.catalog,
    tokenServiceUrl: () => urls.tokenService,
  });
  const handler = new SoapHandler(namespace, operations, form);
  const wsdlValues = { namespace, names, form, operations: handler.operations };
  let wsdl: Buffer | undefined;
  await http.register(soapEndpoint, {
    prefix: config.CATALOG_PATH,
    handler,
    requireTokens,
    identify: tokenService.identify,
    wsdl: () => (wsdl ??= Buffer.from(fillWsdl(template, { ...wsdlValues, baseUrl: urls.catalog }))),
    sendPage: async (reply): Promise<FastifyReply> =>
      sendEndpointPage(reply, {
        layout: await frame.layout({
          title: 'Service catalog',
          identity: await identifySession(reply.request, tokenService.identify),
          // The page belongs to the services in the navigation.
          path: ['services', 'soap'],
          requested: urls.catalogPagePath,
        }),
        baseUrl: urls.catalog,
        soapPath: urls.catalogPagePath,
        servicesPath: urls.servicesPath,
        operations,
        namespace,
        requireTokens,
      }),
  });
}
