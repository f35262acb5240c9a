// The composition root: builds the services, and mounts REST and SOAP on one server.
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { AddressInfo } from 'node:net';
import { tokensResource } from './auth/tokens.rest.ts';
import { type CatalogFile, loadCatalog } from './catalog/catalog-file.ts';
import { sendEndpointPage } from './catalog/pages/endpoint.ts';
import { catalogOperations } from './catalog/soap.ts';
import { catalogNames, fillWsdl } from './catalog/wsdl.ts';
import type { Config } from './config.ts';
import { type AssetFiles, Assets } from './http/assets.ts';
import { registerProbes } from './http/probes.ts';
import { createServer } from './http/server.ts';
import { PublicUrls } from './http/urls.ts';
import { HtmlResponder } from './rest/html/responder.ts';
import { sendHtml } from './rest/html/layout.ts';
import { errorPage } from './rest/html/pages.ts';
import { MultipartReader } from './rest/multipart.ts';
import { openApiDocument } from './rest/openapi/document.ts';
import type { Resource } from './rest/resource.ts';
import { restRoutes } from './rest/routes.ts';
import type { Runtime } from './runtime.ts';
import { type Services, adminResource, createServices } from './services.ts';
import { SoapHandler } from './soap/handler.ts';
import { soapEndpoint } from './soap/plugin.ts';
import type { Store } from './store/store.ts';
import type { Executor } from './upgrades/executors/executor.ts';

export type AppOptions = {
  readonly config: Config;
  readonly store: Store;
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly logger: FastifyBaseLogger;
  /** The text of wsdl/ServiceCatalog.wsdl. */
  readonly wsdl: string;
  readonly assets: AssetFiles;
  /** What a store without a catalog is loaded with. */
  readonly catalog: CatalogFile;
  /** The version of Steward. */
  readonly version: string;
  /** The hash of the first administrator's password. */
  readonly adminHash: () => Promise<string>;
};

export type App = {
  readonly http: FastifyInstance;
  readonly services: Services;
  readonly urls: PublicUrls;
  /** The resource trees as mounted. */
  readonly trees: { readonly admin: Resource; readonly tokens: Resource };
  /** Whether this start has created the first administrator. */
  readonly createdAdministrator: boolean;
  /** Stops accepting requests, finishes those in progress, and stops background work. */
  readonly close: () => Promise<void>;
};

export async function createApp(options: AppOptions): Promise<App> {
  const { config, store, runtime } = options;
  let isClosing = false;
  const services = createServices(options);
  const assets = new Assets(options.assets, config.adminPath);
  const http: FastifyInstance = createServer({
    logger: options.logger,
    metrics: services.metrics,
    trustedProxies: config.trustedProxies,
    isClosing: () => isClosing,
    hasTreeAtRoot: config.adminPath === '',
    sendErrorPage: (reply, { status, body }) => {
      const crumbs = [{ name: 'admin', href: urls.homePath }];
      const layout = { title: 'Error', assets: assets.hrefs(urls.linkBase), crumbs };
      return sendHtml(reply, status, errorPage(layout, body.error));
    },
  });
  const urls = new PublicUrls(
    config,
    () => (http.server.address() as AddressInfo | null)?.port ?? config.port,
  );

  await store.update((transaction) => loadCatalog(transaction, options.catalog, runtime.now()));
  const createdAdministrator = await services.tokenService.ensureAdministrator(
    config.adminUsername,
    options.adminHash,
  );

  const trees = {
    admin: adminResource(options, services, urls),
    tokens: tokensResource({ tokenService: services.tokenService, urls }),
  };
  await mountRest(http, options, services, { trees, urls, assets });
  await mountSoap(http, options, services, { urls, assets });
  assets.register(http);
  registerProbes(http, {
    metrics: services.metrics,
    reasonsNotReady: () => [...(isClosing ? ['shutting down'] : []), ...store.problems()],
    openApi: {
      path: `${config.adminPath}/openapi.json`,
      document: () =>
        openApiDocument(
          [
            { name: 'admin', prefix: config.adminPath, root: trees.admin },
            { name: 'tokens', prefix: config.tokensPath, root: trees.tokens },
          ],
          {
            version: options.version,
            publicUrl: urls.base,
            soapUrl: urls.catalog,
            errorStatus200: config.errorStatus200,
          },
        ),
    },
    homePath: config.adminPath === '' ? undefined : () => urls.homePath,
  });
  await http.ready();
  await services.start();

  return {
    http,
    services,
    urls,
    trees,
    createdAdministrator,
    async close() {
      isClosing = true;
      services.jobWatcher.stop();
      await Promise.all([http.close(), services.tasks.stop()]);
      await store.close();
    },
  };
}

type Mounted = { readonly urls: PublicUrls; readonly assets: Assets };

async function mountRest(
  http: FastifyInstance,
  { config, runtime }: AppOptions,
  { tokenService, retryAfterRefresh, admit }: Services,
  { trees, urls, assets }: Mounted & { readonly trees: App['trees'] },
): Promise<void> {
  const multipart = new MultipartReader({ maxFileBytes: config.maxUploadBytes, runtime });
  const mounts = [
    { rootName: 'admin', prefix: config.adminPath, root: trees.admin },
    { rootName: 'tokens', prefix: config.tokensPath, root: trees.tokens },
  ];
  for (const { rootName, prefix, root } of mounts) {
    await http.register(restRoutes, {
      prefix,
      root,
      identify: (credentials) => tokenService.identify(credentials),
      retryAfterRefresh,
      admit,
      multipart,
      responder: new HtmlResponder({ prefix, rootName, urls, assets: () => assets.hrefs(urls.linkBase) }),
      errorStatus200: config.errorStatus200,
    });
  }
}

async function mountSoap(
  http: FastifyInstance,
  { config, wsdl: template }: AppOptions,
  { tokenService, catalogCache, retryAfterRefresh }: Services,
  { urls, assets }: Mounted,
): Promise<void> {
  const { catalogNamespace: namespace, requireTokens } = config;
  const operations = catalogOperations({
    catalogCache,
    names: catalogNames(config.vendorPrefix, config.productName),
    requireTokens,
    baseUrl: () => urls.catalog,
    tokenServiceUrl: () => urls.tokenService,
  });
  let wsdl: Buffer | undefined;
  await http.register(soapEndpoint, {
    prefix: config.catalogPath,
    handler: new SoapHandler(namespace, operations),
    requireTokens,
    identify: (credentials) => tokenService.identify(credentials),
    retryAfterRefresh,
    wsdl: () => (wsdl ??= Buffer.from(fillWsdl(template, { ...config, namespace, baseUrl: urls.catalog }))),
    sendPage: (reply) =>
      sendEndpointPage(reply, {
        assets: assets.hrefs(urls.linkBase),
        baseUrl: urls.catalog,
        adminUrl: urls.catalogPages,
        operations,
        namespace,
        requireTokens,
      }),
  });
}
