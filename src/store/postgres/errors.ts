// What errors of PostgreSQL and of its client mean, and how the store answers them.
import pg from 'pg';
import { ServiceError } from '../../lib/errors.ts';

export const programProblem =
  'a newer version of the program has changed the database, so this version must not write to it';

/** Not 53200 and 53400: one statement needs more memory or temporary files than it may use. */
const downStates = /^(08|28|53(?![24]00)|57(?!014)|58|3D000|25006)/;
const downMessages = /^(Connection terminated|timeout expired|Query read timeout|Client (has|was) )/;

/** Whether the database is unavailable, as opposed to a faulty query. */
export function isDown(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return downStates.test(error.code ?? '');
  const { code, message, errors } = error as { code?: unknown; message?: string; errors?: unknown[] };
  // An AggregateError: the host name has several addresses, and connecting to each has failed.
  if (Array.isArray(errors)) return errors.every(isDown);
  if (isTlsFailure(error)) return true;
  return (typeof code === 'string' && /^E(?!RR_)[A-Z_]+$/.test(code)) || downMessages.test(message ?? '');
}

/** What the database lacks, such as space on its disk. Other reasons may name addresses and roles, which only the log has. */
export function shortageOf(failure: Error): string[] {
  return failure instanceof pg.DatabaseError && failure.code?.startsWith('53') ? [failure.message] : [];
}

/** Whether the connection cannot be encrypted, mostly because the certificate of the server is not trusted. */
export function isTlsFailure(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: string };
  const isTls = typeof code === 'string' && /CERT|^UNABLE_TO_|^ERR_(SSL|TLS)_/.test(code);
  return isTls || message === 'The server does not support SSL connections';
}

/** Whether the server refuses another connection: it has too many, or the password of the role was replaced. */
export function isRefused(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ['53300', '28000', '28P01'].includes(error.code ?? '');
}

/** Whether no connection of the pool became free in time. The database may be fine. */
export function isWaitTooLong(error: unknown): boolean {
  return (error as Partial<Error>).message === 'timeout exceeded when trying to connect';
}

/** Whether a statement needed too much time or memory, or a transaction was aborted, although the database is available. */
export function isBusy(error: unknown): boolean {
  const busyStates = ['55P03', '57014', '53200', '53400'];
  const isTooMuch = error instanceof pg.DatabaseError && busyStates.includes(error.code ?? '');
  return isTooMuch || isAborted(error);
}

/** Whether PostgreSQL aborted the transaction: it conflicted with another, or was idle too long. It may be repeated. */
export function isAborted(error: unknown): boolean {
  return error instanceof pg.DatabaseError && ['40001', '40P01', '25P03'].includes(error.code ?? '');
}

export function busy(cause?: unknown): ServiceError {
  const error = new ServiceError('unavailable', 'The database is busy.', { retryAfterSeconds: 5 });
  return Object.assign(error, { cause });
}

export function outdatedProgram(): ServiceError {
  const message = `The server cannot write: ${programProblem}.`;
  return new ServiceError('unavailable', message, { retryAfterSeconds: 5 });
}
