// Hangs a directory tree on Fastify. Every request goes the same way, in the contract's order of checks:
// path → method → body → form and `f` → token → role → admission → ids → fields → run → answer.
import formbody from '@fastify/formbody';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import {
  type Access,
  type Caller,
  type Identify,
  type Identity,
  type Presented,
  bearerOf,
  mayCall,
} from '../caller.ts';
import { ServiceError, invalid, methodNotAllowed } from '../errors.ts';
import type { SecondLook } from '../second-look.ts';
import { type BodyOptions, type ReadBody, readMultipartBody, readUrlencodedBody } from './body.ts';
import type { Match, RequestFacts, Resource } from './directory.ts';
import { type FaceOptions, createFace } from './face.ts';
import { readFields } from './fields.ts';
import { maxParts, maxTextBytes, noFields, parseUrlencoded, peekQuery, textIn } from './form.ts';
import {
  asServiceError,
  describeError,
  notFound,
  readFormat,
  sendJson,
  unsupportedMediaType,
} from './reply.ts';
import { type Route, cookieOf, createRouteFinder, guessFormat, queryOf, beginProgress } from './request.ts';

export type MountOptions = FaceOptions &
  BodyOptions & {
    readonly root: Resource;
    readonly identify: Identify;
    readonly secondLook: SecondLook;
    /** Throws when the resource or operation may not be used now, whoever asks; looking at a form changes nothing. */
    readonly admit: (match: Match, showsForm: boolean) => void;
    readonly addressOf: (request: FastifyRequest) => string;
    /** Send JSON errors with HTTP 200. */
    readonly errorStatus200: boolean;
  };

export async function mountDirectory(scope: FastifyInstance, options: MountOptions): Promise<void> {
  const { prefix, root } = options;
  const face = createFace(options);
  const findRoute = createRouteFinder(root, prefix);

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
    const progress = beginProgress();
    request.progress = progress;
    const route = findRoute(request.raw.url ?? '/', request.method);
    if (!route) throw notFound();
    progress.route = route;
    request.routeLabel = route.label;
    refuseMethod(request, route.match);
    // A bad bearer header is answered before the body is read.
    const isPost = request.method === 'POST';
    if (
      isPost &&
      accessOf(route.match) !== 'anyone' &&
      bearerOf(request.headers.authorization) !== undefined
    ) {
      const identify = () => options.identify(presentedBy(request, undefined));
      Promise.resolve(options.secondLook(identify)).then((identity) => {
        progress.identity = identity;
        done();
      }, done);
    } else done();
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

  async function handle(
    request: FastifyRequest,
    reply: FastifyReply,
    readBody: ReadBody,
  ): Promise<FastifyReply> {
    const { progress } = request;
    if (!progress?.route) throw notFound();
    const { match, asked }: Route = progress.route;
    const { wanted } = asked;
    const { operation, resource } = match;
    const isPost = request.method === 'POST';

    const query = isPost ? peekQuery(queryOf(request), wanted) : parseUrlencoded(queryOf(request), wanted);
    const form = isPost ? readBody(request, reply, wanted, options) : query;
    progress.form = form instanceof Promise ? await form : form;
    progress.format = readFormat(textIn(progress.form, 'f') ?? textIn(query, 'f'), request.headers.accept);
    if (progress.format === undefined) throw invalid(['f: must be one of json, pjson, html.']);

    const access = accessOf(match);
    const presented = presentedBy(request, textIn(progress.form, 'token'));
    if (access === 'anyone') progress.identity ??= sessionOf(request);
    else if (!progress.identity) {
      const identity = options.secondLook(() => options.identify(presented));
      progress.identity = identity instanceof Promise ? await identity : identity;
    }
    const caller = progress.identity?.caller;
    refuseCaller(caller, access);
    const showsForm = operation !== undefined && !isPost;
    options.admit(match, showsForm);

    const facts: RequestFacts = {
      format: progress.format,
      address: presented.address,
      headers: request.headers,
      cookie: presented.cookie,
      query,
    };
    if (operation && isPost) operation.guard(facts);

    const subject =
      match.steps.length === 0 ? undefined : await options.secondLook(() => findSubject(match, caller));
    progress.subject = { found: subject };
    if (showsForm) return face.form(request, reply);

    const { fields } = operation ?? resource;
    const read = progress.form === noFields ? asked.unanswered : readFields(fields, progress.form);
    const call = { subject, values: read.values as never, caller, request: facts };
    const problems = operation?.check ? [...read.problems, ...(await operation.check(call))] : read.problems;
    if (problems.length > 0) throw invalid(problems);

    const outcome = operation ? await operation.run(call) : { json: await resource.read(call) };
    if (outcome.headers) void reply.headers(outcome.headers);
    if (progress.format === 'html') return await face.outcome(request, reply, outcome);
    return sendJson(reply, 200, outcome.json, progress.format);
  }

  function answerError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const error = asServiceError(thrown);
    if (!error) request.log.error({ err: thrown }, 'request failed');
    const answer = describeError(error);
    void reply.headers(answer.headers);
    const format = request.progress?.format ?? guessFormat(request);
    if (format === 'html') {
      if (request.progress) request.progress.identity ??= sessionOf(request, true);
      return face.error(request, reply, answer);
    }
    return sendJson(reply, options.errorStatus200 ? 200 : answer.status, answer.body, format);
  }

  /** On pages that need no token a browser is still told who it is. */
  function sessionOf(request: FastifyRequest, readsOnly = request.method !== 'POST'): Identity | undefined {
    try {
      return readsOnly ? options.identify({ ...presentedBy(request, undefined), readsOnly }) : undefined;
    } catch {
      return undefined;
    }
  }

  function presentedBy(request: FastifyRequest, field: string | undefined): Presented {
    return {
      bearer: bearerOf(request.headers.authorization),
      field: field?.trim() || undefined,
      cookie: cookieOf(request),
      readsOnly: request.method !== 'POST',
      connection: request.socket,
      address: () => options.addressOf(request),
      referer: request.headers.referer,
    };
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

/** Resources answer GET and POST alike; an operation answers POST, and shows its form to a browser that asks with GET. */
function refuseMethod(request: FastifyRequest, { operation }: Match): void {
  const { method } = request;
  const isRead = method === 'GET' || method === 'HEAD';
  if (method === 'POST' || (isRead && (!operation || guessFormat(request) === 'html'))) return;
  throw methodNotAllowed(method, operation && isRead ? ['POST'] : ['GET', 'HEAD', 'POST']);
}

function refuseCaller(caller: Caller, access: Access): void {
  if (mayCall(caller, access)) return;
  throw caller === undefined
    ? new ServiceError('token-missing', 'Token required.')
    : new ServiceError('forbidden', `This needs the role ${access}.`);
}

function accessOf({ operation, resource }: Match): Access {
  return (operation ?? resource).access;
}

async function findSubject({ steps }: Match, caller: Caller): Promise<unknown> {
  let subject: unknown;
  for (const { items, segment } of steps) subject = await items.find(subject, segment, caller);
  return subject;
}
