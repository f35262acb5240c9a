// The access log and the request metrics, at the end of each request.
//
// A request that is refused for security, that fails, or that the audit trail records as refused is logged as a
// warning. So these lines do not depend on the level `info`.
import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify';
import type { ErrorKind, ServiceError } from '../lib/errors.ts';
import { clientAddress } from './client-address.ts';
import type { Metrics } from './metrics.ts';
import { onEnded } from './request-end.ts';

declare module 'fastify' {
  interface FastifyInstance {
    countFailure: () => void;
  }
  interface FastifyRequest {
    warning: RequestWarning | undefined;
    /** Whether the client has left before its answer. */
    isLeft: boolean;
  }
}

type RequestWarning = {
  readonly address: string;
  /** The id of the entry in the audit trail that records the request. */
  readonly auditEntry?: string;
};

const refusals = [401, 403, 429];

/** A missing token is no reason for a warning: a browser without a session has none. */
const warnedKinds: readonly ErrorKind[] = [
  'wrong-credentials',
  'token-invalid',
  'forbidden',
  'too-many-requests',
  'unavailable',
];

/** Called by the error handlers with what was thrown. An undefined error is a defect of the server. */
export function noteError(
  request: FastifyRequest,
  thrown: unknown,
  error: ServiceError | undefined,
  recorded?: Required<RequestWarning>,
): void {
  if (!error) {
    request.log.error({ err: thrown, auditEntry: recorded?.auditEntry }, 'request failed');
    request.server.countFailure();
  }
  if (!recorded && error && !warnedKinds.includes(error.kind)) return;
  request.warning = recorded ?? { address: clientAddress(request) };
  if (request.isLeft) request.log.warn(factsOf(request, 'closed', request.warning), 'refused after the end');
}

/** A client that leaves before its answer gets the status `closed`: the request may have taken effect. */
export function logRequests(app: FastifyInstance, loadMetrics: () => Promise<Metrics>): void {
  const isLoggingAll = ['trace', 'debug', 'info'].includes(app.log.level);
  app.decorate('countFailure', () => void loadMetrics().then((metrics) => metrics.failures.inc()));
  app.decorateRequest('warning', undefined);
  app.decorateRequest('isLeft', false);
  app.addHook('onRequest', (request, reply, done) => {
    onEnded(reply, () => {
      request.isLeft = request.raw.socket.destroyed && !reply.raw.writableFinished;
      const status = request.isLeft ? ('closed' as const) : reply.statusCode;
      const { method, warning } = request;
      const ms = reply.elapsedTime;
      const labels = { method, route: routeLabel(request), status };
      void loadMetrics().then((metrics) => metrics.requestDuration.observe(labels, ms / 1000));
      if (!warning && !isLoggingAll) return;
      const facts = { ...factsOf(request, status, warning), ms: Math.round(ms * 10) / 10 };
      request.log[warning ? 'warn' : 'info'](facts, 'request');
    });
    done();
  });
}

type BadHttpOptions = {
  readonly logger: FastifyBaseLogger;
  readonly loadMetrics: () => Promise<Metrics>;
  readonly elapsed: () => number;
};

/** Each is counted. A line names one address a second at most, because a client can send many. */
export function badHttpLog({ logger, loadMetrics, elapsed }: BadHttpOptions) {
  let quietUntil = 0;
  return (facts: { readonly code: string; readonly address: string }) => {
    void loadMetrics().then((metrics) => metrics.badHttp.inc({ code: facts.code }));
    if (elapsed() < quietUntil) return;
    quietUntil = elapsed() + 1000;
    logger.warn(facts, 'refused bytes that are no HTTP');
  };
}

function factsOf(request: FastifyRequest, status: number | 'closed', warning: RequestWarning | undefined) {
  const isNamed = status === 'closed' || refusals.includes(status);
  const known = warning ?? (isNamed ? { address: clientAddress(request) } : {});
  return { method: request.method, path: pathOf(request), status, ...known };
}

const unknownRoute = 'unknown';

/** An absolute address may contain a user name and a password. */
export function withoutAuthority(url: string): string {
  return url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
}

/**
 * The end of the path. The rest may be a query with a token, even if the client has encoded its marks, once or
 * several times.
 */
const queryStart = /[?#;&=]|%(?:25){0,8}(?:3f|23|3b|26|3d)/i;

/** The path of an unknown route is not logged: it may be anything, such as a token. */
function pathOf(request: FastifyRequest): string {
  if (isUnknown(request)) return unknownRoute;
  const [path] = withoutAuthority(request.url).split(queryStart, 1);
  return path || '/';
}

const labels = new Map<string, string>();

function routeLabel(request: FastifyRequest): string {
  if (isUnknown(request)) return unknownRoute;
  const { url = '' } = request.routeOptions;
  const known = labels.get(url);
  if (known !== undefined) return known;
  const label = routeTemplate(url);
  labels.set(url, label);
  return label;
}

/** The path of a route as OpenAPI writes it. */
export function routeTemplate(url: string): string {
  return url.replace(/:(\w+)(\([^)]*\))?/g, '{$1}');
}

/** The server gives a target that it cannot route this segment, which nothing has. */
export const unroutableEnd = '/%25';

function isUnknown({ is404, url }: FastifyRequest): boolean {
  return is404 || url.endsWith(unroutableEnd);
}
