// The way of a request through a directory tree, in the contract's order of checks:
// path → method → body → form and `f` → token → role → admission → ids → fields → run → answer.
// Each step makes its checks and goes on with the next.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { after } from '../after.ts';
import {
  type Access,
  type Caller,
  type Identify,
  type Identity,
  type Credentials,
  bearerToken,
  mayCall,
} from '../caller.ts';
import { type Problem, ServiceError, invalid, invalidField, methodNotAllowed } from '../errors.ts';
import type { RetryAfterRefresh } from '../store/refresh.ts';
import type { BodyOptions, ReadBody } from './body.ts';
import type { Outcome, RequestFacts, Resource } from './resource.ts';
import type { HtmlResponder } from './html/responder.ts';
import { readFields } from './fields.ts';
import { type Form, noFields, parseUrlencoded, peekQuery, textIn } from './form.ts';
import { notFound, readFormat, sendJson } from './response.ts';
import {
  type Progress,
  type Route,
  beginProgress,
  cookieOf,
  createRouteFinder,
  guessFormat,
  queryOf,
} from './request.ts';
import type { Match } from './routes.ts';

export type HandlerOptions = BodyOptions & {
  readonly root: Resource;
  readonly prefix: string;
  readonly identify: Identify;
  readonly retryAfterRefresh: RetryAfterRefresh;
  /** Throws when the resource or operation may not be used now, whoever asks; looking at a form changes nothing. */
  readonly admit: (match: Match, showsForm: boolean) => void;
  readonly addressOf: (request: FastifyRequest) => string;
};

/** The rest of the way: gone at once where there is nothing to wait for. */
type Handled = void | Promise<void>;

export type Handler = {
  /** Up to the body. */
  begin: (request: FastifyRequest) => Handled;
  /** From the body on. */
  handle: (request: FastifyRequest, reply: FastifyReply, readBody: ReadBody) => Handled;
  /** Whose session a browser's request belongs to, if any. */
  sessionOf: (request: FastifyRequest, readsOnly?: boolean) => Identity | undefined;
};

type Exchange = {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly progress: Progress;
  readonly route: Route;
  readonly isPost: boolean;
  readonly query: Form;
};

export function createHandler(options: HandlerOptions, face: HtmlResponder): Handler {
  const findRoute = createRouteFinder(options.root, options.prefix);

  /** Path, method. */
  function begin(request: FastifyRequest): Handled {
    const progress = beginProgress();
    request.progress = progress;
    const route = findRoute(request.raw.url ?? '/', request.method);
    if (!route) throw notFound();
    progress.route = route;
    request.routeLabel = route.label;
    refuseMethod(request, route.match);
    if (request.method !== 'POST' || accessOf(route.match) === 'anyone') return;
    // A bad bearer header is answered before the body is read.
    if (bearerToken(request.headers.authorization) === undefined) return;
    const identify = () => options.identify(presentedBy(request, undefined));
    return after(options.retryAfterRefresh(identify), (identity) => {
      progress.identity = identity;
    });
  }

  /** Body. */
  function handle(request: FastifyRequest, reply: FastifyReply, readBody: ReadBody): Handled {
    const { progress } = request;
    if (!progress?.route) throw notFound();
    const { route } = progress;
    const { wanted } = route.asked;
    const isPost = request.method === 'POST';
    const query = isPost ? peekQuery(queryOf(request), wanted) : parseUrlencoded(queryOf(request), wanted);
    const exchange = { request, reply, progress, route, isPost, query };
    return after(isPost ? readBody(request, reply, wanted, options) : query, (form) =>
      identifyCaller(exchange, form),
    );
  }

  /** Form and `f`, token. */
  function identifyCaller(exchange: Exchange, form: Form): Handled {
    const { request, progress, route, query } = exchange;
    progress.form = form;
    const format = readFormat(textIn(form, 'f') ?? textIn(query, 'f'), request.headers.accept);
    if (format === undefined) throw invalidField('f', 'must be one of json, pjson, html.');
    progress.format = format;
    const presented = presentedBy(request, textIn(form, 'token'));
    const { address, cookie } = presented;
    const facts = { format, address, headers: request.headers, cookie, query };
    const isOpen = accessOf(route.match) === 'anyone';
    const identity =
      progress.identity ??
      (isOpen ? sessionOf(request) : options.retryAfterRefresh(() => options.identify(presented)));
    return after(identity, (found) => {
      progress.identity = found;
      return admitCaller(exchange, facts, found?.caller);
    });
  }

  /** Role, admission, ids. */
  function admitCaller(exchange: Exchange, facts: RequestFacts, caller: Caller): Handled {
    const { request, reply, progress, route, isPost } = exchange;
    const { match } = route;
    const { operation } = match;
    refuseCaller(caller, accessOf(match));
    const showsForm = operation !== undefined && !isPost;
    options.admit(match, showsForm);
    if (operation && isPost) operation.guard(facts);
    const subject =
      match.steps.length === 0 ? undefined : options.retryAfterRefresh(() => findSubject(match, caller));
    return after(subject, (found) => {
      progress.subject = { found };
      return showsForm ? void face.form(request, reply) : run(exchange, facts, caller, found);
    });
  }

  /** Fields, run, answer. */
  function run(exchange: Exchange, facts: RequestFacts, caller: Caller, subject: unknown): Handled {
    const { progress, route } = exchange;
    const { operation, resource } = route.match;
    const { fields } = operation ?? resource;
    const read = progress.form === noFields ? route.asked.unanswered : readFields(fields, progress.form);
    const call = { subject, values: read.values as never, caller, request: facts };
    const refuse = (problems: readonly Problem[]) => {
      if (problems.length > 0) throw invalid(problems);
    };
    if (!operation) {
      refuse(read.problems);
      return after(resource.read(call), (json) => answer(exchange, { json }));
    }
    return after(operation.check?.(call) ?? { problems: [] }, ({ problems, prepared }) => {
      refuse([...read.problems, ...problems]);
      return after(operation.run({ ...call, prepared: prepared as never }), (outcome) =>
        answer(exchange, outcome),
      );
    });
  }

  function answer({ request, reply, progress }: Exchange, outcome: Outcome): Handled {
    if (outcome.headers) void reply.headers(outcome.headers);
    if (progress.format === 'html') return face.outcome(request, reply, outcome).then(() => undefined);
    sendJson(reply, 200, outcome.json, progress.format);
  }

  /** On pages that need no token a browser is still told who it is. */
  function sessionOf(request: FastifyRequest, readsOnly = request.method !== 'POST'): Identity | undefined {
    try {
      return readsOnly ? options.identify({ ...presentedBy(request, undefined), readsOnly }) : undefined;
    } catch {
      return undefined;
    }
  }

  function presentedBy(request: FastifyRequest, field: string | undefined): Credentials {
    return {
      bearer: bearerToken(request.headers.authorization),
      field: field?.trim() || undefined,
      cookie: cookieOf(request),
      readsOnly: request.method !== 'POST',
      address: options.addressOf(request),
      referer: request.headers.referer,
    };
  }

  return { begin, handle, sessionOf };
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

async function findSubject({ steps }: Match, caller: Caller): Promise<unknown> {
  let subject: unknown;
  for (const { items, segment } of steps) subject = await items.find(subject, segment, caller);
  return subject;
}
