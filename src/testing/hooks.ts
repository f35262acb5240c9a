// The Fastify hooks of a controlled server: failure rules answer before all checks, and the journal records every
// request.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { constants, gunzipSync } from 'node:zlib';
import { onEnded } from '../http/request-end.ts';
import { type Body, sendJson } from '../http/answers.ts';
import { routeTemplate } from '../http/request-log.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { toFault, toFaultResponse } from '../soap/faults.ts';
import { formatOf } from '../soap/plugin.ts';
import { decodeXml } from '../soap/xml/decode.ts';
import { type XmlElement, readXml } from '../soap/xml/reader.ts';
import type { ControlClock } from './clock.ts';
import { type Journal, type OpenEntry, maxKeptBodyBytes, noMessage } from './journal.ts';
import { ExchangeMask } from './mask.ts';
import {
  type FailureRules,
  type KnownRoute,
  type Match,
  type Respond,
  isRedirection,
  isSameTemplate,
  typicalError,
} from './rule.ts';

type ControlHooks = {
  readonly clock: ControlClock;
  readonly rules: FailureRules;
  readonly journal: Journal;
  readonly catalogPath: string;
  readonly catalogNamespace: string;
  /** Delays take real time. */
  readonly real: Pick<Runtime, 'sleep'>;
  /** Ends delays: the server is reset, restored or stopped. */
  readonly ended: AbortSignal;
  /** Gets every route of the server. */
  readonly onRoute: (route: KnownRoute) => void;
};

/** No rule answers these. */
const probes = ['/health', '/ready', '/metrics'];

/** Of a body after decompression. */
const maxShownBytes = 1024 ** 2;

const ruleMessage = 'A failure rule answered this request.';

export function addControlHooks(http: FastifyInstance, options: ControlHooks): void {
  const { rules, catalogPath, onRoute } = options;
  const recorders = new WeakMap<FastifyRequest, BodyRecorder>();
  /** Calls whose first rule may depend on the operation. */
  const waiting = new WeakSet<FastifyRequest>();
  /** Calls whose answer is cut off or drips, of the server itself or of a rule. */
  const slowed = new WeakMap<FastifyRequest, Respond>();
  const isSoapCall = (request: FastifyRequest) =>
    request.method === 'POST' && routeOf(request) === catalogPath;

  http.addHook('onRoute', ({ url, method, config }) => {
    const template = config?.rest?.template ?? routeTemplate(url);
    onRoute({ template, methods: [method].flat(), soapOperations: config?.soapOperations ?? [] });
  });

  http.addHook('onRequest', async (request, reply) => {
    const route = routeOf(request);
    recorders.set(request, recordExchange(request, reply, route, options));
    if (route !== null && probes.includes(route)) return undefined;
    const matches = (match: Match) => matchesRequest(match, request, route);
    if (isSoapCall(request) && rules.find(matches)?.match.soapOperation !== undefined) {
      waiting.add(request);
      return undefined;
    }
    const isForAll = (match: Match) => match.soapOperation === undefined && matches(match);
    return answer(rules.take(isForAll), request, reply);
  });

  // The operation is known only after the body has been read.
  http.addHook('preHandler', async (request, reply) => {
    if (!waiting.has(request)) return undefined;
    const operation = Buffer.isBuffer(request.body) ? soapOperationOf(request.body) : undefined;
    const respond = rules.take(
      (match) =>
        matchesRequest(match, request, catalogPath) &&
        (match.soapOperation === undefined || match.soapOperation === operation),
    );
    return answer(respond, request, reply);
  });

  http.addHook('onSend', (request, reply, given, done) => {
    const recorder = recorders.get(request);
    const respond = slowed.get(request);
    const payload = respond && isBody(given) ? slowDown(given, reply, respond, options) : given;
    if (recorder && payload instanceof Readable) observe(payload, recorder);
    else if (typeof payload === 'string' || Buffer.isBuffer(payload)) recorder?.add(payload);
    readUnread(request.raw);
    done(null, payload);
  });

  function answer(respond: Respond | undefined, request: FastifyRequest, reply: FastifyReply) {
    if ((respond?.truncateAt ?? respond?.dripMs) !== undefined && respond) slowed.set(request, respond);
    return answerByRule(respond, request, reply, options);
  }
}

