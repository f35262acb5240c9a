// Tests of the deactivation of webhooks: which failures count, for how long, and what is discarded.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { blackHole } from '../kit/http-client.ts';
import { type Hooks, quick, startHooks } from '../kit/hooks.ts';

let hooks: Hooks;
beforeEach(async () => {
  hooks = await startHooks();
});
afterEach(() => hooks.close());

const start = () => hooks.runtime.now();

describe('too many failures', () => {
  beforeEach(() => hooks.act('settings', { ...quick, notificationAttempts: '1' }));
  const fail = async () => {
    hooks.answerWith(500);
    await hooks.publish();
    await hooks.settle();
  };

  it('deactivate the webhook, and activating it resets the count', async () => {
    const { id } = await hooks.register();
    const windowStart = start();
    await fail();
    const window = { count: 1, windowStart, windowEnd: windowStart + 5 * 86_400_000 };
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: window });
    await hooks.runtime.advance(5 * 86_400_000 - 1);
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({
      active: false,
      deactivatedAt: hooks.runtime.now(),
      deactivatedBy: 'failures',
      failures: { ...window, count: 2 },
    });
    expect(await hooks.publish()).toMatchObject({ deliveries: 0 });
    await hooks.act(`${id}/activate`);
    expect(await hooks.read(`/${id}`)).toMatchObject({
      active: true,
      deactivatedBy: null,
      failures: { count: 0, windowStart: null, windowEnd: null },
    });
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: { count: 1 } });
  });

  it('are counted in a new window after the old one ended, which a success does not change', async () => {
    const { id } = await hooks.register();
    await fail();
    hooks.answerWith(200);
    await hooks.publish();
    await hooks.settle();
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 1 } });
    await hooks.runtime.advance(5 * 86_400_000);
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0, windowStart: null } });
    const windowStart = start();
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: { count: 1, windowStart } });
  });

  it('discard the pending deliveries', async () => {
    await hooks.act('settings', { numberOfFailures: '1', notificationTimeOutInSeconds: '1' });
    const { id } = await hooks.register();
    hooks.httpClient.receiver = blackHole;
    for (let n = 0; n < 6; n += 1) await hooks.publish();
    await hooks.runtime.advance(1000);
    const states = (await hooks.deliveriesOf(id)).deliveries.map(({ state }) => state);
    // Four attempts were in progress and fail; only the first failure counts.
    expect(states).toEqual(['discarded', 'discarded', 'failed', 'failed', 'failed', 'failed']);
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: false, failures: { count: 1 } });
  });

  it('include failed redeliveries but no pings', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500);
    for (let n = 0; n < 3; n += 1) await hooks.act(`${id}/ping`);
    await hooks.settle();
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0 } });
    await fail();
    const { deliveries } = await hooks.deliveriesOf(id);
    await hooks.act(`${id}/deliveries/${deliveries[0]?.id ?? ''}/redeliver`);
    await hooks.settle();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: false, failures: { count: 2 } });
  });
});
