// The SOAP endpoint as a Fastify plugin: POST is a call, GET ?wsdl returns the WSDL, and GET alone shows a page.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { SharedAnswers } from '../http/answers.ts';
import { credentialsOf } from '../http/credentials.ts';
import { asServiceError, notFound } from '../http/errors.ts';
import { noteError } from '../http/request-log.ts';
import type { Caller, Identify } from '../lib/caller.ts';
import { ServiceError, usualError } from '../lib/errors.ts';
import { soapContentTypes } from './envelope.ts';
import { toFault, toFaultResponse } from './faults.ts';
import {
  type FailedCall,
  type MessageFormat,
  type SoapHandler,
  maxRequestBytes,
  requestTooLarge,
} from './handler.ts';

type SoapOptions = {
  readonly prefix: string;
  readonly handler: SoapHandler;
  readonly requireTokens: boolean;
  readonly identify: Identify;
  readonly wsdl: () => Buffer;
  readonly sendPage: (reply: FastifyReply) => Promise<FastifyReply>;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** The element of the envelope that the fault is about. */
    faultElement: string | null;
  }
  interface FastifyContextConfig {
    /** The names of the operations, if the route takes SOAP calls. */
    soapOperations?: readonly string[];
  }
}

const mediaTypes = ['text/xml', 'application/xml', 'application/soap+xml'];

/** One of them, with any parameters. */
const allowedType = /^\s*(?:text\/xml|application\/xml|application\/soap\+xml)\s*(?:;|$)/i;

const empty = Buffer.alloc(0);

export function soapEndpoint(scope: FastifyInstance, options: SoapOptions, done: () => void): void {
  const { handler, wsdl, sendPage } = options;
  const answers = { '1.1': new SharedAnswers(), '1.2': new SharedAnswers() };
  const descriptions = new SharedAnswers();
  scope.decorateRequest('faultElement', null);
  scope.removeAllContentTypeParsers();
  const limits = { parseAs: 'buffer', bodyLimit: maxRequestBytes } as const;
  // Toolkits may send no content type; the hook below refuses all others.
  for (const type of [...mediaTypes, '*'])
    scope.addContentTypeParser(type, limits, (_request, body, parsed) => parsed(null, body));

  scope.addHook('onRequest', ({ method, headers }, _reply, next) => {
    if (method === 'POST') refuseMediaType(headers);
    next();
  });
  scope.setErrorHandler((error, request, reply) => answerError(error, request, reply, handler.namespace));

  scope.post('', { config: { soapOperations: handler.operations } }, async (request, reply) => {
    const body = (request.body as Buffer | undefined) ?? empty;
    const result = await handler.call(body, formatOf(request.headers), () => callerOf(request, options));
    if ('fault' in result) return sendFault(result, request, reply);
    const { version, parts, sharedContent } = result;
    void reply.header('content-type', soapContentTypes[version]);
    return answers[version].bodyFor(reply, parts, sharedContent);
  });
  scope.route({
    method: ['GET', 'HEAD'],
    url: '',
    handler: (request, reply) => {
      const wantsWsdl = Object.keys(request.query as object).some((key) => key.toLowerCase() === 'wsdl');
      if (!wantsWsdl) return sendPage(reply);
      const description = wsdl();
      void reply.header('content-type', soapContentTypes['1.1']);
      return descriptions.bodyFor(reply, [description], description);
    },
  });
  // Without this, the error handler of the root would answer a wrong method.
  scope.setNotFoundHandler(() => {
    throw notFound();
  });
  done();
}

/** The session of a browser counts only together with the form token of the page that tries operations. */
async function callerOf(request: FastifyRequest, { identify, requireTokens }: SoapOptions): Promise<Caller> {
  const identity = await identify(credentialsOf(request, queryToken(request)));
  if (!identity && requireTokens) throw usualError('token-missing');
  return identity?.caller;
}

/** Toolkits can set it without changing the message. Two tokens are joined to one text, which is no known token. */
function queryToken(request: FastifyRequest): string | undefined {
  const { token } = request.query as Record<string, string | string[] | undefined>;
  return token?.toString();
}

export function formatOf(headers: FastifyRequest['headers']): MessageFormat {
  const contentType = headers['content-type'] ?? '';
  return {
    version: /^\s*application\/soap\+xml/i.test(contentType) ? '1.2' : '1.1',
    charset: charsetOf(contentType),
    isGzip: /gzip/i.test(headers['content-encoding'] ?? ''),
  };
}

function charsetOf(contentType: string): string | undefined {
  for (const parameter of contentType.split(';')) {
    const charset = /^\s*charset\s*=\s*"?([^"\s]+)/i.exec(parameter)?.[1];
    if (charset !== undefined) return charset;
  }
  return undefined;
}

function refuseMediaType(headers: FastifyRequest['headers']): void {
  const { 'content-type': type, 'content-encoding': encoding } = headers;
  if (type !== undefined && !allowedType.test(type)) {
    throw new ServiceError(
      'unsupported-media-type',
      `The content type must be one of ${mediaTypes.join(', ')}.`,
    );
  }
  const coding = encoding?.trim().toLowerCase();
  if (coding !== undefined && !['identity', 'gzip', 'x-gzip'].includes(coding)) {
    throw new ServiceError('unsupported-media-type', 'The content encoding must be gzip or identity.');
  }
}

/** Answers a request that is refused before its envelope is read. Only the content type names a version then. */
function answerError(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  namespace: string,
): FastifyReply {
  const error = asServiceError(thrown, requestTooLarge);
  // An address beneath the endpoint is no SOAP address, so the error handler of the root answers.
  if (request.is404 && error?.kind === 'not-found') throw error;
  const fault = toFault(error, namespace);
  const { version } = formatOf(request.headers);
  // The HTTP body itself is refused, so the status does not depend on the version of SOAP.
  const isBadBody = (thrown as { statusCode?: unknown }).statusCode === 400;
  return sendFault(
    { version, fault: isBadBody ? { ...fault, status: 400 } : fault, error: error ?? thrown },
    request,
    reply,
  );
}

function sendFault(
  { version, fault, error }: FailedCall,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const known = error instanceof ServiceError ? error : undefined;
  if (error !== undefined) noteError(request, error, known);
  request.faultElement = fault.element ?? null;
  const { status, headers, body } = toFaultResponse(version, fault, known);
  return reply.code(status).headers(headers).send(body);
}
