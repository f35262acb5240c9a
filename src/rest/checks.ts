// The checks of a request, in the order of docs/protocol.md#order-of-checks. The first that fails answers.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Body } from '../http/answers.ts';
import { bearerOf, credentialsOf, identifySession } from '../http/credentials.ts';
import { type ErrorResponse, notFound } from '../http/errors.ts';
import {
  type Access,
  type Caller,
  type Credentials,
  type Identify,
  type Identity,
  mayCall,
} from '../lib/caller.ts';
import { ServiceError, invalid, invalidField, methodNotAllowed, usualError } from '../lib/errors.ts';
import { type Json, plainJson } from '../lib/json.ts';
import { truncate } from '../lib/text.ts';
import type { Reader } from '../store/state.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { sendCsv } from './csv.ts';
import { joinBoxes } from './fields.ts';
import { type Form, type GivenForm, joinForms, readUrlencoded, textIn } from './form.ts';
import { readMultipart } from './multipart.ts';
import type { CallWith, OpenedOperation, Operation } from './operation.ts';
import type { Outcome } from './outcome.ts';
import { type AuditTrail, RequestAudit, actorOf } from './request-audit.ts';
import {
  type IdentifiedRequest,
  type ReadRequest,
  type RefusedRequest,
  type RestRequest,
  type Target,
  formatsOf,
  guessFormat,
  idsOf,
  pollHeader,
  requestedFieldsOf,
  showsForm,
  targetOf,
  usualFormat,
  withFound,
} from './request.ts';
import { type Format, bodyOf, readFormat } from './response.ts';
import { type Entry, accessOf, changesExisting, fieldsOf } from './tree.ts';

/** Answers with pages. */
type PageResponder = {
  sendForm: (rest: RestRequest, reply: FastifyReply) => Promise<FastifyReply>;
  sendFrame: (rest: RestRequest, reply: FastifyReply) => Promise<FastifyReply>;
  sendOutcome: (rest: RestRequest, reply: FastifyReply, outcome: Outcome) => Promise<FastifyReply>;
  sendError: (
    rest: RefusedRequest | null,
    reply: FastifyReply,
    response: ErrorResponse,
    facts: Pick<ServiceError, 'problems' | 'onPage'> & { identity: Identity | undefined },
  ) => FastifyReply | Promise<FastifyReply>;
};

type Authenticator = {
  readonly identify: Identify;
  /** Throws if the token has ended, or if the user is removed or has a new password. */
  readonly identifyAgain: (identity: Identity) => Promise<Identity>;
  /** The same inside a transaction. */
  readonly identifyWithin: (transaction: Transaction, identity: Identity) => Identity;
};

export type RestOptions = {
  readonly store: Pick<Store, 'update' | 'refresh' | 'problems'>;
  readonly auditService: AuditTrail;
  readonly authenticator: Authenticator;
  /** `reader`: of a transaction. */
  readonly admit: (entry: Entry, showsForm: boolean, reader?: Reader) => void;
  readonly maxFileBytes: number;
  /** Whether a request that names no format gets a page, whatever it accepts. */
  readonly pagesAreDefault: boolean;
  /** Undefined: the tree has no pages. */
  readonly responder: PageResponder | undefined;
};

/** The checks before the body is read. The result is undefined if no token has to be looked up. */
export function checkTarget(request: FastifyRequest, options: RestOptions): Promise<void> | undefined {
  const target = requirePath(request, options);
  requireMethod(target, options);
  if (!target.isPost) return undefined;
  const hasToken = bearerOf(request) !== undefined && accessOf(target.entry) !== 'anyone';
  if (hasToken) return identifyBearer(target, options).then(() => refuseEncodedBody(request));
  refuseEncodedBody(request);
  return undefined;
}

/** The other checks, and the answer. The parsers have checked the content type of the body and its size. */
export async function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  options: RestOptions,
): Promise<FastifyReply | Body> {
  const { authenticator, responder } = options;
  const target = requireTarget(request);
  const { entry, isPost, audit } = target;
  const { operation } = entry;

  const read = withFound(target, await readForm(target, options));
  const formatted = withFound(read, { format: requireFormat(read, options) });
  const identified = withFound(formatted, { identity: await identifyCaller(formatted, authenticator) });
  requireRole(identified.identity?.caller, accessOf(entry));
  options.admit(entry, showsForm(target));
  if (isPost) operation?.guard(identified);
  const rest = withFound(identified, await findSubjectsNow(identified, options.store));

  if (responder && isFramePoll(rest)) return responder.sendFrame(rest, reply);
  if (responder && showsForm(rest)) return responder.sendForm(rest, reply);
  const callWith = callsOf(rest, options);
  if (!operation) return answerResource(rest, reply, callWith, options);
  requireKnownField(rest);
  const opened = operation.open(callWith, rest.form);
  refuseKey(rest, opened);
  const { actor, unused, run } = await opened.check();
  if (actor) audit?.actAs(await actor());
  const outcome = await run(audit?.actor);
  requireEntry(rest, operation);
  return send(rest, reply, withIgnored(outcome, [...rest.unknown, ...unused], operation), options);
}