function isBody(payload: unknown): payload is Body {
  return typeof payload === 'string' || Buffer.isBuffer(payload) || payload instanceof Readable;
}

/** The same answer, of which the client gets byte after byte, or the first bytes. */
function slowDown(
  body: Body,
  reply: FastifyReply,
  { truncateAt = Infinity, dripMs }: Respond,
  { real, ended }: ControlHooks,
): Readable {
  if (!(body instanceof Readable)) void reply.header('content-length', Buffer.byteLength(body));
  async function* bytes(): AsyncGenerator<Buffer> {
    let left = truncateAt;
    for await (const part of body instanceof Readable ? body : [body]) {
      const rest = Buffer.from(part as Buffer | string).subarray(0, left);
      left -= rest.length;
      if (dripMs === undefined) yield rest;
      else
        for (const byte of rest) {
          await real.sleep(dripMs, ended);
          yield Buffer.of(byte);
        }
      if (left === 0) break;
    }
    // What has been written is sent before the connection ends.
    if (left === 0) await new Promise((resolve) => setImmediate(resolve));
    if (left === 0) reply.raw.destroy();
  }
  return Readable.from(bytes(), { objectMode: false });
}

function routeOf(request: FastifyRequest): string | null {
  const { url, config } = request.routeOptions;
  if (url === undefined || request.is404) return null;
  return config.rest?.template ?? routeTemplate(url);
}

function matchesRequest(match: Match, { method }: FastifyRequest, route: string | null): boolean {
  const isForRequests = [match.container, match.step, match.receiver].every((part) => part === undefined);
  if (!isForRequests) return false;
  if (match.method !== undefined && match.method !== method) return false;
  return match.route === undefined || isSameTemplate(route, match.route);
}

/**
 * Adds the entry to the journal and completes it when the answer is sent. Returns the recorder of the answer's
 * body.
 */
function recordExchange(
  request: FastifyRequest,
  reply: FastifyReply,
  route: string | null,
  { clock, journal, catalogPath }: ControlHooks,
): BodyRecorder {
  const sent = new BodyRecorder();
  const answered = new BodyRecorder();
  const { raw } = request;
  const mask = new ExchangeMask();
  observe(raw, sent);
  const entry: OpenEntry = journal.add({
    at: clock.now(),
    method: request.method,
    path: mask.address(request.originalUrl),
    route,
    status: null,
    soapOperation: null,
    fault: null,
    faultElement: null,
    request: { headers: mask.headers(request.headers), body: '' },
    response: noMessage,
  });
  const show = (bytes: Buffer) => mask.body(decompress(bytes).subarray(0, maxKeptBodyBytes).toString());
  onEnded(reply, () => {
    const isSoap = route === catalogPath && request.method === 'POST';
    entry.request = { ...entry.request, body: show(sent.bytes()) };
    if (isSoap) entry.soapOperation = soapOperationOf(sent.bytes()) ?? null;
    if (reply.raw.headersSent) {
      entry.status = reply.raw.statusCode;
      entry.response = { headers: mask.headers(reply.getHeaders()), body: show(answered.bytes()) };
      if (isSoap && entry.status >= 400) entry.fault = faultReasonOf(answered.bytes()) ?? null;
      if (isSoap) entry.faultElement = request.faultElement;
    }
    journal.complete(entry);
  });
  return answered;
}

/** Collects the first bytes of a body. */
class BodyRecorder {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  readonly add = (chunk: Buffer | string): void => {
    const room = maxKeptBodyBytes - this.#bytes;
    if (room <= 0) return;
    const kept = Buffer.from(chunk).subarray(0, room);
    this.#chunks.push(kept);
    this.#bytes += kept.length;
  };

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }
}

