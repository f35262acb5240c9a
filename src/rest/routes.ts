// The resource tree as Fastify routes. The first check that fails answers: path, method, bearer token (onRequest) →
// content type and size (parsers) → form, format, caller, role, admission, ids, fields (handler).
import formbody from '@fastify/formbody';
import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Body } from '../http/answers.ts';
import { credentialsOf, identifySession } from '../http/credentials.ts';
import {
  type ErrorResponse,
  asServiceError,
  notFound,
  toErrorResponse,
  unsupportedMediaType,
  unreadableBody,
} from '../http/errors.ts';
import { noteError } from '../http/request-log.ts';
import { type Access, type Caller, type Identity, mayCall } from '../lib/caller.ts';
import {
  type Problem,
  ServiceError,
  invalid,
  invalidField,
  methodNotAllowed,
  usualError,
} from '../lib/errors.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { sendCsv } from './csv.ts';
import { type FieldValues, joinBoxes, readFields } from './fields.ts';
import { maxTextBytes, parsePostQuery, parseUrlencoded, textIn } from './form.ts';
import { multipartOptions, readMultipart } from './multipart.ts';
import {
  type Call,
  type Entry,
  fieldsOf,
  type Outcome,
  type PreparedCall,
  pathTemplate,
  type Resource,
  walk,
} from './resource.ts';
import { type AuditTrail, RequestAudit } from './request-audit.ts';
import { type Authenticator, RestRequest, guessFormat, pollHeader } from './request.ts';
import { bodyOf, readFormat } from './response.ts';

/** Answers with pages. */
type PageResponder = {
  sendForm: (rest: RestRequest, reply: FastifyReply) => Promise<FastifyReply>;
  sendFrame: (rest: RestRequest, reply: FastifyReply) => Promise<FastifyReply>;
  sendOutcome: (rest: RestRequest, reply: FastifyReply, outcome: Outcome) => Promise<FastifyReply>;
  sendError: (
    rest: RestRequest | null,
    reply: FastifyReply,
    response: ErrorResponse,
    facts: Pick<ServiceError, 'problems' | 'onPage'> & { identity: Identity | undefined },
  ) => FastifyReply | Promise<FastifyReply>;
};

type RestOptions = {
  readonly prefix: string;
  readonly root: Resource;
  /** Precedes the paths of operations in the audit trail. */
  readonly auditPrefix: string;
  readonly store: Pick<Store, 'update' | 'refresh'>;
  readonly auditService: AuditTrail;
  readonly authenticator: Authenticator;
  readonly admit: (entry: Entry, showsForm: boolean) => void;
  readonly maxFileBytes: number;
  /** Undefined: the tree has no pages. */
  readonly responder: PageResponder | undefined;
  readonly errorStatus200: boolean;
};

