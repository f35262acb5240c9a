// The Fastify instance: its limits, the hooks of every request, and errors outside the protocols' own scopes.
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  createServer as createNodeServer,
} from 'node:http';
import type { BlockList, Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { isListed, plainAddress } from '../lib/address.ts';
import { ServiceError, invalidField, methodNotAllowed } from '../lib/errors.ts';
import { prefersHtml, sendJson } from './answers.ts';
import { AllowedMethods } from './allowed-methods.ts';
import { limitAnswersInMemory } from './answer-limits.ts';
import { type BodyLimits, hasBody } from './body-limits.ts';
import { type ErrorResponse, answerBadHttp, asServiceError, notFound, toErrorResponse } from './errors.ts';
import { connectionLimits, maxBodyBytes, maxHeaders, maxParamLength, serverLimits } from './limits.ts';
import type { Metrics } from './metrics.ts';
import { limitPipelines } from './request-end.ts';
import { badHttpLog, logRequests, noteError, unroutableEnd } from './request-log.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The stream that the parsers read instead of `raw`. Null for a small body that has arrived with the headers. */
    countedBody: Readable | null;
  }
  interface FastifyContextConfig {
    /** Probes and assets are needed until the last request is answered. */
    answersWhileClosing?: true;
  }
}

export type ServerOptions = {
  readonly logger: FastifyBaseLogger;
  readonly loadMetrics: () => Promise<Metrics>;
  readonly elapsed: () => number;
  readonly trustedProxies: BlockList;
  readonly bodyLimits: BodyLimits;
  readonly isClosing: () => boolean;
  readonly sendErrorPage: (reply: FastifyReply, response: ErrorResponse) => Promise<FastifyReply>;
  /** A resource tree at the root sets the not-found handler of the root itself. */
  readonly hasTreeAtRoot: boolean;
  /** The header that may carry a bearer token besides `Authorization`. */
  readonly tokenHeader: string;
  /** The address whose route answers a request. */
  readonly routedUrl: (url: string) => string;
  /** Adds hooks that run before all others. */
  readonly extend: ((app: FastifyInstance) => void) | undefined;
};

/** The routes have no schemas. Loading the schema compilers would take a third of the time to start. */
export const withoutSchemas = {
  compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema },
};

function refuseSchema(): never {
  throw new Error('No route has a schema.');
}

export function createServer(options: ServerOptions): FastifyInstance {
  const { logger, trustedProxies, bodyLimits, isClosing, loadMetrics } = options;
  const noteBadHttp = badHttpLog(options);
  const app = fastify({
    loggerInstance: logger,
    genReqId: createRequestIds(trustedProxies),
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: 'requestId' }),
    trustProxy: (address) => isTrusted(address, trustedProxies),
    bodyLimit: maxBodyBytes,
    serverFactory: (handle) => createHttpServer(limitPipelines(handle)),
    schemaController: withoutSchemas,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    exposeHeadRoutes: false,
    // A test checks every regular expression. The router would check those of the routes at each start.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength, allowUnsafeRegex: true },
    clientErrorHandler: (error, socket) => answerBadHttp(error, socket, noteBadHttp),
    rewriteUrl: ({ url = '/' }) => options.routedUrl(routableUrl(url)),
    // The router still refuses some targets, such as `http://`.
    frameworkErrors: (_error, request, reply) => void sendError(notFound(), request, reply, options),
  });
  // Without this, Node refuses an unknown Expect header with an empty 417.
  app.server.on('checkExpectation', (...exchange) => app.server.emit('request', ...exchange));
  // Node drops further headers silently. One more than allowed must stay, so that the hook below can refuse the
  // request.
  app.server.maxHeadersCount = maxHeaders + 1;

  const allowedMethods = new AllowedMethods(app);
  logRequests(app, loadMetrics);
  options.extend?.(app);
  limitAnswersInMemory(app);
  app.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-content-type-options', 'nosniff').header('x-request-id', request.id);
    checkHeaders(request.raw);
    // Without this, Fastify reads the body before it calls the not-found handler.
    if (request.is404) refuseUnknown(request, allowedMethods);
    if (isClosing() && !request.routeOptions.config.answersWhileClosing)
      throw new ServiceError('unavailable', 'The server is shutting down.', { retryAfterSeconds: 5 });
    done();
  });
  app.decorate('tokenHeader', options.tokenHeader.toLowerCase());
  app.decorateRequest('countedBody', null);
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (hasBody(request)) bodyLimits.receive(request, reply, payload, done);
    else done(null, payload);
  });
  app.addHook('onClose', (_instance, done) => {
    bodyLimits.stop();
    done();
  });
  // Browsers open connections ahead of their requests. Node would wait for one of these as for a request.
  const connections = new Set<Socket>();
  app.server.on('connection', (socket) => {
    // A client that has reset the connection has no address. Node keeps one that was read, also after the close.
    if (socket.remoteAddress === undefined) return void socket.destroy();
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  app.addHook('preClose', (done) => {
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
    done();
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    // A connection that is kept alive would keep the server from closing.
    if (isClosing()) void reply.header('connection', 'close');
    done(null, payload);
  });
  if (!options.hasTreeAtRoot) app.setNotFoundHandler((request) => refuseUnknown(request, allowedMethods));
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply, options));
  return app;
}

