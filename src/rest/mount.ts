// Hangs a directory tree on Fastify: how bodies are read, where requests are handled, how errors are told.
import formbody from '@fastify/formbody';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { type ReadBody, readMultipartBody, readUrlencodedBody } from './body.ts';
import { type HtmlResponderOptions, createHtmlResponder } from './html/responder.ts';
import { maxParts, maxTextBytes } from './form.ts';
import { type HandlerOptions, createHandler } from './handle.ts';
import { asServiceError, toErrorResponse, sendJson, unsupportedMediaType } from './response.ts';
import { guessFormat } from './request.ts';

export type MountOptions = HtmlResponderOptions &
  HandlerOptions & {
    /** Send JSON errors with HTTP 200. */
    readonly errorStatus200: boolean;
  };

export async function mountDirectory(scope: FastifyInstance, options: MountOptions): Promise<void> {
  const { prefix } = options;
  const face = createHtmlResponder(options);
  const { begin, handle, sessionOf } = createHandler(options, face);

  scope.removeAllContentTypeParsers();
  await scope.register(formbody, { bodyLimit: maxTextBytes, parser: (body) => ({ urlencoded: body }) });
  // A body without a content type is refused unless it is empty; any other type is refused unread.
  scope.addContentTypeParser('*', (request, payload, done) => {
    if (request.headers['content-type'] !== undefined) return done(unsupportedMediaType());
    const accept = () => done(null);
    payload.once('end', accept);
    payload.once('data', () => {
      payload.off('end', accept);
      done(unsupportedMediaType());
    });
  });

  scope.addHook('onRequest', (request, _reply, done) => {
    const begun = begin(request);
    if (begun) begun.then(() => done(), done);
    else done();
  });
  scope.setErrorHandler((error, request, reply) => answerError(error, request, reply));
  if (!scope.hasConstraintStrategy(bodyConstraint.name)) scope.addConstraintStrategy(bodyConstraint);
  mountRoutes(scope, scope.supportedMethods, readUrlencodedBody);
  // The plugin has something to do at every request of its scope, so the forms that need it have one of their own.
  await scope.register(async (ofForms) => {
    const counts = { parts: maxParts, fields: maxParts, files: maxParts };
    const fileSize = Math.max(options.maxFileBytes, maxTextBytes);
    const limits = { ...counts, fileSize };
    // The parser stops for ever where a part that it passes over fills its buffer and is the last one.
    await ofForms.register(multipart, { isPartAFile: () => true, limits, fileHwm: 1024 ** 2 });
    mountRoutes(ofForms, ['POST'], readMultipartBody, { body: 'multipart' });
  });

  function mountRoutes(
    on: FastifyInstance,
    method: HTTPMethods[],
    readBody: ReadBody,
    constraints = {},
  ): void {
    for (const url of [prefix === '' ? '/' : prefix, `${prefix}/*`])
      on.route({ method, url, constraints, handler: (request, reply) => handle(request, reply, readBody) });
  }

  function answerError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const error = asServiceError(thrown);
    if (!error) request.log.error({ err: thrown }, 'request failed');
    const answer = toErrorResponse(error);
    void reply.headers(answer.headers);
    const format = request.progress?.format ?? guessFormat(request);
    if (format === 'html') {
      if (request.progress) request.progress.identity ??= sessionOf(request, true);
      return face.error(request, reply, answer);
    }
    return sendJson(reply, options.errorStatus200 ? 200 : answer.status, answer.body, format);
  }
}

/** Tells forms of many parts from all else, for the routes that take only those. */
const bodyConstraint: Parameters<FastifyInstance['addConstraintStrategy']>[0] = {
  name: 'body',
  storage() {
    const handlers = new Map<unknown, never>();
    return {
      get: (kind): never => handlers.get(kind) as never,
      set: (kind, handler) => void handlers.set(kind, handler as never),
    };
  },
  deriveConstraint: ({ headers: { 'content-type': type } }) =>
    type !== undefined && /^\s*multipart\//i.test(type) ? 'multipart' : undefined,
};
