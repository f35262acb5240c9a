// The resource tree as Fastify routes.
import formbody from '@fastify/formbody';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Body } from '../http/answers.ts';
import { identifySession } from '../http/credentials.ts';
import {
  asServiceError,
  notFound,
  toErrorResponse,
  unreadableBody,
  unsupportedMediaType,
} from '../http/errors.ts';
import type { Identity } from '../lib/caller.ts';
import { ServiceError, isUnavailable } from '../lib/errors.ts';
import type { Store } from '../store/store.ts';
import { noteError } from '../http/request-log.ts';
import { type RestOptions, answer, checkTarget } from './checks.ts';
import { maxTextBytes } from './form.ts';
import { multipartOptions } from './multipart.ts';
import { guessFormat, withFound } from './request.ts';
import type { Resource } from './resource.ts';
import { bodyOf } from './response.ts';
import { type Entry, pathTemplate, walk } from './tree.ts';

type TreeOptions = RestOptions & {
  readonly prefix: string;
  readonly root: Resource;
  /** Precedes the paths of operations in the audit trail. */
  readonly auditPrefix: string;
  readonly errorStatus200: boolean;
};

export async function restRoutes(scope: FastifyInstance, options: TreeOptions): Promise<void> {
  scope.decorateRequest('rest', null);
  scope.removeAllContentTypeParsers();
  scope.addHook('onRequest', (request, _reply, next) => {
    const identifying = checkTarget(request, options);
    if (identifying) identifying.then(() => next(), next);
    else next();
  });
  scope.setErrorHandler((error, request, reply) => sendError(error, request, reply, options));
  scope.setNotFoundHandler(() => {
    throw notFound();
  });
  for (const entry of walk(options.root))
    if (entry.operation === undefined) addRoute(scope, ['GET', 'HEAD'], entry, options);
  // The plugin for multipart adds two asynchronous hooks to all requests of its scope, so resources are read outside.
  await scope.register(async (inner) => {
    // The plugin brings the content type and the limit. The body stays text, because its own parser would decode every
    // field, and the route decides which ones are (form.ts).
    await inner.register(formbody, { bodyLimit: maxTextBytes, parser: (text) => ({ text }) });
    await inner.register(multipart, multipartOptions(options.maxFileBytes));
    inner.addContentTypeParser('*', acceptEmptyBody);
    for (const entry of walk(options.root)) {
      const { resource, operation } = entry;
      if (operation === undefined && resource.onPost) continue;
      const hasForm = operation !== undefined && operation !== resource.onPost;
      addRoute(inner, hasForm ? ['GET', 'HEAD', 'POST'] : ['POST'], entry, options);
    }
  });
}

function addRoute(scope: FastifyInstance, method: string[], entry: Entry, options: TreeOptions): void {
  scope.route({
    method,
    url: urlOf(entry, options.prefix),
    config: {
      rest: {
        entry,
        template: pathTemplate(options.prefix, entry),
        auditName: options.auditPrefix + entry.route,
        segments: entry.route === '' ? [] : entry.route.split('/'),
        hasPages: options.responder !== undefined,
      },
    },
    handler: (request, reply) => answer(request, reply, options),
  });
}

function urlOf({ route, items }: Entry, prefix: string): string {
  if (route === '') return prefix === '' ? '/' : '';
  const patterns = new Map(items.map(({ param, pattern }) => [`{${param}}`, pattern]));
  const segments = route.split('/').map((segment) => {
    if (!segment.startsWith('{')) return segment;
    const pattern = patterns.get(segment);
    return `:${segment.slice(1, -1)}${pattern === undefined ? '' : `(${pattern.source})`}`;
  });
  return `/${segments.join('/')}`;
}

/** A client may send a POST without a body and without a content type. */
async function acceptEmptyBody({ headers }: FastifyRequest, payload: NodeJS.ReadableStream): Promise<void> {
  const hasLength = Number(headers['content-length'] ?? 0) > 0;
  if (headers['content-type'] !== undefined || hasLength || (await hasBytes(payload)))
    throw unsupportedMediaType();
}

async function hasBytes(payload: NodeJS.ReadableStream): Promise<boolean> {
  try {
    for await (const chunk of payload) if (chunk.length > 0) return true;
    return false;
  } catch {
    // The client has closed the connection.
    throw unreadableBody();
  }
}

async function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { responder, authenticator, store, errorStatus200, pagesAreDefault }: TreeOptions,
): Promise<FastifyReply | Body> {
  const { rest } = request;
  const error = explain(asServiceError(thrown), rest?.identity, store);
  const response = toErrorResponse(error, request.id);
  const auditEntry = await rest?.audit?.recordError(error, response);
  const address = rest?.audit?.address ?? '';
  noteError(request, thrown, error, auditEntry === undefined ? undefined : { address, auditEntry });
  void reply.headers(response.headers);
  const format = rest?.format ?? guessFormat(request, pagesAreDefault);
  if (responder && format === 'html') {
    const identity = rest?.identity ?? (await identifySession(request, authenticator.identify));
    const { problems = [], onPage } = error ?? {};
    return responder.sendError(rest && withFound(rest, { identity }), reply, response, {
      identity,
      problems,
      onPage,
    });
  }
  return bodyOf(reply.code(errorStatus200 ? 200 : response.status), response.body, format);
}

/** Administrators learn why the store is unavailable. */
function explain(
  error: ServiceError | undefined,
  identity: Identity | undefined,
  store: Pick<Store, 'problems'>,
): ServiceError | undefined {
  if (!isUnavailable(error) || identity?.caller.role !== 'administrator') return error;
  const { kind, message, problems, retryAfterSeconds = 5 } = error;
  const reasons = store.problems().map((reason) => ({ message: reason }));
  return new ServiceError(kind, message, { problems: [...problems, ...reasons], retryAfterSeconds });
}
