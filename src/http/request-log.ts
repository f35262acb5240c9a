// What is counted and logged of every request.
import type { FastifyBaseLogger } from 'fastify';
import type { IncomingMessage } from 'node:http';
import type { Metrics } from './metrics.ts';

const refusals = [401, 403, 429];

/** Of a request that has been answered; `route` as the metrics name it. */
export type RequestLog = (
  request: IncomingMessage,
  answered: { readonly route: string; readonly status: number; readonly ms: number },
) => void;

export function createRequestLog(
  logger: FastifyBaseLogger,
  metrics: Metrics,
  addressOf: (request: IncomingMessage) => string,
): RequestLog {
  const isLogging = ['info', 'debug', 'trace'].includes(logger.level);
  return (request, { route, status, ms }) => {
    const { method = '', url = '/' } = request;
    metrics.countRequest({ method, route, status, seconds: ms / 1000 });
    if (!isLogging) return;
    // What follows the path, or was meant to, may hold a token.
    const [path] = url.split(/[?#;]|%3f/i, 1);
    // Who tries what they may not is worth knowing.
    const from = refusals.includes(status) ? { address: addressOf(request) } : {};
    logger.info({ method, path, status, ...from, ms: Math.round(ms * 10) / 10 }, 'request');
  };
}
