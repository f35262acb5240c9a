// The access log and the request metrics, in one hook.
//
// A request that is refused for security, that fails, or that the audit trail records as refused is logged as a
// warning. So these lines do not depend on the level `info`.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ErrorKind, ServiceError } from '../lib/errors.ts';
import { clientAddress } from './client-address.ts';
import type { Metrics } from './metrics.ts';

declare module 'fastify' {
  interface FastifyRequest {
    warning: RequestWarning | undefined;
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

/** Called by the error handlers. An undefined error is a defect of the server. */
export function noteError(
  request: FastifyRequest,
  error: ServiceError | undefined,
  recorded?: Required<RequestWarning>,
): void {
  if (recorded) request.warning = recorded;
  else if (!error || warnedKinds.includes(error.kind)) request.warning = { address: clientAddress(request) };
}

export function logRequests(app: FastifyInstance, loadMetrics: () => Promise<Metrics>): void {
  const isLoggingAll = ['trace', 'debug', 'info'].includes(app.log.level);
  app.decorateRequest('warning', undefined);
  app.addHook('onResponse', (request, reply, done) => {
    const { method, warning } = request;
    const { statusCode: status, elapsedTime: ms } = reply;
    const labels = { method, route: routeLabel(request), status };
    void loadMetrics().then((metrics) => metrics.observeRequest(labels, ms / 1000));
    if (warning || isLoggingAll) {
      const known = warning ?? (refusals.includes(status) ? { address: clientAddress(request) } : {});
      const facts = { method, path: pathOf(request), status, ...known, ms: Math.round(ms * 10) / 10 };
      request.log[warning ? 'warn' : 'info'](facts, 'request');
    }
    done();
  });
}

const unknownRoute = 'unknown';

/** An absolute address may contain a user name and a password. */
const authority = /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i;

/**
 * The end of the path. The rest may be a query with a token, even if the client has encoded its marks, once or
 * several times.
 */
const queryStart = /[?#;&=]|%(?:25){0,8}(?:3f|23|3b|26|3d)/i;

/** The path of an unknown route is not logged: it may be anything, such as a token. */
function pathOf(request: FastifyRequest): string {
  if (isUnknown(request)) return unknownRoute;
  const [path] = request.url.replace(authority, '').split(queryStart, 1);
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
