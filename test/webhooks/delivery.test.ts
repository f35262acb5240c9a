// Tests of the rules that the stores share: the order, the due time and the retention of deliveries.
import { describe, expect, it } from 'vitest';
import {
  type Attempt,
  type Delivery,
  discard,
  endAttempt,
  isRecoverable,
  withRedelivery,
  newDelivery,
  nextAttemptAt,
  priorityOf,
  waitingSince,
} from '../../src/webhooks/queue/delivery.ts';
import { webhookSettings } from '../../src/webhooks/settings.ts';

const settings = webhookSettings.initial;
const event = { id: 'event', type: 'Tested', timestamp: 1000, service: null, data: '{}' };
const first = newDelivery({ id: 'first', webhookId: 'hook', event, isPing: false }, 1000);
const ping = newDelivery({ id: 'ping', webhookId: 'hook', event, isPing: true }, 1000);
const attemptOf = (error: string | null): Attempt => ({
  when: 2000,
  durationMs: 300,
  status: null,
  error,
  response: null,
});
const failed = attemptOf('It failed.');
const retry = endAttempt(first, failed, settings, true);

it.each<[string, Delivery, number]>([
  ['a ping', ping, 0],
  ['a retry', retry, 1],
  ['a first attempt', first, 2],
])('the priority of %s is %3$i', (_what, delivery, priority) => {
  expect(priorityOf(delivery)).toBe(priority);
});

describe('the next attempt', () => {
  it('of a new delivery is due when it is created', () => {
    expect([waitingSince(first), nextAttemptAt(first, settings)]).toEqual([1000, 1000]);
  });

  it('of a retry is due after the wait of the settings, from the end of the last attempt', () => {
    expect([waitingSince(retry), nextAttemptAt(retry, settings)]).toEqual([2300, 7300]);
    expect(nextAttemptAt(retry, { ...settings, notificationElapsedTimeInSeconds: 1 })).toBe(3300);
  });

  it.each<[string, Delivery]>([
    ['delivered', endAttempt(first, attemptOf(null), settings, true)],
    ['failed', endAttempt(ping, failed, settings, true)],
    ['discarded', discard(retry, 9000)],
  ])('of a %s delivery does not exist', (state, delivery) => {
    expect(delivery.state).toBe(state);
    expect(nextAttemptAt(delivery, settings)).toBeNull();
  });
});

it('a delivery can be recovered that failed, was discarded or was missed, unless it is a ping or was redelivered', () => {
  const failedOne = { ...first, state: 'failed' as const };
  const recoverable = [failedOne, discard(retry, 9000), { ...first, state: 'missed' as const }];
  expect(recoverable.map(isRecoverable)).toEqual([true, true, true]);
  const others = [
    first,
    retry,
    { ...first, state: 'delivered' as const },
    { ...ping, state: 'failed' as const },
    withRedelivery(failedOne, 'other'),
  ];
  expect(others.filter(isRecoverable)).toEqual([]);
});

it('a failed attempt of an inactive webhook discards the delivery', () => {
  expect(endAttempt(first, failed, settings, false)).toEqual({
    ...first,
    state: 'discarded',
    endedAt: 2300,
    attempts: [failed],
  });
});