/** Records what others read. A paused stream does not begin to flow because of this listener. */
function observe(stream: Readable, recorder: BodyRecorder): void {
  stream.pause();
  stream.on('data', recorder.add);
}

/** Node discards the body of a request that was refused before it was read. The journal keeps what has arrived. */
function readUnread(body: Readable): void {
  if (!body.readableEnded && body.listenerCount('data') === 1) body.resume();
}

async function answerByRule(
  respond: Respond | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
  { real, ended, catalogNamespace }: ControlHooks,
): Promise<FastifyReply | undefined> {
  if (!respond) return undefined;
  // The hook that adds these headers has not run yet.
  void reply.header('x-content-type-options', 'nosniff').header('x-request-id', request.id);
  const { delayMs, disconnect, error, fault, status, body, headers = {} } = respond;
  if (delayMs !== undefined) await real.sleep(delayMs, ended).catch(endDelay);
  if (disconnect === true) {
    reply.hijack();
    request.raw.socket.destroy();
    return reply;
  }
  if (error !== undefined) throw typicalError(error);
  if (fault !== undefined) {
    const kind = fault === 'Client' ? 'invalid' : 'unavailable';
    const rendered = toFault(new ServiceError(kind, ruleMessage), catalogNamespace);
    const { version } = formatOf(request.headers);
    const answer = toFaultResponse(version, status === undefined ? rendered : { ...rendered, status });
    return reply
      .code(answer.status)
      .headers({ ...answer.headers, ...headers })
      .send(answer.body);
  }
  if ((status ?? body ?? respond.headers) === undefined) return undefined;
  return sendAnswer(reply.headers(headers), status ?? 200, body);
}

function endDelay(): never {
  throw new ServiceError('unavailable', 'The server was reset, restored or stopped during a delay.', {
    retryAfterSeconds: 5,
  });
}

function sendAnswer(reply: FastifyReply, status: number, body: string | undefined): FastifyReply {
  if (body === undefined && status !== 204 && !isRedirection(status)) return sendStatus(reply, status);
  if (body !== undefined && !reply.hasHeader('content-type')) void reply.type('text/html; charset=utf-8');
  return reply.code(status).send(body);
}

function sendStatus(reply: FastifyReply, status: number): FastifyReply {
  const isBusy = status === 429 || status === 503;
  if (isBusy && !reply.hasHeader('retry-after')) void reply.header('retry-after', '5');
  return sendJson(
    reply,
    status,
    status < 400
      ? { status: 'success' }
      : { status: 'error', error: { code: status, message: ruleMessage, details: [] } },
  );
}

/** The name of the first element in the Body, even if the server refuses the message. */
function soapOperationOf(body: Buffer): string | undefined {
  const root = readMessage(body);
  const soapBody = root?.children.find(({ name }) => name === 'Body');
  return soapBody?.children[0]?.name;
}

/** The text that a fault has for people. */
function faultReasonOf(body: Buffer): string | undefined {
  const root = readMessage(body);
  return root && (findElement(root, 'faultstring') ?? findElement(root, 'Text'))?.text;
}

/** Shows a compressed body as text too, or its beginning: the journal keeps only the first bytes of a large one. */
function decompress(body: Buffer): Buffer {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body;
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: maxShownBytes };
  for (let length = body.length; length > 0; length >>= 1) {
    try {
      return gunzipSync(body.subarray(0, length), options);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') return body;
    }
  }
  return body;
}

function readMessage(body: Buffer): XmlElement | undefined {
  try {
    return readXml(decodeXml(decompress(body), undefined));
  } catch {
    return undefined;
  }
}

function findElement(element: XmlElement, name: string): XmlElement | undefined {
  if (element.name === name) return element;
  for (const child of element.children) {
    const found = findElement(child, name);
    if (found) return found;
  }
  return undefined;
}
