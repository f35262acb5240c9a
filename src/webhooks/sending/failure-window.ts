// Decides when failed deliveries deactivate a webhook.
//
// A failure is a delivery whose attempts have all failed. The first failure of a webhook opens a window, which
// lasts `daysInPast` times 24 hours. A failure before the end of the window is counted in it. The failure that
// brings the count to `numberOfFailures` deactivates the webhook. A failure at or after the end opens a new window
// and is its first failure. Nothing else changes a window: a success does not, and neither does its end; only
// activating the webhook clears it.
//
// A webhook is failing while its window has at least half of `numberOfFailures`. When that is reached, a warning is
// published, once for each window; the next delivery that succeeds is the recovery.
//
// The stored window consists of its start and its count. Its end is computed at each failure from the settings of
// that moment. Changed settings therefore lengthen or shorten an open window, and lower limits deactivate no
// webhook before its next failure.
import { notAudited } from '../../lib/audit-fields.ts';
import type { Reader, Table } from '../../store/state.ts';
import type { Transaction } from '../../store/transaction.ts';
import { dayMs } from '../../lib/runtime.ts';

export type FailurePolicy = { readonly numberOfFailures: number; readonly daysInPast: number };

export type FailureWindow = { readonly start: number; readonly count: number };

/** A table of its own: a failure that is counted does not change the webhook, so nobody has to decide again. */
export const failureWindows: Table<FailureWindow & { readonly webhookId: string }> = {
  name: 'failureWindows',
  keyOf: ({ webhookId }) => webhookId,
  defaults: {},
  auditFields: notAudited,
};

export function failureWindowOf(reader: Reader, webhookId: string): FailureWindow | null {
  return reader.get(failureWindows, webhookId) ?? null;
}

export function clearFailures(transaction: Transaction, webhookId: string): void {
  if (failureWindowOf(transaction, webhookId)) transaction.remove(failureWindows, webhookId);
}

export function countFailure(
  policy: FailurePolicy,
  window: FailureWindow | null,
  at: number,
): { readonly window: FailureWindow; readonly deactivates: boolean } {
  // This does not compare the start: after the clock is set back, a failure must still count.
  const isOpen = window !== null && at < endOfWindow(policy, window);
  const counted = isOpen ? { start: window.start, count: window.count + 1 } : { start: at, count: 1 };
  // Not `===`: the count may already exceed a limit that was lowered.
  return { window: counted, deactivates: counted.count >= policy.numberOfFailures };
}

/** Whether the failures in the window are at least half of those that deactivate the webhook. */
export function isFailing({ numberOfFailures }: FailurePolicy, { count }: FailureWindow): boolean {
  return 2 * count >= numberOfFailures;
}

export function endOfWindow(policy: FailurePolicy, window: FailureWindow): number {
  return window.start + policy.daysInPast * dayMs;
}
