// Hangs a SOAP endpoint on Fastify: POST is a call, GET ?wsdl serves the description, GET alone shows a page.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { methodNotAllowed } from '../errors.ts';
import type { Answer, Endpoint } from './handler.ts';

const methods = ['GET', 'HEAD', 'POST'];

export type SoapOptions = {
  readonly path: string;
  readonly endpoint: Endpoint;
  readonly wsdl: () => Buffer;
  /** What a browser is shown. */
  readonly showPage: (reply: FastifyReply) => FastifyReply;
};

export function mountSoap(scope: FastifyInstance, { path, endpoint, wsdl, showPage }: SoapOptions): void {
  // The endpoint reads the body itself, so a call is answered before Fastify would.
  scope.addHook('onRequest', (request, reply, done) => {
    request.routeLabel = path;
    if (!methods.includes(request.method)) throw methodNotAllowed(request.method, methods);
    if (request.method !== 'POST') return done();
    endpoint.call(request.raw, (answer) => send(reply, answer), tokenOf(request));
  });
  scope.setErrorHandler((error, request, reply) => send(reply, endpoint.refuse(request.raw, error)));

  scope.all(path, (request, reply) => {
    const wantsWsdl = Object.keys(request.query as object).some((key) => key.toLowerCase() === 'wsdl');
    return wantsWsdl ? reply.header('content-type', 'text/xml; charset=utf-8').send(wsdl()) : showPage(reply);
  });
}

function send(reply: FastifyReply, { status, headers, body }: Answer): void {
  void reply.code(status).headers(headers).send(body);
}

/** A token that is given twice is no token of ours. */
function tokenOf(request: FastifyRequest): string | undefined {
  const { token } = request.query as Record<string, string | string[] | undefined>;
  return token?.toString().trim() || undefined;
}
