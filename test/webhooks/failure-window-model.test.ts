// Compares the deactivation rule with a slow model on random histories.
// FUZZ_RUNS raises the number of histories (default 10,000). fast-check prints its seed if the two differ.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type FailurePolicy,
  type FailureWindow,
  countFailure,
} from '../../src/webhooks/sending/failure-window.ts';
import { dayMs, firstFailure } from './failure-window-kit.ts';

type Event =
  | { kind: 'failure' | 'success' | 'activate'; days: number; ms: number }
  | { kind: 'policy'; policy: FailurePolicy };

/**
 * Few whole days, more or less a millisecond: many failures are at the end of a window, simultaneous, or earlier
 * than the last.
 */
const passing = { days: fc.constantFrom(0, 0, 0, 1, 1, 2, 3, -2), ms: fc.constantFrom(0, 0, 0, -1, 1) };
const policies = fc.record({
  numberOfFailures: fc.integer({ min: 1, max: 5 }),
  daysInPast: fc.integer({ min: 1, max: 4 }),
});
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('failure'), ...passing }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('success'), ...passing }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('activate'), ...passing }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('policy'), policy: policies }) },
);

type Failure = { at: number; policy: FailurePolicy };

/**
 * The window after the newest failure, computed from all failures since the window was last cleared: the first
 * failure opens a window of `daysInPast` × 24 h, a failure at or after its end opens a new one, and the settings at
 * each failure decide.
 */
function judge(failures: readonly Failure[]) {
  const opensNewAfter = (opener: Failure) => (failure: Failure) =>
    failure.at - opener.at >= failure.policy.daysInPast * 24 * 3600 * 1000;
  const windows: Failure[][] = [];
  let rest = failures;
  while (rest[0] !== undefined) {
    const next = rest.findIndex(opensNewAfter(rest[0]));
    windows.push(rest.slice(0, next === -1 ? rest.length : next));
    rest = next === -1 ? [] : rest.slice(next);
  }
  const newest = windows.at(-1) ?? [];
  const deactivates = newest.length >= (newest.at(-1)?.policy.numberOfFailures ?? Infinity);
  return { windows: windows.length, start: newest[0]?.at, count: newest.length, deactivates };
}

it('agrees with the model on random histories', () => {
  const runs = Math.max(10_000, Number(process.env.FUZZ_RUNS ?? 0));
  const seen = { deactivated: 0, reopened: 0, active: 0 };
  const histories = fc.array(event, { minLength: 1, maxLength: 20, size: 'max' });
  const property = fc.property(policies, histories, (firstPolicy, history) => {
    let policy = firstPolicy;
    let at = firstFailure;
    let window: FailureWindow | null = null;
    let failures: Failure[] = [];
    const actual: unknown[] = [];
    const expected: unknown[] = [];
    for (const event of history) {
      if (event.kind === 'policy') {
        policy = event.policy;
        continue;
      }
      at += event.days * dayMs + event.ms;
      if (event.kind === 'activate') {
        window = null;
        failures = [];
      }
      if (event.kind !== 'failure') continue;
      const counted = countFailure(policy, window, at);
      window = counted.window;
      actual.push({ ...counted.window, deactivates: counted.deactivates });
      failures.push({ at, policy });
      const { windows, ...judged } = judge(failures);
      expected.push(judged);
      seen[judged.deactivates ? 'deactivated' : 'active'] += 1;
      if (windows > 1 && judged.count === 1) seen.reopened += 1;
    }
    expect(actual).toEqual(expected);
  });
  fc.assert(property, { numRuns: runs });
  for (const [kind, times] of Object.entries(seen))
    expect(times, `too few failures of the kind: ${kind}`).toBeGreaterThan(runs / 2);
}, 300_000);
