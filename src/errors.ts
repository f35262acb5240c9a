// The one error class. Each protocol maps every kind to its own form (rest/response.ts, soap/faults.ts).
// Any other error is a defect of the server: it is logged, and the answer reveals nothing.

export type ErrorKind =
  | 'invalid' // a bad or missing field, a malformed body
  | 'wrong-credentials'
  | 'token-missing'
  | 'token-invalid' // unknown, expired, or bound to another client
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'conflict'
  | 'too-large'
  | 'unsupported-media-type'
  | 'too-many-requests'
  | 'unavailable';

/** One thing that is wrong, and with which field. The protocols turn it into text. */
export type Problem = {
  readonly field?: string;
  /** A sentence whose subject is the field, where there is one: `must be true or false.` */
  readonly message: string;
};

/** `field: message`, as every answer shows it. */
export function formatProblem({ field, message }: Problem): string {
  return field === undefined ? message : `${field}: ${message}`;
}

/** The problems of a part of something, found under the field that holds it. */
export function problemsOf(field: string, messages: readonly string[]): Problem[] {
  return messages.map((message) => ({ field, message }));
}

export type ErrorOptions = {
  /** Every problem found. */
  problems?: readonly Problem[];
  /** For `too-many-requests` and `unavailable`: after how many seconds the caller may try again. */
  retryAfterSeconds?: number;
  /** For `method-not-allowed`. */
  allow?: readonly string[];
};

export class ServiceError extends Error {
  readonly kind: ErrorKind;
  readonly problems: readonly Problem[];
  readonly retryAfterSeconds: number | undefined;
  readonly allow: readonly string[] | undefined;

  constructor(kind: ErrorKind, message: string, options: ErrorOptions = {}) {
    super(message);
    this.name = 'ServiceError';
    this.kind = kind;
    this.problems = options.problems ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
  }
}

/** The HTTP headers of an error, the same in both protocols. */
export function errorHeaders({ retryAfterSeconds, allow }: ServiceError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(retryAfterSeconds);
  if (allow !== undefined) headers.allow = allow.join(', ');
  return headers;
}

/** Whether the same call may succeed later. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof ServiceError && error.kind === 'unavailable';
}

/** The usual refusal of bad fields: one message, and all problems. */
export function invalid(problems: readonly Problem[]): ServiceError {
  return new ServiceError('invalid', 'Invalid or missing input parameters.', { problems });
}

/** The refusal of one bad field. */
export function invalidField(field: string, message: string): ServiceError {
  return invalid([{ field, message }]);
}

export function methodNotAllowed(method: string, allow: readonly string[]): ServiceError {
  return new ServiceError('method-not-allowed', `The method ${method} is not allowed here.`, { allow });
}

export function tooLarge(problem: Problem): ServiceError {
  return new ServiceError('too-large', 'The request is too large.', { problems: [problem] });
}