function requirePath(request: FastifyRequest, options: RestOptions): RefusedRequest {
  const { rest: route } = request.routeOptions.config;
  if (!route) throw notFound();
  const target = targetOf(request, route);
  const isAudited = target.isPost && route.entry.operation?.isAudited;
  const audit = isAudited ? new RequestAudit(options, route.auditName, target.address) : undefined;
  if (target.entry.items.length === 0) audit?.actOn(target);
  request.rest = withFound(target, { audit });
  return request.rest;
}

function requireMethod(target: Target, { pagesAreDefault }: RestOptions): void {
  const { request, hasPages } = target;
  if (showsForm(target) && (!hasPages || guessFormat(request, pagesAreDefault) !== 'html'))
    throw methodNotAllowed(request.method, ['POST']);
}

async function identifyBearer(target: RefusedRequest, { authenticator }: RestOptions): Promise<void> {
  const credentials = credentialsOf(target.request, undefined);
  if (credentials.bearer === undefined) return;
  const identity = await authenticator.identify(credentials);
  withFound(target, { identity });
  target.audit?.actAs(actorOf(identity?.caller));
}

function refuseEncodedBody({ headers: { 'content-encoding': coding = 'identity' } }: FastifyRequest): void {
  if (coding.trim().toLowerCase() === 'identity') return;
  throw new ServiceError('unsupported-media-type', 'The content encoding of the request is not supported.', {
    problems: [{ field: 'Content-Encoding', message: 'must be identity or absent.' }],
  });
}

function requireTarget({ rest }: FastifyRequest): RefusedRequest {
  if (!rest) throw notFound();
  return rest;
}

async function readForm(
  target: Target,
  { maxFileBytes }: RestOptions,
): Promise<GivenForm & { readonly query: Form }> {
  const { request, entry, isPost, queryText } = target;
  const requested = requestedFieldsOf(target);
  const fields = fieldsOf(entry);
  const inQuery = readUrlencoded(queryText, requested);
  const { text = '' } = (request.body ?? {}) as { text?: string };
  const inBody =
    isPost && request.isMultipart()
      ? await readMultipart(request, requested, maxFileBytes)
      : readUrlencoded(text, requested);
  const { form, unknown } = isPost ? joinForms(inQuery, inBody) : inQuery;
  return { query: inQuery.form, form: joinBoxes(fields, form), unknown };
}

function requireFormat(read: ReadRequest, { pagesAreDefault }: RestOptions): Format {
  const allowed = formatsOf(read);
  const format = readFormat(textIn(read.form, 'f'), usualFormat(read.request, pagesAreDefault), allowed);
  if (format === undefined) throw invalidField('f', `must be one of ${allowed.join(', ')}.`);
  return format;
}

/** The form may carry the token. */
async function identifyCaller(
  { request, entry, isPost, hasPages, form, identity, audit }: ReadRequest & RefusedRequest,
  authenticator: Authenticator,
): Promise<Identity | undefined> {
  if (accessOf(entry) === 'anyone')
    return isPost || !hasPages ? undefined : identifySession(request, authenticator.identify);
  const identified = identity
    ? await identifyAgain(request, identity, authenticator)
    : await authenticator.identify(credentialsIn(request, form, hasPages));
  audit?.actAs(actorOf(identified?.caller));
  return identified;
}

/** A bearer token may have ended while the server waited for the body. */
function identifyAgain(
  { countedBody }: FastifyRequest,
  identity: Identity,
  authenticator: Authenticator,
): Identity | Promise<Identity> {
  return countedBody ? authenticator.identifyAgain(identity) : identity;
}

/** Without pages, the session of a browser does not count. */
function credentialsIn(request: FastifyRequest, form: Form, hasPages: boolean): Credentials {
  const credentials = credentialsOf(request, textIn(form, 'token'));
  return hasPages ? credentials : { ...credentials, cookie: undefined };
}

function requireRole(caller: Caller, access: Access): void {
  if (mayCall(caller, access)) return;
  throw caller === undefined
    ? usualError('token-missing')
    : new ServiceError('forbidden', `This needs the role ${access}.`);
}

