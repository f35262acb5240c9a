// The protocols on the server: the resource trees, sign-in at the identity provider, and the SOAP endpoint.
import type { FastifyInstance, FastifyReply } from 'fastify';
import { oidcRoutes } from '../auth/oidc.rest.ts';
import { IdentityProvider } from '../auth/oidc/provider.ts';
import { sendEndpointPage } from '../catalog/pages/endpoint.ts';
import { catalogNames, catalogOperations, fillWsdl } from '../catalog/soap.ts';
import type { Frame } from '../console/frame.ts';
import { HtmlResponder } from '../console/responder.ts';
import { identifySession } from '../http/credentials.ts';
import type { PublicUrls } from '../http/urls.ts';
import { MultipartReader } from '../rest/multipart.ts';
import type { Tree } from '../rest/openapi/document.ts';
import { restRoutes } from '../rest/routes.ts';
import { SoapHandler } from '../soap/handler.ts';
import { soapEndpoint } from '../soap/plugin.ts';
import type { AppOptions, Services } from './services.ts';

export type Mount = {
  readonly http: FastifyInstance;
  readonly options: AppOptions;
  readonly services: Services;
  readonly urls: PublicUrls;
  readonly frame: Frame;
};

export async function mountRest(
  { http, options, services, urls, frame }: Mount,
  trees: readonly Tree[],
): Promise<void> {
  const { config } = options;
  const { tokenService, auditService, retryAfterRefresh, admit } = services;
  const multipart = new MultipartReader(config.MAX_UPLOAD_BYTES);
  for (const { name, prefix, root, hasPages } of trees) {
    await http.register(restRoutes, {
      prefix,
      root,
      auditPrefix: name === 'admin' ? '' : `${name}/`,
      store: options.store,
      auditService,
      authenticator: tokenService,
      retryAfterRefresh,
      admit,
      multipart,
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
      errorStatus200: config.ERROR_STATUS === '200',
    });
  }
}

export async function mountOidc({ http, options, services, urls, frame }: Mount): Promise<void> {
  const { config, runtime, logger } = options;
  if (!config.oidc) return;
  const { signInService, auditService } = services;
  const provider = new IdentityProvider({
    ...config.oidc,
    runtime,
    onFailure: (failure) => logger.warn(failure, 'a request to the identity provider failed'),
  });
  const prefix = `${config.TOKENS_PATH}/oidc`;
  await http.register(oidcRoutes, { prefix, provider, signInService, auditService, runtime, urls, frame });
}

export async function mountSoap({ http, options, services, urls, frame }: Mount): Promise<void> {
  const { config, wsdl: template } = options;
  const { tokenService, catalogCache } = services;
  const { CATALOG_NAMESPACE: namespace, REQUIRE_TOKENS: requireTokens } = config;
  const names = catalogNames(config.VENDOR_PREFIX, config.PRODUCT_NAME);
  const operations = catalogOperations({
    catalogCache,
    names,
    requireTokens,
    baseUrl: () => urls.catalog,
    tokenServiceUrl: () => urls.tokenService,
  });
  let wsdl: Buffer | undefined;
  await http.register(soapEndpoint, {
    prefix: config.CATALOG_PATH,
    handler: new SoapHandler(namespace, operations),
    requireTokens,
    identify: tokenService.identify,
    wsdl: () => (wsdl ??= Buffer.from(fillWsdl(template, { namespace, baseUrl: urls.catalog, names }))),
    sendPage: async (reply): Promise<FastifyReply> =>
      sendEndpointPage(reply, {
        layout: frame.layout({
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
