// Read-only mode: what an administrator has set, and what it means for a request (contract 6).
import { ServiceError } from '../errors.ts';
import type { Cell, Reader } from '../store/transaction.ts';

export type SetMode = { readonly isReadOnly: boolean; readonly message: string };

export const setMode: Cell<SetMode> = { name: 'mode', initial: { isReadOnly: false, message: '' } };

export type Mode = {
  readonly isReadOnly: boolean;
  readonly reason: 'administrator' | null;
  readonly message: string;
};

export function currentMode(reader: Reader): Mode {
  const { isReadOnly, message } = reader.read(setMode);
  return { isReadOnly, reason: isReadOnly ? 'administrator' : null, message };
}

/** The gate every write passes. */
export function refuseWhileReadOnly({ isReadOnly, message }: Mode): void {
  if (!isReadOnly) return;
  throw new ServiceError('unavailable', 'The system is in read-only mode.', {
    details: message === '' ? [] : [message],
    retryAfterSeconds: 60,
  });
}
