// The deactivation rule: random histories against a slow model of spec 3.2 and contract 5.
// FUZZ_RUNS raises the number of histories (10,000 unless told); fast-check prints its seed when they disagree.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type FailurePolicy, type FailureWindow, countFailure } from '../../src/webhooks/failure-window.ts';
import { dayMs, firstFailure } from './failure-window-kit.ts';

type Event =
  | { kind: 'failure' | 'success' | 'activate'; days: number; ms: number }
  | { kind: 'policy'; policy: FailurePolicy };

/** Few days and whole ones, more or less a millisecond, so that many failures fall on a border, together or before the one before. */
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
 * What the contract says of the newest of all failures since the window was last cleared, from nothing but these: "The window opens at
 * the first failure and lasts `daysInPast` × 24 h; a failure at or after its end opens a new one; reaching `numberOfFailures` inside it
 * deactivates"; "the settings in force at each failure decide".
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
  for (const [what, times] of Object.entries(seen))
    expect(times, `too few failures of the kind: ${what}`).toBeGreaterThan(runs / 2);
}, 300_000);
