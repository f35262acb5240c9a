// Calls that are answered straight from Node's server: Fastify's part of a short one takes longer than all of ours.
import type { FastifyInstance } from 'fastify';
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Endpoint } from '../soap/handler.ts';
import type { RequestLog } from './request-log.ts';

export type ShortWay = {
  readonly path: string;
  readonly call: Endpoint['call'];
  readonly account: RequestLog;
  readonly isClosing: () => boolean;
};

/** For a plain POST to the very path. Everything else goes the long way, on which the same is answered, and the rest refused. */
export function openShortWay(
  { server }: FastifyInstance,
  { path, call, account, isClosing }: ShortWay,
): void {
  const [longWay] = server.listeners('request') as [RequestListener];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: Parameters<RequestListener>[1]) => {
    const isPlain = request.url === path && request.method === 'POST' && request.headers.host !== undefined;
    if (!isPlain || isClosing()) return longWay(request, response);
    const startedAt = performance.now();
    response.on('finish', () =>
      account(request, { route: path, status: response.statusCode, ms: performance.now() - startedAt }),
    );
    call(request, ({ status, headers, body }) => {
      // One after another: to make one object of several would take as long as all that is saved here.
      const all = ['x-content-type-options', 'nosniff', 'content-length', String(Buffer.byteLength(body))];
      for (const name in headers) all.push(name, headers[name] ?? '');
      response.writeHead(status, all).end(body);
    });
  });
}
