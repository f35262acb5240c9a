// The bare HTTP server: its limits, and errors outside both APIs.
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { METHODS } from 'node:http';
import { ServiceError, invalidField } from '../errors.ts';
import { notFound } from '../rest/response.ts';
import type { RequestLog } from './request-log.ts';
import { type BareFrame, answerBadHttp, sendSiteError } from './errors.ts';
import { createResponseClass } from './response.ts';

declare module 'fastify' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions -- merges with Fastify's own
  interface FastifyContextConfig {
    /** For what goes on being told while the server is closing: the requests of all other routes are finished, and no new ones taken. */
    answersWhileClosing?: true;
  }
}

export type HttpOptions = {
  readonly logger: FastifyBaseLogger;
  readonly account: RequestLog;
  readonly frame: () => BareFrame;
  readonly isClosing: () => boolean;
};

export function createHttp({ logger, account, frame, isClosing }: HttpOptions): FastifyInstance {
  const http = fastify({
    loggerInstance: shareLogger(logger),
    logController: new LogController({ disableRequestLogging: true }),
    // The time-outs hold only because connections are looked at every second.
    requestTimeout: 300_000,
    keepAliveTimeout: 72_000,
    http: {
      connectionsCheckingInterval: 1000,
      headersTimeout: 10_000,
      maxHeaderSize: 16 * 1024,
      // Refused below, with a word about it.
      requireHostHeader: false,
      ServerResponse: createResponseClass({ isClosing, untakenMs: 120_000 }),
    },
    bodyLimit: 1024 ** 2,
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 16 * 1024 },
    clientErrorHandler: answerBadHttp,
    // A path that cannot be decoded names nothing: made literal, it is answered, logged and counted like any other.
    rewriteUrl: ({ url = '/' }) => (isDecodable(url) ? url : url.replaceAll('%', '%25')),
    frameworkErrors: (_error, request, reply) => void sendSiteError(request, reply, notFound(), frame()),
  });
  // An expectation that nobody knows is nothing to be refused for, least of all without a word.
  http.server.on('checkExpectation', (...exchange) => http.server.emit('request', ...exchange));
  // Methods that Fastify does not know by itself are refused like any other, not unheard of.
  for (const method of METHODS) if (!http.supportedMethods.includes(method)) http.addHttpMethod(method);
  // An unknown path, or a request to nobody, is answered without looking at the body.
  http.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-content-type-options', 'nosniff');
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1')
      throw invalidField('Host', 'must be given.');
    if (request.is404) throw notFound();
    if (isClosing() && !request.routeOptions.config.answersWhileClosing)
      throw new ServiceError('unavailable', 'The server is shutting down.', { retryAfterSeconds: 5 });
    done();
  });

  http.decorateRequest('progress', null);
  http.decorateRequest('routeLabel', null);
  http.addHook('onResponse', (request, reply, done) => {
    const { statusCode: status, elapsedTime: ms } = reply;
    account(request.raw, { route: request.routeLabel ?? 'unknown', status, ms });
    done();
  });
  http.setNotFoundHandler((request, reply) => sendSiteError(request, reply, notFound(), frame()));
  http.setErrorHandler((error, request, reply) => sendSiteError(request, reply, error, frame()));
  return http;
}

/** The contract's fields are read by our own rules, so what compiles schemas need not be loaded: it takes as long as all else. */
function noSchemas(): never {
  throw new Error('No route has a schema.');
}

/** One for all requests, since what is said of one says which. */
function shareLogger(logger: FastifyBaseLogger): FastifyBaseLogger {
  const shared = logger.child({});
  shared.child = () => shared;
  return shared;
}

function isDecodable(url: string): boolean {
  if (!url.includes('%')) return true;
  try {
    decodeURIComponent(url.split('?', 1)[0] ?? '');
    return true;
  } catch {
    return false;
  }
}
