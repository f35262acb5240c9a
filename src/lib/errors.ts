// The one error class, which each protocol maps to its own form. Any other error is a defect of the server: the
// server logs it and reveals nothing in the answer.

export type ErrorKind =
  | 'invalid'
  | 'wrong-credentials'
  | 'token-missing'
  | 'token-invalid'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'conflict'
  | 'too-large'
  | 'unsupported-media-type'
  | 'too-many-requests'
  | 'read-only'
  | 'unavailable';

/** What most errors of a kind say. */
export const usualMessages: Readonly<Record<ErrorKind, string>> = {
  invalid: 'Invalid or missing input parameters.',
  'wrong-credentials': 'Unable to generate token.',
  'token-missing': 'Token required.',
  'token-invalid': 'Invalid token.',
  forbidden: 'This needs the role administrator.',
  'not-found': 'There is nothing at this address.',
  'method-not-allowed': 'The method is not allowed here.',
  conflict: 'The request conflicts with the current state.',
  'too-large': 'The request is too large.',
  'unsupported-media-type': 'The content type of the request is not supported.',
  'too-many-requests': 'Too many sign-in attempts.',
  'read-only': 'The system is in read-only mode.',
  unavailable: 'The server is temporarily unavailable.',
};

export type Problem = {
  readonly field?: string;
  /** The subject of the sentence is the field: `must be true or false.` */
  readonly message: string;
  /** It may be gone in a moment, without any change of the request. */
  readonly isTransient?: boolean;
};

/** A request may have any number of mistakes. Reporting more of them would cost much and help nobody. */
export const maxProblems = 200;

export function formatProblem({ field, message }: Problem): string {
  return field === undefined ? message : `${field}: ${message}`;
}

export function problemsOf(field: string, messages: readonly string[]): Problem[] {
  return messages.map((message) => ({ field, message }));
}

type ErrorOptions = {
  problems?: readonly Problem[];
  retryAfterSeconds?: number;
  allow?: readonly string[];
  /** The element of a SOAP request that caused the error. */
  element?: string | undefined;
  /** The message in the words of a page, which does not name fields of the API. The page shows no problems then. */
  onPage?: string | undefined;
};

export class ServiceError extends Error {
  readonly kind: ErrorKind;
  readonly problems: readonly Problem[];
  readonly retryAfterSeconds: number | undefined;
  readonly allow: readonly string[] | undefined;
  readonly element: string | undefined;
  readonly onPage: string | undefined;

  constructor(kind: ErrorKind, message: string, options: ErrorOptions = {}) {
    super(message);
    this.name = 'ServiceError';
    this.kind = kind;
    this.problems = options.problems ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
    this.element = options.element;
    this.onPage = options.onPage;
  }
}

export function usualError(kind: ErrorKind, options?: ErrorOptions): ServiceError {
  return new ServiceError(kind, usualMessages[kind], options);
}

export function errorHeaders({ retryAfterSeconds, allow }: ServiceError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (retryAfterSeconds !== undefined) headers['retry-after'] = String(retryAfterSeconds);
  if (allow !== undefined) headers.allow = allow.join(', ');
  return headers;
}

export function databaseUnreachable(): ServiceError {
  return new ServiceError('unavailable', 'The database cannot be reached.', { retryAfterSeconds: 5 });
}

export function isUnavailable(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.kind === 'unavailable';
}

export function invalid(problems: readonly Problem[]): ServiceError {
  return usualError('invalid', { problems });
}

export function refuseInvalid(problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalid(problems);
}

export function invalidField(field: string, message: string): ServiceError {
  return invalid([{ field, message }]);
}

export function methodNotAllowed(method: string, allow: readonly string[]): ServiceError {
  return new ServiceError('method-not-allowed', `The method ${method} is not allowed here.`, { allow });
}

export function tooLarge(problem: Problem): ServiceError {
  return usualError('too-large', { problems: [problem] });
}

/**
 * Optimistic locking: a change names the version that it was made from. Without one, the last change wins.
 * `whatWas` begins the sentence: `The service was`.
 */
export function requireVersion(whatWas: string, present: number, version: number | undefined): void {
  if (version === undefined || version === present) return;
  throw new ServiceError(
    'conflict',
    `${whatWas} changed meanwhile. Nothing was saved: check the values, and send them again.`,
  );
}