function createHttpServer(handle: RequestListener): Server {
  // A hook refuses a missing Host, with the usual error body.
  const server = createNodeServer({ ...serverLimits, requireHostHeader: false }, handle);
  server.timeout = connectionLimits.timeoutMs;
  return server;
}

function isTrusted(address: string | undefined, trustedProxies: BlockList): boolean {
  return address !== undefined && isListed(plainAddress(address), trustedProxies);
}

/** Visible characters, so that the id can stand in a log line and in a header. */
const foreignId = /^[!-~]{1,128}$/;

/** A trusted proxy names its requests itself. */
function createRequestIds(trustedProxies: BlockList): (request: IncomingMessage) => string {
  let count = 0;
  return ({ headers, socket }) => {
    const given = headers['x-request-id'];
    const isGiven = typeof given === 'string' && foreignId.test(given);
    if (isGiven && isTrusted(socket.remoteAddress, trustedProxies)) return given;
    count += 1;
    return `req-${count}`;
  };
}

const singleHeaders = new Map([
  ['host', 'Host'],
  ['authorization', 'Authorization'],
  ['content-type', 'Content-Type'],
]);

export function checkHeaders({ rawHeaders, httpVersion }: IncomingMessage): void {
  // Node reads a request line without a version as HTTP/0.9, and accepts HTTP/2.0.
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw new ServiceError('invalid', 'The request must be HTTP/1.1 or HTTP/1.0.');
  if (rawHeaders.length > 2 * maxHeaders)
    throw new ServiceError('invalid', `The request must have at most ${maxHeaders} headers.`);
  const given = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? '';
    const field = singleHeaders.get(name);
    if (field === undefined) continue;
    // Node reads the first one. A proxy may have checked another.
    if (given.has(name)) throw invalidField(field, 'must be given once.');
    given.add(name);
  }
  if (!given.has('host') && httpVersion === '1.1') throw invalidField('Host', 'must be given.');
}

function refuseUnknown(request: FastifyRequest, allowedMethods: AllowedMethods): never {
  const allow = allowedMethods.find(request.url);
  throw allow ? methodNotAllowed(request.method, allow) : notFound();
}

function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { sendErrorPage }: ServerOptions,
): FastifyReply | Promise<FastifyReply> {
  const error = asServiceError(thrown);
  noteError(request, thrown, error);
  const response = toErrorResponse(error, request.id);
  // No hook has added the id if the router has refused the target.
  void reply.headers(response.headers).header('x-request-id', request.id);
  return prefersHtml(request.headers.accept)
    ? sendErrorPage(reply, response)
    : sendJson(reply, response.status, response.body);
}

/**
 * Fastify's router would end the path at a `#`, and runs no hooks for a path that cannot be decoded. Escaped and
 * with a segment that nothing has, both are unknown paths: answered by their scope, logged and counted.
 */
function routableUrl(url: string): string {
  if (!url.includes('#') && isDecodable(url)) return url;
  const [path = ''] = url.split(/[?#]/, 1);
  return path.replaceAll('%', '%25') + unroutableEnd;
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
