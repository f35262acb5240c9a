// Read-only mode: the system is read-only while an upgrade job runs, or when an administrator has set it so.
import { ServiceError } from '../errors.ts';
import type { Cell, Reader } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';

export type ModeSetting = { readonly isReadOnly: boolean; readonly message: string };

export const modeSetting: Cell<ModeSetting> = {
  name: 'mode',
  initial: { isReadOnly: false, message: '' },
  auditFields: ({ isReadOnly, message }) => ({ isReadOnly, message }),
};

export type Mode = {
  readonly isReadOnly: boolean;
  readonly reason: 'upgrade' | 'administrator' | null;
  readonly message: string;
};

export function currentMode(reader: Reader, isJobRunning: boolean): Mode {
  const { isReadOnly, message } = reader.read(modeSetting);
  if (isJobRunning) {
    const ownMessage = isReadOnly ? message : '';
    return { isReadOnly: true, reason: 'upgrade', message: ownMessage || 'An upgrade job is in progress.' };
  }
  return { isReadOnly, reason: isReadOnly ? 'administrator' : null, message };
}

/** Read-only mode that is set during a job stays on when the job has ended. */
export function changeMode(
  transaction: Transaction,
  isReadOnly: boolean,
  message: string | undefined,
  isJobRunning: boolean,
): void {
  if (isJobRunning && !isReadOnly) {
    throw new ServiceError('conflict', 'The system stays read-only until the upgrade job has ended.');
  }
  transaction.write(modeSetting, { isReadOnly, message: message ?? transaction.read(modeSetting).message });
}

export function refuseWhileReadOnly({ isReadOnly, message }: Mode): void {
  if (!isReadOnly) return;
  throw new ServiceError('read-only', 'The system is in read-only mode.', {
    problems: message === '' ? [] : [{ message }],
    retryAfterSeconds: 60,
  });
}
