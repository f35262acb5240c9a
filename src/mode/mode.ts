// Read-only mode: the system is read-only while an upgrade job runs, or when an administrator has set it so.
import { ServiceError, usualError } from '../lib/errors.ts';
import type { Cell, Reader } from '../store/state.ts';
import type { Transaction } from '../store/transaction.ts';

export type ModeSetting = {
  readonly isReadOnly: boolean;
  readonly message: string;
  /** Who has set it and when. Both are null until an administrator has set it. */
  readonly setBy: string | null;
  readonly setAt: number | null;
};

export const modeSetting: Cell<ModeSetting> = {
  name: 'mode',
  initial: { isReadOnly: false, message: '', setBy: null, setAt: null },
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
  return isReadOnly
    ? { isReadOnly, reason: 'administrator', message }
    : { isReadOnly, reason: null, message: '' };
}

type ModeChange = {
  readonly isReadOnly: boolean;
  /** Undefined keeps the message while the system stays read-only, and clears it otherwise. */
  readonly message: string | undefined;
  readonly by: string;
  readonly at: number;
};

/** Read-only mode that is set during a job stays on when the job has ended. */
export function changeMode(transaction: Transaction, change: ModeChange, isJobRunning: boolean): void {
  const { isReadOnly, by, at } = change;
  if (isJobRunning && !isReadOnly) {
    throw new ServiceError('conflict', 'The system stays read-only until the upgrade job has ended.');
  }
  const before = transaction.read(modeSetting);
  const message = change.message ?? (isReadOnly ? before.message : '');
  const { setBy, setAt } = before.isReadOnly === isReadOnly ? before : { setBy: by, setAt: at };
  transaction.write(modeSetting, { isReadOnly, message, setBy, setAt });
}

export function refuseWhileReadOnly({ isReadOnly, message }: Mode): void {
  if (!isReadOnly) return;
  throw usualError('read-only', {
    problems: message === '' ? [] : [{ message }],
    retryAfterSeconds: 60,
  });
}
