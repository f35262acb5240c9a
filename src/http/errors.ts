// Errors outside both APIs: unknown addresses, and requests that never became one.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { type Layout, sendHtml } from '../rest/html/layout.ts';
import { errorPage } from '../rest/html/pages.ts';
import { asServiceError, toErrorResponse, prefersHtml, sendJson } from '../rest/response.ts';

/** What there is around a page outside the directory. */
export type BareFrame = Pick<Layout, 'assets' | 'crumbs'>;

export function sendSiteError(
  request: FastifyRequest,
  reply: FastifyReply,
  thrown: unknown,
  frame: BareFrame,
): FastifyReply {
  const error = asServiceError(thrown);
  if (error === undefined) request.log.error({ err: thrown }, 'request failed');
  const { status, headers, body } = toErrorResponse(error);
  void reply.headers(headers);
  return prefersHtml(request.headers.accept)
    ? sendHtml(reply, status, errorPage({ title: 'Error', ...frame }, body.error))
    : sendJson(reply, status, body);
}

/** How long nothing may come from a client that was told to go, and does not close its side. */
const lingerMs = 2_000;

/** What Node could not read as HTTP at all, or waited for in vain. */
export function answerBadHttp(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const reason = STATUS_CODES[status] ?? '';
  const body = JSON.stringify({ status: 'error', error: { code: status, message: reason, details: [] } });
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
      'Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  socket.setTimeout(lingerMs);
}
