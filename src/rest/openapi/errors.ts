// Refusals in the OpenAPI document: one response for each status and cause, and which of them a request may meet (contract 2).
import { type ErrorKind, ServiceError } from '../../errors.ts';
import type { Operation, Resource } from '../resource.ts';
import type { Json } from '../../lib/json.ts';
import type { Schema } from './schemas.ts';
import { toErrorResponse } from '../../http/errors.ts';

/** Every kind of error belongs to one response; those that share a status and arise together share it. */
const refusals: Record<ErrorKind, { readonly response: string; readonly when: string }> = {
  invalid: {
    response: 'Invalid',
    when: 'The form or a field of it cannot be accepted; details lists every problem.',
  },
  'wrong-credentials': { response: 'WrongCredentials', when: 'The user name or the password is wrong.' },
  'token-missing': { response: 'TokenRefused', when: 'There is no token.' },
  'token-invalid': {
    response: 'TokenRefused',
    when: 'The token is unknown, expired, or bound to somebody else.',
  },
  forbidden: { response: 'Forbidden', when: 'The caller may not do this.' },
  'not-found': {
    response: 'NotFound',
    when: 'The path names nothing, or nothing that the caller may see.',
  },
  'method-not-allowed': {
    response: 'MethodNotAllowed',
    when: 'The method is not one of those in Allow. Any path answers so to a method that is not described here.',
  },
  conflict: {
    response: 'Conflict',
    when: 'The state of things does not allow it now; the message says why.',
  },
  'too-large': {
    response: 'TooLarge',
    when: 'The body, a field, a file or all uploads together are too large.',
  },
  'unsupported-media-type': { response: 'UnsupportedMediaType', when: 'The body is not a form.' },
  'too-many-requests': {
    response: 'TooManyRequests',
    when: 'There were too many attempts to sign in, or there are too many passwords to work on.',
  },
  unavailable: {
    response: 'Unavailable',
    when: 'Not now: the system is read-only, has too much to do, or is shutting down.',
  },
};

const kinds = Object.keys(refusals) as ErrorKind[];

export const errorSchema: Schema = {
  description: 'How every refusal reads, whatever its status.',
  type: 'object',
  properties: {
    status: { const: 'error' },
    error: {
      type: 'object',
      properties: {
        code: {
          type: 'integer',
          description: 'As the status, but 498 or 499 for tokens and 400 for wrong credentials.',
        },
        message: { type: 'string' },
        details: {
          type: 'array',
          items: { type: 'string' },
          description: 'Every problem found, each naming its field and what is allowed.',
        },
      },
      required: ['code', 'message', 'details'],
    },
  },
  required: ['status', 'error'],
};

const aError = { $ref: '#/components/schemas/Error' };

/** What `components.responses` holds. */
export function errorResponses(): { readonly [name: string]: Json } {
  const responses: Record<string, Json> = {};
  for (const { response } of Object.values(refusals)) responses[response] ??= responseOf(response);
  return { ...responses, OwnFault: ownFault };
}

function responseOf(response: string): Json {
  const causes = kinds.filter((kind) => refusals[kind].response === response);
  const bodies = causes.map((kind) => toErrorResponse(new ServiceError(kind, refusals[kind].when)).body);
  const examples = Object.fromEntries(causes.map((kind, index) => [kind, { value: bodies[index] ?? null }]));
  const headers = headersOf(causes);
  return {
    description: causes.map((kind) => refusals[kind].when).join(' '),
    ...(headers && { headers }),
    content: { 'application/json': { schema: aError, examples }, ...page },
  };
}

/** People are told the same on a page. */
const page = { 'text/html': { schema: { type: 'string' } } };

const ownFault: Json = {
  description: 'Anything else: a fault of the server itself, of which nothing is revealed.',
  content: { 'application/json': { schema: aError, example: toErrorResponse(undefined).body }, ...page },
};

function headersOf(causes: readonly ErrorKind[]): Json | undefined {
  if (causes.includes('method-not-allowed'))
    return { Allow: { description: 'The methods there are.', schema: { type: 'string' } } };
  if (causes.includes('unavailable') || causes.includes('too-many-requests'))
    return {
      'Retry-After': { description: 'Seconds until trying again makes sense.', schema: { type: 'integer' } },
    };
  return undefined;
}

/** The refusals a request may meet, by status. */
export function refusalsOf(
  method: 'get' | 'post',
  { access, duringJob }: Resource | Operation,
  facts: { readonly hasIds: boolean; readonly operation: Operation | undefined },
): { readonly [status: string]: Json } {
  const { hasIds, operation } = facts;
  const writes = operation?.effect === 'writes';
  const met: ErrorKind[] = ['invalid', 'unavailable'];
  if (access !== 'anyone') met.push('token-missing');
  if (access !== 'anyone' && access !== 'member') met.push('forbidden');
  if (hasIds) met.push('not-found');
  if (duringJob === 'closed' || (writes && access !== 'anyone')) met.push('conflict');
  if (method === 'post') met.push('too-large', 'unsupported-media-type');
  if (operation) met.push(...operation.refusals);
  const entries = met.map((kind): [string, Json] => {
    const description = kind === 'forbidden' && access !== 'anyone' && `This needs the role ${access}.`;
    const $ref = `#/components/responses/${refusals[kind].response}`;
    return [
      String(toErrorResponse(new ServiceError(kind, '')).status),
      { $ref, ...(description && { description }) },
    ];
  });
  return { ...Object.fromEntries(entries), default: { $ref: '#/components/responses/OwnFault' } };
}