export async function restRoutes(scope: FastifyInstance, options: RestOptions): Promise<void> {
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

function addRoute(scope: FastifyInstance, method: string[], entry: Entry, options: RestOptions): void {
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
    handler: (request, reply) => respond(request, reply, options),
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

/** A bad bearer token is refused before the body is read. The result is undefined if no token has to be looked up. */
function checkTarget(request: FastifyRequest, options: RestOptions): Promise<void> | undefined {
  const { rest: route } = request.routeOptions.config;
  if (!route) throw notFound();
  const rest = new RestRequest(request, route);
  request.rest = rest;
  if (rest.showsForm && (!rest.hasPages || guessFormat(request) !== 'html'))
    throw methodNotAllowed(request.method, ['POST']);
  if (!rest.isPost) return undefined;
  if (route.entry.operation?.isAudited) rest.audit = new RequestAudit(options, rest, route.auditName);
  const { authorization, 'content-encoding': coding } = request.headers;
  if (rest.access !== 'anyone' && authorization !== undefined)
    return identifyBearer(rest, request, options.authenticator).then(() => refuseEncodedBody(coding));
  refuseEncodedBody(coding);
  return undefined;
}

async function identifyBearer(
  rest: RestRequest,
  request: FastifyRequest,
  { identify }: Authenticator,
): Promise<void> {
  const credentials = credentialsOf(request, undefined);
  if (credentials.bearer !== undefined) rest.identity = await identify(credentials);
}

function refuseEncodedBody(coding = 'identity'): void {
  if (coding.trim().toLowerCase() === 'identity') return;
  throw new ServiceError('unsupported-media-type', 'The content encoding of the request is not supported.', {
    problems: [{ field: 'Content-Encoding', message: 'must be identity or absent.' }],
  });
}

async function check(rest: RestRequest, request: FastifyRequest, options: RestOptions): Promise<void> {
  readForm(rest, request);
  if (rest.isPost && request.isMultipart())
    rest.form = await readMultipart(request, rest.requestedFields, options.maxFileBytes);
  rest.form = joinBoxes(fieldsOf(rest.entry), rest.form);
  rest.format = readFormat(
    textIn(rest.form, 'f') ?? textIn(rest.query, 'f'),
    request.headers.accept,
    rest.formats,
  );
  if (rest.format === undefined) throw invalidField('f', `must be one of ${rest.formats.join(', ')}.`);
  // The form may carry the token.
  rest.identity = await identifyCaller(rest, request, options.authenticator);
  const caller = rest.identity?.caller;
  requireRole(caller, rest.access);
  options.admit(rest.entry, rest.showsForm);
  if (rest.isPost) rest.entry.operation?.guard(rest);
  const hasIds = rest.entry.items.length > 0;
  rest.subjects = hasIds ? await findSubjectsNow(rest, caller, options.store) : [];
  rest.subject = { found: rest.subjects.at(-1) };
}

function identifyCaller(
  rest: RestRequest,
  request: FastifyRequest,
  authenticator: Authenticator,
): ReturnType<Authenticator['identify']> {
  if (rest.access === 'anyone')
    return rest.isPost || !rest.hasPages ? undefined : identifySession(request, authenticator.identify);
  if (!rest.identity) return authenticator.identify(rest.credentials);
  // A bearer token may have ended while the server waited for the body.
  return request.countedBody ? authenticator.identifyAgain(rest.identity) : rest.identity;
}

function readForm(rest: RestRequest, request: FastifyRequest): void {
  const { requestedFields, queryText } = rest;
  if (!rest.isPost) {
    rest.query = parseUrlencoded(queryText, requestedFields);
    rest.form = rest.query;
    return;
  }
  rest.query = parsePostQuery(queryText, requestedFields);
  const { text = '' } = (request.body ?? {}) as { text?: string };
  rest.form = parseUrlencoded(text, requestedFields);
}

function requireRole(caller: Caller, access: Access): void {
  if (mayCall(caller, access)) return;
  throw caller === undefined
    ? usualError('token-missing')
    : new ServiceError('forbidden', `This needs the role ${access}.`);
}

/** Looks again after a refresh: another process may have created the resource a moment ago. */
async function findSubjectsNow(
  rest: RestRequest,
  caller: Caller,
  { refresh }: Pick<Store, 'refresh'>,
): Promise<unknown[]> {
  try {
    return await findSubjects(rest, caller);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind !== 'not-found') throw error;
    await refresh();
    return findSubjects(rest, caller);
  }
}

async function findSubjects(rest: RestRequest, caller: Caller): Promise<unknown[]> {
  const subjects: unknown[] = [];
  for (const { item, segment } of rest.ids) subjects.push(await item.find(subjects.at(-1), segment, caller));
  return subjects;
}

async function respond(
  request: FastifyRequest,
  reply: FastifyReply,
  options: RestOptions,
): Promise<FastifyReply | Body> {
  const { rest } = request;
  if (!rest) throw notFound();
  await check(rest, request, options);
  const { responder, authenticator } = options;
  const isFramePoll = rest.format === 'html' && rest.headers[pollHeader] === 'frame';
  if (responder && isFramePoll && !rest.isPost) return responder.sendFrame(rest, reply);
  if (responder && rest.showsForm) return responder.sendForm(rest, reply);
  if (rest.format === 'csv' && rest.entry.resource.csv)
    return sendCsv(reply, rest.entry.resource.csv, readCall(rest, authenticator));
  const outcome = await execute(rest, authenticator);
  if (outcome.headers) void reply.headers(outcome.headers);
  return responder && rest.format === 'html'
    ? responder.sendOutcome(rest, reply, outcome)
    : bodyOf(reply, outcome.json, rest.format);
}

async function execute(rest: RestRequest, authenticator: Authenticator): Promise<Outcome> {
  const { operation, resource } = rest.entry;
  if (!operation) return { json: (await resource.read(readCall(rest, authenticator))) as Outcome['json'] };
  const { audit } = rest;
  const { call, problems } = openCall(rest, authenticator);
  if (call.caller?.key !== undefined && operation.refusesKeys?.(call))
    throw new ServiceError('forbidden', 'A key may not do this. Sign in instead.');
  const checked = operation.check ? await operation.check(call) : undefined;
  refuseInvalid(checked ? [...problems, ...checked.problems] : problems);
  call.prepared = checked?.prepared as never;
  if (operation.actor) audit?.actAs(await operation.actor(call));
  call.actor = audit?.actor;
  const outcome = await operation.run(call);
  // Without this, an operation could forget its entry.
  if (audit?.actor && !audit.hasRecorded) throw new Error(`${operation.title} has recorded nothing.`);
  return outcome;
}

/** The call of a resource. Throws if a field is not acceptable. */
function readCall(rest: RestRequest, authenticator: Authenticator): Call<unknown, never> {
  const { call, problems } = openCall(rest, authenticator);
  refuseInvalid(problems);
  return call;
}

/** `prepared` and `actor` are set after the check. */
type OpenedCall = { -readonly [K in keyof AnyCall]: AnyCall[K] };
type AnyCall = PreparedCall<unknown, never, never>;

function openCall(rest: RestRequest, authenticator: Authenticator) {
  const { entry, access, identity, audit } = rest;
  const { values, problems }: FieldValues = readFields(fieldsOf(entry), rest.form);
  const known = access === 'anyone' ? undefined : identity;
  const authorize = (again: Identity | undefined) => {
    requireRole(again?.caller, access);
    return again?.caller;
  };
  const requireCaller = (transaction: Transaction) =>
    authorize(known && authenticator.identifyWithin(transaction, known));
  // One literal: copying it and adding properties would cost as much as reading the form.
  const call: OpenedCall = {
    subject: rest.subject?.found,
    values: values as never,
    caller: identity?.caller,
    tokenHash: known?.tokenHash,
    requireCallerNow: async () => authorize(known && (await authenticator.identifyAgain(known))),
    request: rest,
    isForm: rest.isPost && (identity?.formToken ?? '') !== '',
    prepared: undefined as never,
    update: (rule, options = {}) => requireAudit(audit).update(rule, requireCaller, options),
    auditEntry: () => requireAudit(audit).createEntry(),
    actor: undefined,
  };
  return { call, problems };
}

function requireAudit(audit: RequestAudit | undefined): RequestAudit {
  if (!audit) throw new Error('The operation is described as one that changes nothing.');
  return audit;
}

function refuseInvalid(problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalid(problems);
}

async function sendError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { responder, authenticator, errorStatus200 }: RestOptions,
): Promise<FastifyReply | Body> {
  const error = asServiceError(thrown);
  const response = toErrorResponse(error, request.id);
  const auditEntry = await request.rest?.audit?.recordError(error, response);
  const address = request.rest?.audit?.address ?? '';
  noteError(request, error, auditEntry === undefined ? undefined : { address, auditEntry });
  if (!error) request.log.error({ err: thrown, auditEntry }, 'request failed');
  void reply.headers(response.headers);
  const format = request.rest?.format ?? guessFormat(request);
  if (responder && format === 'html') {
    const identity = request.rest?.identity ?? (await identifySession(request, authenticator.identify));
    const { problems = [], onPage } = error ?? {};
    return responder.sendError(request.rest, reply, response, { identity, problems, onPage });
  }
  return bodyOf(reply.code(errorStatus200 ? 200 : response.status), response.body, format);
}