const noIds: Found = { subject: { found: undefined }, subjects: [] };

type Found = Pick<RestRequest, 'subject' | 'subjects'>;

/** Looks again after a refresh: another process may have created the resource a moment ago. */
async function findSubjectsNow(rest: IdentifiedRequest, { refresh }: Pick<Store, 'refresh'>): Promise<Found> {
  if (rest.entry.items.length === 0) return noIds;
  try {
    return await findSubjects(rest);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind !== 'not-found') throw error;
    await refresh();
    return findSubjects(rest);
  }
}

async function findSubjects(rest: IdentifiedRequest): Promise<Found> {
  const subjects: unknown[] = [];
  for (const { item, segment } of idsOf(rest))
    subjects.push(await item.find(subjects.at(-1), segment, rest.identity?.caller));
  rest.audit?.actOn(rest);
  return { subjects, subject: { found: subjects.at(-1) } };
}

function isFramePoll({ request, format, isPost }: RestRequest): boolean {
  return !isPost && format === 'html' && request.headers[pollHeader] === 'frame';
}

function callsOf(rest: RestRequest, { authenticator, admit }: RestOptions): CallWith<unknown> {
  const { entry, identity, audit, isPost, subject } = rest;
  const access = accessOf(entry);
  const known = access === 'anyone' ? undefined : identity;
  const authorize = (again: Identity | undefined) => {
    requireRole(again?.caller, access);
    return again?.caller;
  };
  // The operation may have waited since the first check, for example until a password was hashed.
  const checkAgain = (transaction: Transaction) => {
    admit(entry, false, transaction);
    return authorize(known && authenticator.identifyWithin(transaction, known));
  };
  return (values) => ({
    subject: subject.found,
    values,
    caller: identity?.caller,
    tokenHash: known?.tokenHash,
    requireCallerNow: async () => authorize(known && (await authenticator.identifyAgain(known))),
    request: rest,
    isForm: isPost && (identity?.formToken ?? '') !== '',
    update: (rule, options = {}) => requireAudit(audit).update(rule, checkAgain, options),
    auditEntry: () => requireAudit(audit).createEntry(),
  });
}

function requireAudit(audit: RequestAudit | undefined): RequestAudit {
  if (!audit) throw new Error('The operation is described as one that changes nothing.');
  return audit;
}

async function answerResource(
  rest: RestRequest,
  reply: FastifyReply,
  callWith: CallWith<unknown>,
  options: RestOptions,
): Promise<FastifyReply | Body> {
  const { resource } = rest.entry;
  if (rest.format === 'csv' && resource.csv) return sendCsv(reply, resource.csv(callWith, rest.form));
  return send(rest, reply, { json: await resource.read(callWith, rest.form) }, options);
}

/** Otherwise a change whose fields all have other names here would succeed and change nothing. */
function requireKnownField({ entry, form, unknown }: RestRequest): void {
  if (unknown.length === 0 || !changesExisting(entry)) return;
  const known = Object.keys(fieldsOf(entry));
  if (known.some((name) => Object.hasOwn(form, name))) return;
  const given = shortNames(unknown).join(', ');
  throw invalid([{ message: `None of the given fields is known: ${given}. Known are ${known.join(', ')}.` }]);
}

/** Adds the names of the fields that had no effect to the answer of a write. */
function withIgnored(outcome: Outcome, names: readonly string[], { effect }: Operation): Outcome {
  if (names.length === 0 || effect === 'reads') return outcome;
  const ignored = shortNames(names);
  return { ...outcome, json: { ...(plainJson(outcome.json) as { readonly [name: string]: Json }), ignored } };
}

const maxNames = 20;
const maxNameLength = 64;

function shortNames(names: readonly string[]): string[] {
  return names.slice(0, maxNames).map((name) => truncate(name, maxNameLength));
}

function refuseKey({ identity }: RestRequest, opened: OpenedOperation): void {
  if (identity?.caller.key !== undefined && opened.refusesKey())
    throw new ServiceError('forbidden', 'A key may not do this. Sign in instead.');
}

/** Without this, an operation could forget its entry. */
function requireEntry({ audit }: RestRequest, { title }: Operation): void {
  if (audit?.actor && !audit.hasRecorded) throw new Error(`${title} has recorded nothing.`);
}

function send(
  rest: RestRequest,
  reply: FastifyReply,
  outcome: Outcome,
  { responder }: RestOptions,
): Body | Promise<FastifyReply | Body> {
  if (outcome.headers) void reply.headers(outcome.headers);
  return responder && rest.format === 'html'
    ? responder.sendOutcome(rest, reply, outcome)
    : bodyOf(reply, outcome.json, rest.format);
}
