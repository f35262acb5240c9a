// Errors over HTTP: the JSON body and status of each kind, errors of Fastify and its parsers, and bytes that are no
// HTTP.
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import {
  type ErrorKind,
  type Problem,
  ServiceError,
  errorHeaders,
  formatProblem,
  tooLarge,
  usualError,
} from '../lib/errors.ts';
import { plainAddress } from '../lib/address.ts';
import { connectionLimits, maxBodyBytes } from './limits.ts';

/** `code` differs from the status only where clients of this family of APIs expect it. */
const table: Record<ErrorKind, { status: number; code: number }> = {
  invalid: { status: 400, code: 400 },
  'wrong-credentials': { status: 401, code: 400 },
  'token-missing': { status: 401, code: 499 },
  'token-invalid': { status: 401, code: 498 },
  forbidden: { status: 403, code: 403 },
  'not-found': { status: 404, code: 404 },
  'method-not-allowed': { status: 405, code: 405 },
  conflict: { status: 409, code: 409 },
  'too-large': { status: 413, code: 413 },
  'unsupported-media-type': { status: 415, code: 415 },
  'too-many-requests': { status: 429, code: 429 },
  'read-only': { status: 503, code: 503 },
  unavailable: { status: 503, code: 503 },
};

type ErrorBody = {
  readonly status: 'error';
  readonly error: { readonly code: number; readonly message: string; readonly details: readonly string[] };
};

export type ErrorResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ErrorBody;
};

/**
 * An undefined error is a defect of the server. The answer reveals only the id of the request, which the log names
 * too.
 */
export function toErrorResponse(error: ServiceError | undefined, requestId?: string): ErrorResponse {
  const { status, code } = error ? table[error.kind] : { status: 500, code: 500 };
  const message = error?.message ?? 'The server failed to handle this request.';
  const hints =
    requestId === undefined ? [] : [`The log of the server says more about the request ${requestId}.`];
  const details = error?.problems.map(formatProblem) ?? hints;
  return {
    status,
    headers: error ? errorHeaders(error) : {},
    body: { status: 'error', error: { code, message, details } },
  };
}

/** Fastify and its parsers report an error by a status. */
export function asServiceError(error: unknown, bodyTooLarge = formTooLarge): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  const { statusCode } = error as { statusCode?: unknown };
  if (statusCode === 413) return bodyTooLarge();
  if (statusCode === 415) return unsupportedMediaType();
  const isRefused = typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500;
  return isRefused ? unreadableBody() : undefined;
}

function formTooLarge(): ServiceError {
  return tooLarge({ message: `The body must be at most ${maxBodyBytes} bytes.` });
}

export function unsupportedMediaType(
  message = 'must be application/x-www-form-urlencoded or multipart/form-data.',
): ServiceError {
  return usualError('unsupported-media-type', { problems: [{ field: 'Content-Type', message }] });
}

export function unreadableBody(problems: readonly Problem[] = []): ServiceError {
  return new ServiceError('invalid', 'The request body cannot be read.', { problems });
}

export function notFound(): ServiceError {
  return usualError('not-found');
}

/** `note` gets what is no HTTP: Fastify never sees it, and probes for request smuggling are among it. */
export function answerBadHttp(
  error: NodeJS.ErrnoException,
  socket: Socket,
  note: (facts: { readonly code: string; readonly address: string }) => void,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  note({ code: error.code ?? 'unknown', address: plainAddress(socket.remoteAddress ?? '') });
  const status =
    error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400;
  const reason = STATUS_CODES[status] ?? '';
  const body = JSON.stringify({ status: 'error', error: { code: status, message: reason, details: [] } });
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Type: application/json; charset=utf-8\r\n` +
      'Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  socket.setTimeout(connectionLimits.lingerMs);
}
