// The composition root: builds the services, mounts REST and SOAP on one server, starts and stops.
import type { FastifyInstance } from 'fastify';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import { tokensResource } from './auth/tokens.rest.ts';
import { loadCatalog } from './catalog/catalog.ts';
import { Assets } from './http/assets.ts';
import { BodyLimits } from './http/body-limits.ts';
import { registerProbes } from './http/probes.ts';
import { createServer } from './http/server.ts';
import { PublicUrls } from './http/urls.ts';
import { sendHtml } from './rest/html/layout.ts';
import { errorPage } from './rest/html/pages.ts';
import { openApiDocument } from './rest/openapi/document.ts';
import { isSignedIn } from './rest/request.ts';
import type { Resource } from './rest/resource.ts';
import { eventTypesInOpenApi } from './webhooks/event-types.rest.ts';
import { type Mount, mountRest, mountSoap } from './mounts.ts';
import { type AppOptions, adminResource, createServices } from './services.ts';

export type App = {
  readonly http: FastifyInstance;
  readonly metricsRegistry: Registry;
  readonly urls: PublicUrls;
  readonly trees: { readonly admin: Resource; readonly tokens: Resource };
  readonly createdAdministrator: boolean;
  readonly close: () => Promise<void>;
};

export async function createApp(options: AppOptions): Promise<App> {
  const { config, store, runtime } = options;
  const services = createServices(options);
  const { metrics, tokenService } = services;
  const assets = new Assets(options.assets, config.adminPath);
  const bodyLimits = new BodyLimits({
    runtime,
    maxFileBytes: config.maxUploadBytes,
    isSignedIn: (request) => isSignedIn(request, tokenService),
  });
  let isClosing = false;
  const http: FastifyInstance = createServer({
    logger: options.logger,
    metrics,
    trustedProxies: config.trustedProxies,
    bodyLimits,
    isClosing: () => isClosing,
    hasTreeAtRoot: config.adminPath === '',
    sendErrorPage: (reply, { status, body }) => {
      const crumbs = [{ name: 'admin', href: urls.homePath }];
      const layout = { title: 'Error', assets: assets.hrefs(urls.linkBase), crumbs };
      return sendHtml(reply, status, errorPage(layout, body.error));
    },
  });
  // The port is known only once the server listens.
  const urls = new PublicUrls(
    config,
    () => (http.server.address() as AddressInfo | null)?.port ?? config.port,
  );

  await store.update((transaction) => loadCatalog(transaction, options.catalog, runtime.now()));
  const createdAdministrator = await tokenService.ensureAdministrator(
    config.adminUsername,
    options.adminHash,
  );

  const admin = adminResource(options, services, urls);
  const tokens = tokensResource({ tokenService, urls });
  const trees = [
    { name: 'admin', prefix: config.adminPath, root: admin },
    { name: 'tokens', prefix: config.tokensPath, root: tokens },
  ];
  const mount: Mount = { http, options, services, urls, assets, bodyLimits };
  await mountRest(mount, trees);
  await mountSoap(mount);
  assets.register(http);
  registerProbes(http, {
    metrics,
    reasonsNotReady: () => [...(isClosing ? ['shutting down'] : []), ...store.problems()],
    openApi: {
      path: `${config.adminPath}/openapi.json`,
      document: () =>
        openApiDocument(trees, {
          version: options.version,
          publicUrl: urls.base,
          soapUrl: urls.catalog,
          errorStatus200: config.errorStatus200,
          webhooks: eventTypesInOpenApi,
        }),
    },
    homePath: config.adminPath === '' ? undefined : () => urls.homePath,
  });
  await http.ready();
  await services.start();

  return {
    http,
    metricsRegistry: metrics.registry,
    urls,
    trees: { admin, tokens },
    createdAdministrator,
    async close() {
      isClosing = true;
      services.jobWatcher.stop();
      await Promise.all([http.close(), services.tasks.stop()]);
      services.auditService.close();
      await store.close();
    },
  };
}
