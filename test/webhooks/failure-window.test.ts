// The sentences of the deactivation rule, with a policy of 5 failures in 5 days, and the cases that they leave open.
import { expect, it } from 'vitest';
import {
  type FailurePolicy,
  type FailureWindow,
  countFailure,
} from '../../src/webhooks/sending/failure-window.ts';
import { dayMs } from '../../src/lib/runtime.ts';

/** A realistic time: 2026-01-01. */
const firstFailure = 1_767_225_600_000;

/** Day n of the rule is from n − 1 to n days after the first failure. */
const after = (days: number) => firstFailure + Math.round(days * dayMs);

type Row = {
  sentence: string;
  /** Days after the first failure. Only the last one may deactivate the webhook. */
  failures: number[];
  deactivates: boolean;
  window: { start: number; count: number };
};

const rule: Row[] = [
  {
    sentence: '1 failure per day for 5 days deactivates the webhook on the fifth day.',
    failures: [0, 1.2, 2.4, 3.6, 4.8],
    deactivates: true,
    window: { start: 0, count: 5 },
  },
  {
    sentence: '3 failures on day 1 and 2 on day 2 deactivate it on day 2.',
    failures: [0, 0.1, 0.2, 1.1, 1.2],
    deactivates: true,
    window: { start: 0, count: 5 },
  },
  {
    sentence: '2 failures on day 1 and 2 on day 3 with none on days 4 and 5 do not deactivate it.',
    failures: [0, 0.1, 2.1, 2.2],
    deactivates: false,
    window: { start: 0, count: 4 },
  },
  {
    sentence: 'A failure on day 6 starts a new 5-day window.',
    failures: [0, 0.1, 2.1, 2.2, 5.5],
    deactivates: false,
    window: { start: 5.5, count: 1 },
  },
  {
    sentence:
      '3 more failures in that new window then deactivate it. (1 + 3 are 4: the rule of 5 binds, it stays active)',
    failures: [0, 0.1, 2.1, 2.2, 5.5, 6, 7, 8],
    deactivates: false,
    window: { start: 5.5, count: 4 },
  },
  {
    sentence: '3 more failures in that new window then deactivate it. (2 + 3 are 5: deactivated)',
    failures: [0, 0.1, 2.1, 2.2, 5.5, 5.6, 6, 7, 8],
    deactivates: true,
    window: { start: 5.5, count: 5 },
  },
];

// Not `$sentence`, which would be truncated.
it.each(rule.map((row) => [row.sentence, row] as const))('%s', (_sentence, row) => {
  let window: FailureWindow | null = null;
  const deactivates = row.failures.map((days) => {
    const counted = countFailure({ numberOfFailures: 5, daysInPast: 5 }, window, after(days));
    window = counted.window;
    return counted.deactivates;
  });
  expect(window).toEqual({ start: after(row.window.start), count: row.window.count });
  expect(deactivates).toEqual(
    row.failures.map((_days, index) => row.deactivates && index === row.failures.length - 1),
  );
});

it.each<[string, FailurePolicy, number, { start: number; count: number }]>([
  [
    'the end of its window opens a new one',
    { numberOfFailures: 5, daysInPast: 2 },
    2,
    { start: 2, count: 1 },
  ],
  ['a clock that was set back counts', { numberOfFailures: 5, daysInPast: 2 }, -2, { start: 0, count: 4 }],
  ['a longer window counts', { numberOfFailures: 5, daysInPast: 3 }, 2, { start: 0, count: 4 }],
  ['a lower limit counts and deactivates', { numberOfFailures: 2, daysInPast: 2 }, 1, { start: 0, count: 4 }],
])('a failure at %s', (_what, policy, days, { start, count }) => {
  const counted = countFailure(policy, { start: after(0), count: 3 }, after(days));
  expect(counted.window).toEqual({ start: after(start), count });
  expect(counted.deactivates).toBe(policy.numberOfFailures === 2);
});
