// Hangs a directory tree on Fastify. Every request goes the same way, in the contract's order of checks:
// path → method → body → form and `f` → token → role → admission → ids → fields → run → answer.
import formbody from '@fastify/formbody';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
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
import { type BodyOptions, readBody } from './body.ts';
import type { Match, RequestFacts, Resource } from './directory.ts';
import { type FaceOptions, createFace } from './face.ts';
import { type Field, type Fields, readFields } from './fields.ts';
import { type Wanted, maxParts, maxTextBytes, parseUrlencoded, peekQuery, textIn } from './form.ts';
import {
  asServiceError,
  describeError,
  notFound,
  readFormat,
  sendJson,
  unsupportedMediaType,
} from './reply.ts';
import { type Route, cookieOf, findRoute, guessFormat, queryOf, beginProgress } from './request.ts';

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

  scope.removeAllContentTypeParsers();
  await scope.register(formbody, { bodyLimit: maxTextBytes, parser: (body) => ({ urlencoded: body }) });
  const counts = { parts: maxParts, fields: maxParts, files: maxParts };
  const fileSize = Math.max(options.maxFileBytes, maxTextBytes);
  await scope.register(multipart, { isPartAFile: () => true, limits: { ...counts, fileSize } });
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
    const route = findRoute(root, prefix, request.raw.url ?? '/', request.method);
    if (!route) throw notFound();
    progress.route = route;
    request.routeLabel = [prefix, route.match.route].filter((part) => part !== '').join('/') || '/';
    refuseMethod(request, route.match);
    // A bad bearer header is answered before the body is read.
    const isPost = request.method === 'POST';
    if (
      isPost &&
      accessOf(route.match) !== 'anyone' &&
      bearerOf(request.headers.authorization) !== undefined
    ) {
      const identify = () => options.identify(presentedBy(request, undefined));
      options.secondLook(identify).then((identity) => {
        progress.identity = identity;
        done();
      }, done);
    } else done();
  });
  scope.setErrorHandler((error, request, reply) => answerError(error, request, reply));
  scope.all(prefix === '' ? '/' : prefix, handle);
  scope.all(`${prefix}/*`, handle);

  async function handle(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { progress } = request;
    if (!progress?.route) throw notFound();
    const { match }: Route = progress.route;
    const { operation, resource } = match;
    const isPost = request.method === 'POST';

    const wanted = wantedBy(match);
    const query = isPost ? peekQuery(queryOf(request), wanted) : parseUrlencoded(queryOf(request), wanted);
    progress.form = isPost ? await readBody(request, reply, wanted, options) : query;
    progress.format = readFormat(textIn(progress.form, 'f') ?? textIn(query, 'f'), request.headers.accept);
    if (progress.format === undefined) throw invalid(['f: must be one of json, pjson, html.']);

    const access = accessOf(match);
    progress.identity ??=
      access === 'anyone'
        ? sessionOf(request)
        : await options.secondLook(() =>
            options.identify(presentedBy(request, textIn(progress.form, 'token'))),
          );
    const caller = progress.identity?.caller;
    refuseCaller(caller, access);
    const showsForm = operation !== undefined && !isPost;
    options.admit(match, showsForm);

    const facts: RequestFacts = {
      format: progress.format,
      address: options.addressOf(request),
      headers: request.headers,
      cookie: cookieOf(request),
      query,
    };
    if (operation && isPost) operation.admit(facts);

    const subject = await options.secondLook(() => findSubject(match, caller));
    progress.subject = { found: subject };
    if (showsForm) return face.form(request, reply);

    const { values, problems } = readFields((operation ?? resource).fields, progress.form);
    const call = { subject, values: values as never, caller, request: facts };
    if (operation) problems.push(...(await operation.check(call)));
    if (problems.length > 0) throw invalid(problems);

    const outcome = operation ? await operation.run(call) : { json: await resource.read(call) };
    void reply.headers(outcome.headers ?? {});
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
      address: options.addressOf(request),
      referer: request.headers.referer,
    };
  }
}

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

/** The same for every request, so worked out once for each record of fields. */
const wantedByFields = new WeakMap<Fields, Wanted>();

function wantedBy({ operation, resource }: Match): Wanted {
  const { fields } = operation ?? resource;
  const known = wantedByFields.get(fields);
  if (known) return known;
  const wanted = new Map<string, 'text' | 'file'>([
    ['f', 'text'],
    ['token', 'text'],
    ['next', 'text'],
  ]);
  for (const [name, field] of Object.entries(fields)) {
    wanted.set(name, (field as Field<unknown>).control.kind === 'file' ? 'file' : 'text');
  }
  wantedByFields.set(fields, wanted);
  return wanted;
}

async function findSubject({ steps }: Match, caller: Caller): Promise<unknown> {
  let subject: unknown;
  for (const { items, segment } of steps) subject = await items.find(subject, segment, caller);
  return subject;
}
