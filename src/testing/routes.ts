// The control API: a Fastify instance of its own, which the controlled server calls for every path beneath /control, and
// who may call it: programs on this machine and pages of this server, with the token if one is configured.
import fastify, { type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import * as z from 'zod';
import type { App } from '../app/app.ts';
import type { AppOptions } from '../app/start.ts';
import { integerText } from '../config/value-schemas.ts';
import { AllowedMethods } from '../http/allowed-methods.ts';
import { sendJson } from '../http/answers.ts';
import { asServiceError, notFound, toErrorResponse, unsupportedMediaType } from '../http/errors.ts';
import { checkHeaders, withoutSchemas } from '../http/server.ts';
import { isLoopbackHost } from '../lib/address.ts';
import { invalidField, methodNotAllowed, ServiceError } from '../lib/errors.ts';
import { requireBearer } from '../lib/secret.ts';
import { ControlledServer } from './controlled-server.ts';
import { integer, maxAdvanceMs, maxDate, parseInput } from './input.ts';
import { addPage } from './page.ts';
import { type KnownParts, findUnknownParts, isSameTemplate, ruleSchemaFor } from './rule.ts';
import { maxSnapshotBytes } from './snapshot.ts';

/** Starts a server whose store, clock and executor tests control. */
export async function startControlled(options: AppOptions): Promise<App> {
  options.logger.warn(
    'TEST_CONTROL is on: anybody who reaches /control can reset the server and read what clients send',
  );
  const server = await ControlledServer.start(options, createControl);
  return server.app;
}

const success = { status: 'success' };

async function createControl(server: ControlledServer): Promise<FastifyInstance> {
  const { config, logger } = server.options;
  const control = fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: maxSnapshotBytes,
    exposeHeadRoutes: true,
    routerOptions: { ignoreTrailingSlash: true },
    schemaController: withoutSchemas,
  });
  const allowedMethods = new AllowedMethods(control);
  control.removeAllContentTypeParsers();
  control.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  control.addHook('onRequest', (request, reply, done) => {
    void reply.header('x-content-type-options', 'nosniff');
    checkHeaders(request.raw);
    checkAccess(request, new URL(server.app.urls.base), config.TEST_CONTROL_TOKEN);
    if (request.is404) {
      const allow = allowedMethods.find(request.url);
      throw allow ? methodNotAllowed(request.method, allow) : notFound();
    }
    if (request.method === 'POST' || request.method === 'PUT') {
      const isForm = request.routeOptions.url === '/control';
      refuseMediaType(request, isForm ? 'application/x-www-form-urlencoded' : 'application/json');
      if (isForm) checkFormOrigin(request);
    }
    done();
  });
  control.setErrorHandler((thrown, request, reply) => {
    const error = asControlError(thrown, request.routeOptions.bodyLimit);
    if (!error) request.log.error({ err: thrown }, 'control request failed');
    const { status, headers, body } = toErrorResponse(error, request.id);
    return sendJson(reply.headers(headers), status, body);
  });
  addRoutes(control, server);
  await control.ready();
  return control;
}

const text = z.string('must be given once').max(4096, 'must have at most 4096 characters');

const clockInput = z
  .strictObject({
    frozen: z.boolean('must be true or false').optional(),
    now: integer(0, maxDate).optional(),
    advanceMs: integer(0, maxAdvanceMs).optional(),
  })
  .check(({ value, issues }) => {
    const refuse = (message: string) => issues.push({ code: 'custom', input: value, message });
    if (Object.values(value).every((part) => part === undefined))
      refuse('must name frozen, now or advanceMs');
    if (value.now !== undefined && value.advanceMs !== undefined)
      refuse('must not name both now and advanceMs');
  });

const resetInput = z.strictObject({}).optional();

const ruleQuery = z.strictObject({ id: text.optional(), f: text.optional() });

const journalQueryFor = (known: () => KnownParts) =>
  z
    .strictObject({
      route: text.optional(),
      status: integerText(100, 599).optional(),
      soapOperation: text.optional(),
      start: integerText(0, 999_999_999).default(0),
      num: integerText(1, 1000).default(100),
      f: text.optional(),
    })
    .check(({ value, issues }) => {
      for (const { name, message } of findUnknownParts(value, known().routes))
        issues.push({ code: 'custom', input: undefined, path: [name], message });
    });

