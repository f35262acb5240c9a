// When failed deliveries deactivate a webhook (spec 3.2, contract 5).
//
// A failure is a delivery whose attempts are all spent. A webhook without a window gets one at its first failure: it starts at that
// moment and lasts `daysInPast` times 24 hours. A failure before the end is counted in it, and the one that brings the count to
// `numberOfFailures` deactivates; a failure at or after the end leaves the old window behind and is the first of a new one. Nothing else
// moves a window: a success leaves it as it is, its end passes unnoticed until the next failure, and only activating clears it.
//
// What is kept is the start and the count. The end is worked out at each failure from the settings of that moment, so a policy that was
// changed stretches or shortens a window that is open, and one that was lowered deactivates nothing before the next failure.

export type FailurePolicy = { readonly numberOfFailures: number; readonly daysInPast: number };

export type FailureWindow = { readonly start: number; readonly count: number };

const dayMs = 24 * 60 * 60 * 1000;

export function countFailure(
  policy: FailurePolicy,
  window: FailureWindow | null,
  at: number,
): { readonly window: FailureWindow; readonly deactivates: boolean } {
  // Only the end is asked for: a failure that seems older than the start, because a clock went back, is counted all the same.
  const isOpen = window !== null && at < endOfWindow(policy, window);
  const counted = isOpen ? { start: window.start, count: window.count + 1 } : { start: at, count: 1 };
  // Not only on reaching the number: a policy that was lowered meanwhile may have been passed already.
  return { window: counted, deactivates: counted.count >= policy.numberOfFailures };
}

/** The first moment that is no longer inside. */
export function endOfWindow(policy: FailurePolicy, window: FailureWindow): number {
  return window.start + policy.daysInPast * dayMs;
}
