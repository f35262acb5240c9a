// Tests of attempts: their number, waits and timeouts, and the effect of changed settings.
import { describe, expect, it } from 'vitest';
import { RequestError } from '../../src/lib/request-error.ts';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';
import { onlyDeliveryOf } from './delivery-worker-kit.ts';

const hooks = perTest(startHooks);

const start = () => hooks.runtime.now();
const onlyDelivery = onlyDeliveryOf(() => hooks);

describe('attempts', () => {
  it.each([1, 2, 3, 4, 5])(
    'are made %i times, each after the configured wait',
    async (notificationAttempts) => {
      await hooks.act('settings', {
        notificationAttempts: String(notificationAttempts),
        notificationElapsedTimeInSeconds: '7',
      });
      const { id } = await hooks.register();
      hooks.answerWith(500);
      const from = start();
      await hooks.publish();
      await hooks.runtime.advance(3_600_000);
      // One more millisecond than configured, so that no wait is too short.
      const times = hooks.arrivals.map(({ at }) => at - from);
      expect(times).toEqual(Array.from({ length: notificationAttempts }, (_, n) => n * 7001));
      const delivery = await onlyDelivery(id);
      expect(delivery).toMatchObject({
        state: 'failed',
        nextAttemptAt: null,
        endedAt: from + (times.at(-1) ?? 0),
      });
      expect(delivery?.attempts).toHaveLength(notificationAttempts);
      expect(new Set(hooks.arrivals.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
      expect(new Set(hooks.arrivals.map(({ body }) => body)).size).toBe(1);
      expect(hooks.arrivals.map(({ headers }) => Number(headers['webhook-timestamp']))).toEqual(
        hooks.arrivals.map(({ at }) => Math.floor(at / 1000)),
      );
    },
  );

  it('end after the first success', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(503, { status: 204, body: Buffer.from('thanks') });
    const from = start();
    await hooks.deliver();
    expect(await onlyDelivery(id)).toEqual({
      id: expect.any(String) as string,
      webhookId: id,
      webhookName: 'hook 1',
      event: { id: expect.any(String) as string, type: 'Tested', timestamp: from },
      state: 'pending',
      createdAt: from,
      endedAt: null,
      nextAttemptAt: from + 5000,
      attempts: [
        { when: from, durationMs: 0, status: 503, error: 'The receiver answered 503.', response: '' },
      ],
    });
    await hooks.runtime.advance(5000);
    expect(hooks.arrivals).toHaveLength(1);
    await hooks.runtime.advance(1);
    const delivery = await onlyDelivery(id);
    expect(delivery).toMatchObject({ state: 'delivered', endedAt: from + 5001 });
    expect(delivery?.attempts[1]).toMatchObject({ status: 204, error: null, response: 'thanks' });
    await hooks.runtime.advance(3_600_000);
    expect(hooks.arrivals).toHaveLength(2);
  });

  it('succeed with a status from 200 to 299, and fail with others', async () => {
    const succeeded = [200, 201, 202, 204, 226, 299];
    const failed = [100, 199, 300, 301, 302, 304, 307, 400, 404, 410, 429, 500, 503];
    for (const status of [...succeeded, ...failed]) {
      const { id } = await hooks.register({ changeTypes: `Status${status}` });
      hooks.answerWith(status);
      await hooks.deliver({ changeType: `Status${status}` });
      const isSuccess = succeeded.includes(status);
      expect(await onlyDelivery(id)).toMatchObject({
        state: isSuccess ? 'delivered' : 'pending',
        attempts: [{ status, error: isSuccess ? null : `The receiver answered ${status}.` }],
      });
    }
  });

  it('record why the receiver could not be reached', async () => {
    const { id } = await hooks.register();
    hooks.httpClient.receiver = () => {
      throw new RequestError('The name hooks.example does not resolve.');
    };
    await hooks.deliver();
    expect((await onlyDelivery(id))?.attempts).toMatchObject([
      { status: null, error: 'The name hooks.example does not resolve.', response: null },
    ]);
  });

  it('follow at once if the wait is 0', async () => {
    await hooks.act('settings', { notificationElapsedTimeInSeconds: '0' });
    await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.runtime.advance(10);
    expect(hooks.arrivals).toHaveLength(3);
  });
});

describe('the timeout', () => {
  it('ends an attempt without a complete answer, and the wait begins at that moment', async () => {
    await hooks.act('settings', { notificationTimeOutInSeconds: '2' });
    const { id } = await hooks.register();
    const seen: { at: number; ended?: number }[] = [];
    hooks.httpClient.receiver = (request, signal) => {
      const entry: (typeof seen)[number] = { at: hooks.runtime.now() };
      seen.push(entry);
      signal.addEventListener('abort', () => (entry.ended = hooks.runtime.now()));
      return blackHole(request, signal, entry.at);
    };
    const from = start();
    await hooks.publish();
    await hooks.runtime.advance(60_000);
    expect(seen.map(({ at, ended }) => [at - from, (ended ?? 0) - from])).toEqual([
      [0, 2000],
      [7001, 9001],
      [14_002, 16_002],
    ]);
    expect((await onlyDelivery(id))?.attempts[0]).toEqual({
      when: from,
      durationMs: 2000,
      status: null,
      error: 'There was no complete answer within 2 seconds.',
      response: null,
    });
  });

  it('is the one of the settings at the start of the attempt', async () => {
    const { id } = await hooks.register();
    hooks.httpClient.receiver = blackHole;
    await hooks.deliver();
    await hooks.act('settings', { notificationTimeOutInSeconds: '1' });
    await hooks.runtime.advance(60_000);
    const { attempts = [] } = (await onlyDelivery(id)) ?? {};
    expect(attempts.map(({ durationMs, error }) => [durationMs, error])).toEqual([
      [10_000, 'There was no complete answer within 10 seconds.'],
      [1000, 'There was no complete answer within 1 second.'],
      [1000, 'There was no complete answer within 1 second.'],
    ]);
  });
});

describe('changed settings', () => {
  it('decide after each attempt whether another one follows', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.act('settings', { notificationAttempts: '2' });
    await hooks.runtime.advance(60_000);
    expect((await onlyDelivery(id))?.attempts).toHaveLength(2);
  });

  it.each([
    ['longer', '20', 20_001],
    ['shorter', '3', 3001],
    ['shorter than the time already waited', '1', 2000],
  ])('make a wait in progress %s', async (_what, notificationElapsedTimeInSeconds, next) => {
    await hooks.register();
    hooks.answerWith(500);
    const from = start();
    await hooks.publish();
    await hooks.runtime.advance(2000);
    await hooks.act('settings', { notificationElapsedTimeInSeconds });
    await hooks.runtime.advance(20_001 - 2000);
    expect((hooks.arrivals[1]?.at ?? 0) - from).toBe(next);
  });
});
