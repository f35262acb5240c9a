// Tests of the deactivation rule: each of its sentences, and the limits of windows.
import { describe, expect, it } from 'vitest';
import {
  type FailurePolicy,
  type FailureWindow,
  countFailure,
  endOfWindow,
} from '../../src/webhooks/sending/failure-window.ts';
import { dayMs, firstFailure } from './failure-window-kit.ts';

/** Day n of the rule is from n − 1 to n days after the first failure. */
const after = (days: number) => firstFailure + Math.round(days * dayMs);

const policyOf = (numberOfFailures: number, daysInPast: number): FailurePolicy => ({
  numberOfFailures,
  daysInPast,
});
const fiveInFive = policyOf(5, 5);

/** Counts one failure after another, until one of them deactivates. */
function replay(failures: readonly { policy: FailurePolicy; at: number }[]) {
  let window: FailureWindow | null = null;
  for (const { policy, at } of failures) {
    const counted = countFailure(policy, window, at);
    window = counted.window;
    if (counted.deactivates) return { window, deactivatedAt: at };
  }
  return { window, deactivatedAt: null };
}

type Row = {
  sentence: string;
  policy?: FailurePolicy;
  /** Days after the first failure. */
  failures: number[];
  /** Days after the first failure; null if the webhook is still active at the end. */
  deactivatedAt: number | null;
  window: { start: number; count: number };
};

const rule: Row[] = [
  {
    sentence: '`numberOfFailures` failures occur within a window of `daysInPast` days → deactivated',
    policy: policyOf(3, 2),
    failures: [0, 0.5, 1.9],
    deactivatedAt: 1.9,
    window: { start: 0, count: 3 },
  },
  {
    sentence: 'a window that ends with fewer failures than `numberOfFailures` → active',
    policy: policyOf(3, 2),
    failures: [0, 1.9, 2.1, 3],
    deactivatedAt: null,
    window: { start: 2.1, count: 2 },
  },
  {
    sentence: 'A failure after the window ends starts a new window.',
    policy: policyOf(3, 2),
    failures: [0, 1.9, 9],
    deactivatedAt: null,
    window: { start: 9, count: 1 },
  },
  {
    sentence: 'the window starts at the first failure',
    failures: [0, 2, 3, 4],
    deactivatedAt: null,
    window: { start: 0, count: 4 },
  },
  {
    sentence:
      'With a policy of 5 failures in 5 days, 1 failure per day for 5 days deactivates the webhook on the fifth day.',
    failures: [0, 1.2, 2.4, 3.6, 4.8],
    deactivatedAt: 4.8,
    window: { start: 0, count: 5 },
  },
  {
    sentence: '3 failures on day 1 and 2 on day 2 deactivate it on day 2.',
    failures: [0, 0.1, 0.2, 1.1, 1.2],
    deactivatedAt: 1.2,
    window: { start: 0, count: 5 },
  },
  {
    sentence: '2 failures on day 1 and 2 on day 3 with none on days 4 and 5 do not deactivate it.',
    failures: [0, 0.1, 2.1, 2.2],
    deactivatedAt: null,
    window: { start: 0, count: 4 },
  },
  {
    sentence: 'A failure on day 6 starts a new 5-day window.',
    failures: [0, 0.1, 2.1, 2.2, 5.5],
    deactivatedAt: null,
    window: { start: 5.5, count: 1 },
  },
  {
    sentence:
      '3 more failures in that new window then deactivate it. (1 + 3 are 4: the rule of 5 binds, it stays active)',
    failures: [0, 0.1, 2.1, 2.2, 5.5, 6, 7, 8],
    deactivatedAt: null,
    window: { start: 5.5, count: 4 },
  },
  {
    sentence: '3 more failures in that new window then deactivate it. (2 + 3 are 5: deactivated)',
    failures: [0, 0.1, 2.1, 2.2, 5.5, 5.6, 6, 7, 8],
    deactivatedAt: 8,
    window: { start: 5.5, count: 5 },
  },
];

