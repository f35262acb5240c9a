// Read-only mode: derived from a running job, or set by an administrator; and what it means for a request (contract 6).
import { ServiceError } from '../errors.ts';
import type { Cell, Reader, Transaction } from '../store/transaction.ts';

export type SetMode = { readonly isReadOnly: boolean; readonly message: string };

export const setMode: Cell<SetMode> = { name: 'mode', initial: { isReadOnly: false, message: '' } };

export type Mode = {
  readonly isReadOnly: boolean;
  readonly reason: 'upgrade' | 'administrator' | null;
  readonly message: string;
};

export function currentMode(reader: Reader, isJobRunning: boolean): Mode {
  const { isReadOnly, message } = reader.read(setMode);
  const own = isReadOnly ? message : '';
  if (isJobRunning)
    return { isReadOnly: true, reason: 'upgrade', message: own || 'An upgrade job is in progress.' };
  return { isReadOnly, reason: isReadOnly ? 'administrator' : null, message };
}

/** What is set while a job runs holds after it. */
export function changeMode(
  transaction: Transaction,
  isReadOnly: boolean,
  message: string | undefined,
  isJobRunning: boolean,
): void {
  if (isJobRunning && !isReadOnly) {
    throw new ServiceError('conflict', 'The system stays read-only until the upgrade job has ended.');
  }
  transaction.write(setMode, { isReadOnly, message: message ?? transaction.read(setMode).message });
}

/** The gate every write passes. */
export function refuseWhileReadOnly({ isReadOnly, message }: Mode): void {
  if (!isReadOnly) return;
  throw new ServiceError('unavailable', 'The system is in read-only mode.', {
    problems: message === '' ? [] : [{ message }],
    retryAfterSeconds: 60,
  });
}
