// Errors in the OpenAPI document: one response for each status and cause, and the errors that a request may get.
import { toErrorResponse } from '../../http/errors.ts';
import { needsToken } from '../../lib/caller.ts';
import { type ErrorKind, ServiceError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { answerReference, errorAnswer } from '../answer.ts';
import type { Operation } from '../operation.ts';
import type { Resource } from '../resource.ts';

/** Kinds that share a status and a cause share a response. */
const refusals: Record<ErrorKind, { readonly response: string; readonly when: string }> = {
  invalid: {
    response: 'Invalid',
    when: 'The form or one of its fields is not acceptable; details lists every problem.',
  },
  'wrong-credentials': { response: 'WrongCredentials', when: 'The user name or the password is wrong.' },
  'token-missing': { response: 'TokenRefused', when: 'The request has no token.' },
  'token-invalid': {
    response: 'TokenRefused',
    when: 'The token or key is unknown, expired, or bound to another client.',
  },
  forbidden: { response: 'Forbidden', when: 'The caller may not do this.' },
  'not-found': {
    response: 'NotFound',
    when: 'The path leads nowhere, or to something that the caller may not see.',
  },
  'method-not-allowed': {
    response: 'MethodNotAllowed',
    when: 'The method is not one of those in Allow. Every path refuses methods that are not described here.',
  },
  conflict: {
    response: 'Conflict',
    when: 'The present state does not allow it; the message gives the reason.',
  },
  'too-large': {
    response: 'TooLarge',
    when: 'The body, a field, a file or all uploads together are too large.',
  },
  'unsupported-media-type': { response: 'UnsupportedMediaType', when: 'The body is not a form.' },
  'too-many-requests': {
    response: 'TooManyRequests',
    when: 'There were too many attempts to sign in, or too many passwords are being checked.',
  },
  'read-only': { response: 'Unavailable', when: 'The system is read-only.' },
  unavailable: {
    response: 'Unavailable',
    when: 'The server is overloaded or shutting down, or its store is unavailable.',
  },
};

const kinds = Object.keys(refusals) as ErrorKind[];

export function errorResponses(): { readonly [name: string]: Json } {
  const responses: Record<string, Json> = {};
  for (const { response } of Object.values(refusals)) responses[response] ??= responseOf(response);
  return { ...responses, InternalError: internalError };
}

function responseOf(response: string): Json {
  const causes = kinds.filter((kind) => refusals[kind].response === response);
  const bodies = causes.map((kind) => toErrorResponse(new ServiceError(kind, refusals[kind].when)).body);
  const examples = Object.fromEntries(causes.map((kind, index) => [kind, { value: bodies[index] ?? null }]));
  const headers = headersOf(causes);
  return {
    description: causes.map((kind) => refusals[kind].when).join(' '),
    ...(headers && { headers }),
    content: { 'application/json': { schema: answerReference(errorAnswer), examples } },
  };
}

const internalError: Json = {
  description: 'Any other error: a defect of the server, of which nothing is revealed.',
  content: {
    'application/json': { schema: answerReference(errorAnswer), example: toErrorResponse(undefined).body },
  },
};

function headersOf(causes: readonly ErrorKind[]): Json | undefined {
  if (causes.includes('method-not-allowed'))
    return { Allow: { description: 'The methods of the path.', schema: { type: 'string' } } };
  if (causes.includes('unavailable') || causes.includes('too-many-requests'))
    return {
      'Retry-After': { description: 'Seconds to wait before the next attempt.', schema: { type: 'integer' } },
    };
  return undefined;
}

export function refusalsOf(
  method: 'get' | 'post',
  { access, duringJob }: Resource | Operation,
  facts: { readonly hasIds: boolean; readonly operation: Operation | undefined },
): { readonly [status: string]: Json } {
  const { hasIds, operation } = facts;
  const writes = operation?.effect === 'writes';
  const met: ErrorKind[] = ['invalid', 'unavailable'];
  if (access !== 'anyone') met.push('token-invalid');
  if (needsToken(access) && access !== 'member') met.push('forbidden');
  if (hasIds) met.push('not-found');
  if (duringJob === 'closed' || (writes && needsToken(access))) met.push('conflict');
  if (method === 'post') met.push('too-large', 'unsupported-media-type');
  if (operation?.mayRefuseKeys) met.push('forbidden');
  if (operation) met.push(...operation.refusals);
  const entries = met.map((kind): [string, Json] => {
    const description =
      kind === 'forbidden' && needsToken(access) && access !== 'member' && `This needs the role ${access}.`;
    const $ref = `#/components/responses/${refusals[kind].response}`;
    return [
      String(toErrorResponse(new ServiceError(kind, '')).status),
      { $ref, ...(description && { description }) },
    ];
  });
  return { ...Object.fromEntries(entries), default: { $ref: '#/components/responses/InternalError' } };
}
