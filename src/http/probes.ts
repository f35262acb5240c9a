// /health, /ready, /metrics, openapi.json, and the redirect from /.
import type { FastifyInstance } from 'fastify';
import type { Json } from '../lib/json.ts';
import { SharedAnswers } from './compression.ts';
import { jsonHeaders, sendJson } from './json.ts';
import type { Metrics } from './metrics.ts';

type ProbeOptions = {
  readonly metrics: Metrics;
  readonly reasonsNotReady: () => readonly string[];
  readonly openApi: { readonly path: string; readonly document: () => Json };
  readonly homePath: (() => string) | undefined;
};

export function registerProbes(
  app: FastifyInstance,
  { metrics, reasonsNotReady, openApi, homePath }: ProbeOptions,
): void {
  const options = { method: ['GET', 'HEAD'], config: { answersWhileClosing: true as const } };
  app.route({
    ...options,
    url: '/health',
    handler: (_request, reply) => sendJson(reply, 200, { status: 'ok' }),
  });
  app.route({
    ...options,
    url: '/ready',
    handler: (_request, reply) => {
      const reasons = reasonsNotReady();
      return reasons.length === 0
        ? sendJson(reply, 200, { status: 'ready' })
        : sendJson(reply, 503, { status: 'not ready', reasons });
    },
  });
  app.route({
    ...options,
    url: '/metrics',
    handler: async (_request, reply) => {
      const { contentType, text } = await metrics.render();
      return reply.header('content-type', contentType).send(text);
    },
  });
  const documents = new SharedAnswers();
  let document: Buffer | undefined;
  app.route({
    ...options,
    url: openApi.path,
    handler: (_request, reply) => {
      document ??= Buffer.from(JSON.stringify(openApi.document()));
      return documents.send(reply.headers(jsonHeaders), [document], document);
    },
  });
  if (homePath) {
    app.route({ ...options, url: '/', handler: (_request, reply) => reply.redirect(homePath(), 302) });
  }
}
