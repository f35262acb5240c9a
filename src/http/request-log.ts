// The access log and the request metrics, in one hook.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { clientAddress } from './client-address.ts';
import type { Metrics } from './metrics.ts';

const refusals = [401, 403, 429];

export function logRequests(app: FastifyInstance, metrics: Metrics): void {
  const isLogging = ['trace', 'debug', 'info'].includes(app.log.level);
  app.addHook('onResponse', (request, reply, done) => {
    const { method } = request;
    const { statusCode: status, elapsedTime: ms } = reply;
    metrics.observeRequest({ method, route: routeLabel(request), status, seconds: ms / 1000 });
    if (isLogging) {
      const address = refusals.includes(status) ? { address: clientAddress(request) } : {};
      const path = pathOf(request);
      request.log.info({ method, path, status, ...address, ms: Math.round(ms * 10) / 10 }, 'request');
    }
    done();
  });
}

/** The rest may be a query with a token, even if the client has encoded its question mark. */
function pathOf({ url }: FastifyRequest): string {
  return url.split(/[?#;]|%3f/i, 1)[0] ?? '';
}

const labels = new Map<string, string>();

function routeLabel({ routeOptions: { url }, is404 }: FastifyRequest): string {
  if (url === undefined || is404) return 'unknown';
  const known = labels.get(url);
  if (known !== undefined) return known;
  const label = url.replace(/:(\w+)(\([^)]*\))?/g, '{$1}');
  labels.set(url, label);
  return label;
}
