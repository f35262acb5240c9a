// /health, /ready, /metrics, openapi.json, and the redirect from /.
import type { FastifyInstance } from 'fastify';
import type { Build } from '../lib/build.ts';
import type { Json } from '../lib/json.ts';
import { jsonHeaders, sendJson, SharedAnswers } from './answers.ts';
import type { Metrics } from './metrics.ts';

type ProbeOptions = {
  readonly build: Build;
  readonly reasonsNotReady: () => readonly string[];
  readonly openApi: { readonly path: string; readonly document: () => Json };
  readonly homePath: (() => string) | undefined;
};

const options = { method: ['GET', 'HEAD'], config: { answersWhileClosing: true as const } };

export function registerMetrics(app: FastifyInstance, loadMetrics: () => Promise<Metrics>): void {
  app.route({
    ...options,
    url: '/metrics',
    handler: async (_request, reply) => {
      const { contentType, text } = await (await loadMetrics()).render();
      return reply.header('content-type', contentType).send(text);
    },
  });
}

export function registerProbes(
  app: FastifyInstance,
  { build: { version, commit }, reasonsNotReady, openApi, homePath }: ProbeOptions,
): void {
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
        ? sendJson(reply, 200, { status: 'ready', version, ...(commit !== undefined && { commit }) })
        : sendJson(reply, 503, { status: 'not ready', reasons });
    },
  });
  const documents = new SharedAnswers();
  let document: Buffer | undefined;
  app.route({
    ...options,
    url: openApi.path,
    handler: (_request, reply) => {
      document ??= Buffer.from(JSON.stringify(openApi.document()));
      return documents.bodyFor(reply.headers(jsonHeaders), [document], document);
    },
  });
  if (homePath) {
    app.route({ ...options, url: '/', handler: (_request, reply) => reply.redirect(homePath(), 302) });
  }
}
