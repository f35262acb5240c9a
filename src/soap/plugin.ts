// The SOAP endpoint as a Fastify plugin: POST is a call, GET ?wsdl returns the WSDL, and GET alone shows a page.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Readable } from 'node:stream';
import { type Caller, type Identify, bearerToken } from '../caller.ts';
import { ServiceError } from '../errors.ts';
import { clientAddress } from '../http/client-address.ts';
import { notFound } from '../http/errors.ts';
import { noteError } from '../http/request-log.ts';
import { type SoapVersion, contentTypes } from './envelope.ts';
import { SoapFaultError, toFault, toFaultResponse } from './faults.ts';
import { type MessageFormat, type SoapHandler, maxRequestBytes, requestTooLarge } from './handler.ts';

export type SoapOptions = {
  readonly prefix: string;
  readonly handler: SoapHandler;
  readonly requireTokens: boolean;
  readonly identify: Identify;
  /** The token of the browser's session. It counts only together with the form token of the page that tries operations. */
  readonly sessionOf: (request: FastifyRequest) => string | undefined;
  readonly wsdl: () => Buffer;
  readonly sendPage: (reply: FastifyReply) => Promise<FastifyReply>;
};

declare module 'fastify' {
  // eslint-disable-next-line @typescript-eslint/consistent-type-definitions -- merges with Fastify's own
  interface FastifyRequest {
    soap: SoapExchange | null;
  }
}

type SoapExchange = {
  readonly format: MessageFormat;
  version: SoapVersion;
  namespace: string;
  /** The element that caused the fault. */
  faultElement?: string | undefined;
};

/** The envelope in front of the content, one part of content, and the end of the envelope. */
const fewParts = 3;

const mediaTypes = ['text/xml', 'application/xml', 'application/soap+xml'];

export function soapEndpoint(scope: FastifyInstance, options: SoapOptions, done: () => void): void {
  const { handler, wsdl, sendPage } = options;
  scope.decorateRequest('soap', null);
  scope.removeAllContentTypeParsers();
  const limits = { parseAs: 'buffer', bodyLimit: maxRequestBytes } as const;
  // Toolkits may send no content type; the hook below refuses all others.
  for (const type of [...mediaTypes, '*'])
    scope.addContentTypeParser(type, limits, (_request, body, parsed) => parsed(null, body));

  scope.addHook('onRequest', (request, _reply, next) => {
    const format = readFormat(request.headers);
    request.soap = { format, version: format.version, namespace: handler.namespace };
    if (request.method === 'POST') refuseMediaType(format, request.headers);
    next();
  });
  scope.setErrorHandler((error, request, reply) => sendFault(error, request, reply, options));

  scope.post('', async (request, reply) => {
    const answer = await call(request, options);
    return reply
      .header('content-type', contentTypes[versionOf(request)])
      .header(
        'content-length',
        answer.reduce((sum, part) => sum + part.length, 0),
      )
      .send(toPayload(answer));
  });
  scope.route({
    method: ['GET', 'HEAD'],
    url: '',
    handler: (request, reply) => {
      const wantsWsdl = Object.keys(request.query as object).some((key) => key.toLowerCase() === 'wsdl');
      return wantsWsdl
        ? reply.header('content-type', 'text/xml; charset=utf-8').send(wsdl())
        : sendPage(reply);
    },
  });
  // Without this, the error handler of the root would answer a wrong method.
  scope.setNotFoundHandler(() => {
    throw notFound();
  });
  done();
}

async function call(request: FastifyRequest, options: SoapOptions): Promise<readonly Buffer[]> {
  const { handler } = options;
  const exchange = request.soap;
  if (!exchange) throw new Error('The request is not a SOAP call.');
  const body = (request.body as Buffer | undefined) ?? Buffer.alloc(0);
  const soapRequest = handler.read(body, exchange.format, (version) => (exchange.version = version));
  exchange.namespace = soapRequest.payload.namespace;
  const isOpen = soapRequest.operation.access === 'open';
  return handler.answer(soapRequest, isOpen ? undefined : await callerOf(request, options));
}

/** A large answer is sent in its parts: with a copy for each request, clients that do not read would fill the memory. */
function toPayload(parts: readonly Buffer[]): Buffer | Readable {
  return parts.length <= fewParts ? Buffer.concat(parts) : Readable.from(parts);
}

async function callerOf(
  request: FastifyRequest,
  { identify, sessionOf, requireTokens }: SoapOptions,
): Promise<Caller> {
  const credentials = {
    bearer: bearerToken(request.headers.authorization),
    field: queryToken(request),
    cookie: sessionOf(request),
    readsOnly: false,
    address: () => clientAddress(request),
    referer: request.headers.referer,
  };
  const identity = await identify(credentials);
  if (!identity && requireTokens) throw new ServiceError('token-missing', 'Token required.');
  return identity?.caller;
}

/** Two tokens are joined to one text, which is no known token. */
function queryToken(request: FastifyRequest): string | undefined {
  const { token } = request.query as Record<string, string | string[] | undefined>;
  return token?.toString().trim() || undefined;
}

function versionOf({ soap, headers }: FastifyRequest): SoapVersion {
  return soap?.version ?? readFormat(headers).version;
}

function readFormat(headers: FastifyRequest['headers']): MessageFormat {
  const contentType = headers['content-type'] ?? '';
  const mediaType = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  return {
    mediaType,
    version: mediaType.startsWith('application/soap+xml') ? '1.2' : '1.1',
    charset: /;\s*charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1],
    isGzip: /gzip/i.test(headers['content-encoding'] ?? ''),
  };
}

function refuseMediaType({ mediaType }: MessageFormat, headers: FastifyRequest['headers']): void {
  if (headers['content-type'] !== undefined && !mediaTypes.includes(mediaType)) {
    throw new ServiceError(
      'unsupported-media-type',
      `The content type must be one of ${mediaTypes.join(', ')}.`,
    );
  }
  const coding = headers['content-encoding']?.trim().toLowerCase();
  if (coding !== undefined && !['identity', 'gzip', 'x-gzip'].includes(coding)) {
    throw new ServiceError('unsupported-media-type', 'The content encoding must be gzip or identity.');
  }
}

function sendFault(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  { handler }: SoapOptions,
): FastifyReply {
  const version = versionOf(request);
  const error = asServiceError(thrown);
  // An address beneath the endpoint is no SOAP address, so the error handler of the root answers.
  if (request.is404 && error?.kind === 'not-found') throw error;
  if (!(thrown instanceof SoapFaultError)) {
    noteError(request, error);
    if (!error) request.log.error({ err: thrown }, 'request failed');
  }
  if (request.soap)
    request.soap.faultElement = thrown instanceof SoapFaultError ? thrown.fault.element : error?.element;
  const response =
    thrown instanceof SoapFaultError
      ? toFaultResponse(thrown.version ?? version, thrown.fault)
      : toFaultResponse(version, toFault(error, request.soap?.namespace ?? handler.namespace), error);
  // The HTTP body itself is refused, so the status does not depend on the version of SOAP.
  const isBadBody = error?.kind === 'invalid' && statusCodeOf(thrown) === 400;
  return reply
    .code(isBadBody ? 400 : response.status)
    .headers(response.headers)
    .send(response.body);
}

/** Fastify reports a body over the limit, or one that breaks off, by the status of its error. */
function asServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  const statusCode = statusCodeOf(error);
  if (statusCode === 413) return requestTooLarge();
  return statusCode === 400 ? new ServiceError('invalid', 'The request cannot be read.') : undefined;
}

function statusCodeOf(error: unknown): unknown {
  return (error as { statusCode?: unknown }).statusCode;
}
