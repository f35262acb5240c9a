// The one error class. Each protocol maps every kind to its own form (rest/reply.ts, soap/envelope.ts);
// anything else that is thrown is our own fault and is answered without detail.

export type ErrorKind =
  | 'invalid' // a bad or missing field, a malformed body
  | 'wrong-credentials'
  | 'token-missing'
  | 'token-invalid' // unknown, expired, or bound to somebody else
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'conflict'
  | 'too-large'
  | 'unsupported-media-type'
  | 'too-many-requests'
  | 'unavailable';

export type ErrorOptions = {
  /** Every problem found, each naming its field and what is allowed. */
  details?: readonly string[];
  /** For `too-many-requests` and `unavailable`: when trying again makes sense. */
  retryAfterSeconds?: number;
  /** For `method-not-allowed`. */
  allow?: readonly string[];
};

export class ServiceError extends Error {
  readonly kind: ErrorKind;
  readonly details: readonly string[];
  readonly retryAfterSeconds: number | undefined;
  readonly allow: readonly string[] | undefined;

  constructor(kind: ErrorKind, message: string, options: ErrorOptions = {}) {
    super(message);
    this.name = 'ServiceError';
    this.kind = kind;
    this.details = options.details ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
  }
}

/** What HTTP says of an error in headers, whichever protocol answers. */
export function errorHeaders({ retryAfterSeconds, allow }: ServiceError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(retryAfterSeconds);
  if (allow !== undefined) headers.allow = allow.join(', ');
  return headers;
}

/** Whether trying again later makes sense. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.kind === 'unavailable';
}

/** The usual refusal of bad fields: one message, all problems in the details. */
export function invalid(problems: readonly string[]): ServiceError {
  return new ServiceError('invalid', 'Invalid or missing input parameters.', { details: problems });
}

export function methodNotAllowed(method: string, allow: readonly string[]): ServiceError {
  return new ServiceError('method-not-allowed', `The method ${method} is not allowed here.`, { allow });
}

export function tooLarge(detail: string): ServiceError {
  return new ServiceError('too-large', 'The request is too large.', { details: [detail] });
}
