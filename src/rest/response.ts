// Answers: the response format, JSON, and errors in the contract's form (contract 2).
import type { FastifyReply } from 'fastify';
import { type ErrorKind, ServiceError, errorHeaders, formatProblem, tooLarge } from '../errors.ts';
import { maxParts, maxTextBytes } from './form.ts';
import { CachedJson, type Json, plainJson } from '../lib/json.ts';

export type Format = 'json' | 'pjson' | 'html';

/** `error.code` differs from the HTTP status only where clients of this family of APIs expect it to. */
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
  unavailable: { status: 503, code: 503 },
};

export type ErrorResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: {
    readonly status: 'error';
    readonly error: { readonly code: number; readonly message: string; readonly details: readonly string[] };
  };
};

/** Undefined stands for our own fault, of which nothing is revealed. */
export function toErrorResponse(error: ServiceError | undefined): ErrorResponse {
  const { status, code } = error ? table[error.kind] : { status: 500, code: 500 };
  const message = error?.message ?? 'The server failed to handle this request.';
  return {
    status,
    headers: error ? errorHeaders(error) : {},
    body: { status: 'error', error: { code, message, details: (error?.problems ?? []).map(formatProblem) } },
  };
}

/** What Fastify and its parsers throw, in our words; undefined for what is our own fault. */
export function asServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  const { statusCode, code } = error as { statusCode?: unknown; code?: unknown };
  if (statusCode === 413)
    return tooLarge({ message: limits[String(code)] ?? `The body must be at most ${maxTextBytes} bytes.` });
  if (statusCode === 415) return unsupportedMediaType();
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new ServiceError('invalid', 'The request body cannot be read.');
  }
  return undefined;
}

const limits: Record<string, string> = {
  FST_PARTS_LIMIT: `A form must have at most ${maxParts} parts.`,
  FST_FILES_LIMIT: `A form must have at most ${maxParts} parts.`,
  FST_REQ_FILE_TOO_LARGE: 'A part of the form is larger than a file may be.',
};

export function unsupportedMediaType(): ServiceError {
  return new ServiceError('unsupported-media-type', 'The content type of the request is not supported.', {
    problems: [
      {
        field: 'Content-Type',
        message: 'must be application/x-www-form-urlencoded or multipart/form-data.',
      },
    ],
  });
}

export function notFound(): ServiceError {
  return new ServiceError('not-found', 'There is nothing at this address.');
}

export function sendJson(
  reply: FastifyReply,
  status: number,
  answer: Json | CachedJson,
  format: Format = 'json',
): FastifyReply {
  return reply
    .code(status)
    .headers({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
    })
    .send(serialize(answer, format));
}

function serialize(answer: Json | CachedJson, format: Format): string | Buffer {
  if (format === 'pjson') return `${JSON.stringify(plainJson(answer), null, 2)}\n`;
  return answer instanceof CachedJson ? answer.bytes : JSON.stringify(answer);
}

/** `f` as given, or undefined when it is none of the allowed words. */
export function readFormat(f: string | undefined, accept: string | undefined): Format | undefined {
  const asked = f?.trim().toLowerCase() ?? '';
  if (asked === '') return prefersHtml(accept) ? 'html' : 'json';
  return asked === 'json' || asked === 'pjson' || asked === 'html' ? asked : undefined;
}

export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined || accept === '*/*') return false;
  return qualityOf('text/html', accept) > qualityOf('application/json', accept);
}

/** The quality of the most specific range of an Accept header that covers the type. */
function qualityOf(type: string, accept: string): number {
  const wildcards = [type, `${type.split('/')[0] ?? ''}/*`, '*/*'];
  const ranges = accept
    .toLowerCase()
    .split(',')
    .map((range) => range.split(';').map((part) => part.trim()));
  for (const wildcard of wildcards) {
    const range = ranges.find(([name]) => name === wildcard);
    if (range === undefined) continue;
    const q = range.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const quality = q === undefined ? 1 : Number(q);
    return quality >= 0 && quality <= 1 ? quality : 0;
  }
  return 0;
}