function addRoutes(control: FastifyInstance, server: ControlledServer): void {
  const { rules, journal } = server;
  const newRule = ruleSchemaFor(() => server.known);
  const journalQuery = journalQueryFor(() => server.known);

  addPage(control, server);
  control.post('/control/reset', async (request, reply) => {
    parseInput(resetInput, bodyOf(request));
    await server.reset();
    return sendJson(reply, 200, success);
  });
  control.get('/control/snapshot', (_request, reply) => sendJson(reply, 200, server.snapshot()));
  control.put('/control/snapshot', async (request, reply) => {
    await server.restore(bodyOf(request));
    return sendJson(reply, 200, success);
  });
  control.get('/control/clock', (_request, reply) => sendJson(reply, 200, server.clock.state()));
  control.post('/control/clock', async (request, reply) => {
    const { frozen, now, advanceMs } = parseInput(clockInput, bodyOf(request));
    if (now !== undefined) checkTarget(now, server.clock.now());
    if (frozen !== undefined) server.clock.setFrozen(frozen);
    if (now !== undefined) await server.advanceTo(now);
    if (advanceMs !== undefined) await server.advanceTo(server.clock.now() + advanceMs);
    return sendJson(reply, 200, server.clock.state());
  });
  control.get('/control/failures', (_request, reply) => sendJson(reply, 200, { rules: rules.list() }));
  control.post('/control/failures', (request, reply) =>
    sendJson(reply, 200, rules.add(parseInput(newRule, bodyOf(request)))),
  );
  control.delete('/control/failures', (request, reply) => {
    const { id } = parseInput(ruleQuery, request.query);
    if (id === undefined) rules.clear();
    else if (!rules.remove(id)) throw new ServiceError('not-found', `There is no rule with the id ${id}.`);
    return sendJson(reply, 200, success);
  });
  control.get('/control/requests', (request, reply) => {
    const { route, status, soapOperation, start, num } = parseInput(journalQuery, request.query);
    const isOfRoute = (known: string | null) => isSameTemplate(known, route);
    const filter = { route: route === undefined ? undefined : isOfRoute, status, soapOperation };
    return sendJson(reply, 200, journal.page(filter, start, num));
  });
  control.delete('/control/requests', (_request, reply) => {
    journal.clear();
    return sendJson(reply, 200, success);
  });
}

function checkTarget(target: number, now: number): void {
  if (target < now) throw invalidField('now', `must not be before the time of the clock, ${now}.`);
  if (target > now + maxAdvanceMs)
    throw invalidField('now', `must be at most ${maxAdvanceMs} ms later than ${now}.`);
}

function bodyOf({ body }: FastifyRequest): unknown {
  const text = Buffer.isBuffer(body) ? body.toString() : '';
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ServiceError('invalid', 'The body must be JSON.', {
      problems: [{ field: 'body', message: `${(error as Error).message}.` }],
    });
  }
}

function refuseMediaType({ headers }: FastifyRequest, allowed: string): void {
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
  if (type.trim().toLowerCase() !== allowed) throw unsupportedMediaType(`must be ${allowed}.`);
}

function asControlError(thrown: unknown, maxBytes: number): ServiceError | undefined {
  if ((thrown as { statusCode?: unknown }).statusCode === 413)
    return new ServiceError('too-large', `The body must be at most ${maxBytes} bytes.`);
  return asServiceError(thrown);
}

/**
 * A page of another site could otherwise control the server through the browser, also under a name that resolves to
 * this machine.
 */
function checkAccess({ headers }: FastifyRequest, own: URL, token: string | undefined): void {
  const { host = '', origin, 'sec-fetch-site': site } = headers;
  const hostname = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : undefined;
  if (hostname === undefined || !(isLoopbackHost(hostname) || hostname === own.hostname))
    throw forbidden('Host', `must be a loopback address or ${own.hostname}, the host of PUBLIC_URL.`);
  if (site !== undefined && site !== 'same-origin' && site !== 'none')
    throw forbidden('Sec-Fetch-Site', 'must be same-origin or none.');
  if (origin !== undefined && ![own.origin, `http://${host}`, `https://${host}`].includes(origin))
    throw forbidden('Origin', `must be that of this server.`);
  if (token === undefined) return refuseProxied(headers);
  requireBearer(headers.authorization, 'TEST_CONTROL_TOKEN', token);
}

/** Any site could send a form without a header that names the origin, if a browser sent one. */
function checkFormOrigin({ headers }: FastifyRequest): void {
  if (headers.origin === undefined && headers['sec-fetch-site'] !== 'same-origin')
    throw forbidden('Origin', 'must be given with a form.');
}

/** Behind a proxy, every client seems to be on this machine. */
function refuseProxied(headers: FastifyRequest['headers']): void {
  const header = Object.keys(headers).find((name) => /^(x-forwarded-.*|forwarded)$/.test(name));
  if (header !== undefined)
    throw forbidden(header, 'must not be given unless the server has a TEST_CONTROL_TOKEN.');
}

function forbidden(field: string, message: string): ServiceError {
  return new ServiceError('forbidden', 'The control API refuses this request.', {
    problems: [{ field, message }],
  });
}
