// /health, /ready, /metrics, openapi.json and the redirect from / (contract 1): for machines and for who forgot the path.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { methodNotAllowed } from '../errors.ts';
import type { Json } from '../lib/json.ts';
import { sendJson } from '../rest/response.ts';
import type { Metrics } from './metrics.ts';

export type ProbeOptions = {
  metrics: Metrics;
  reasonsNotReady: () => readonly string[];
  openApi: { readonly path: string; readonly document: () => Json };
  /** Undefined when the admin tree has the root itself. */
  homePath: (() => string) | undefined;
};

export function mountProbes(
  http: FastifyInstance,
  { metrics, reasonsNotReady, openApi, homePath }: ProbeOptions,
): void {
  const probes: Record<string, (reply: FastifyReply) => FastifyReply | Promise<FastifyReply>> = {
    '/health': (reply) => sendJson(reply, 200, { status: 'ok' }),
    '/ready': (reply) => {
      const reasons = reasonsNotReady();
      return reasons.length === 0
        ? sendJson(reply, 200, { status: 'ready' })
        : sendJson(reply, 503, { status: 'not ready', reasons });
    },
    '/metrics': async (reply) => {
      const { contentType, text } = await metrics.render();
      return reply.header('content-type', contentType).send(text);
    },
    [openApi.path]: (reply) => sendJson(reply, 200, openApi.document()),
  };
  if (homePath) probes['/'] = (reply) => reply.redirect(homePath(), 302);

  for (const [path, answer] of Object.entries(probes)) {
    const onRequest = (request: FastifyRequest, _reply: FastifyReply, done: () => void) => {
      request.routeLabel = path;
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        throw methodNotAllowed(request.method, ['GET', 'HEAD']);
      }
      done();
    };
    http.all(path, { onRequest, config: { answersWhileClosing: true } }, (_request, reply) => answer(reply));
  }
}