const ms = 1 / dayMs;
const limits: Row[] = [
  {
    sentence: 'the last millisecond of a window is inside it',
    failures: [0, 1, 2, 3, 5 - ms],
    deactivatedAt: 5 - ms,
    window: { start: 0, count: 5 },
  },
  {
    sentence: 'a failure exactly at the end opens a new window',
    failures: [0, 1, 2, 3, 5],
    deactivatedAt: null,
    window: { start: 5, count: 1 },
  },
  {
    sentence: 'a new window has the same length',
    failures: [0, 7, 8, 9, 10, 12 - ms],
    deactivatedAt: 12 - ms,
    window: { start: 7, count: 5 },
  },
  {
    sentence: 'windows do not slide: five failures within five days may be in two windows',
    failures: [0, 3, 4, 4.5, 5, 6],
    deactivatedAt: null,
    window: { start: 5, count: 2 },
  },
  {
    sentence: 'one failure too few',
    failures: [0, 0, 0, 0],
    deactivatedAt: null,
    window: { start: 0, count: 4 },
  },
  {
    sentence: 'simultaneous failures all count',
    failures: [0, 0, 0, 0, 0],
    deactivatedAt: 0,
    window: { start: 0, count: 5 },
  },
  {
    sentence: 'with numberOfFailures 1 the first failure deactivates',
    policy: policyOf(1, 5),
    failures: [0],
    deactivatedAt: 0,
    window: { start: 0, count: 1 },
  },
  {
    sentence: 'the longest window lasts 365 times 24 hours',
    policy: policyOf(2, 365),
    failures: [0, 365, 730 - ms],
    deactivatedAt: 730 - ms,
    window: { start: 365, count: 2 },
  },
  {
    sentence: 'a clock that was set back neither opens nor moves a window',
    policy: policyOf(3, 1),
    failures: [0, -40, 1 - ms],
    deactivatedAt: 1 - ms,
    window: { start: 0, count: 3 },
  },
];

describe.each([
  ['the rule', rule],
  ['the limits of windows', limits],
])('%s', (_of, rows) => {
  // Not `$sentence`, which would be truncated.
  it.each(rows.map((row) => [row.sentence, row] as const))('%s', (_sentence, row) => {
    const { policy = fiveInFive, failures, deactivatedAt, window } = row;
    expect(replay(failures.map((days) => ({ policy, at: after(days) })))).toEqual({
      window: { start: after(window.start), count: window.count },
      deactivatedAt: deactivatedAt === null ? null : after(deactivatedAt),
    });
  });
});

describe('the settings in force at each failure decide', () => {
  const four = { start: firstFailure, count: 4 };

  it.each([
    ['a lower number deactivates at the next failure', policyOf(2, 5), 4.5, { count: 5 }, true],
    ['a higher number allows more', policyOf(6, 5), 4.5, { count: 5 }, false],
    ['a shorter window has ended', policyOf(5, 4), 4, { start: after(4), count: 1 }, false],
    ['a longer window is open again', policyOf(5, 7), 6.5, { count: 5 }, true],
    [
      'both lower: failures of an ended window do not count',
      policyOf(2, 1),
      4.5,
      { start: after(4.5), count: 1 },
      false,
    ],
  ])('%s', (_name, policy, days, window, deactivates) => {
    expect(countFailure(policy, four, after(days))).toEqual({ window: { ...four, ...window }, deactivates });
  });

  it('the end of a window changes with them', () => {
    expect(endOfWindow(fiveInFive, four)).toBe(after(5));
    expect(endOfWindow(policyOf(5, 365), four)).toBe(after(365));
  });
});

it('the given window is not modified', () => {
  const window = Object.freeze({ start: firstFailure, count: 1 });
  expect(countFailure(fiveInFive, window, after(1)).window).toEqual({ start: firstFailure, count: 2 });
});
