// Tests of the deactivation of webhooks: which failures count, for how long, and what is discarded.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { perTest } from '../kit/cleanup.ts';
import { bodyOf, quick, startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';
import { createTestStore } from '../kit/store.ts';

const hooks = perTest(startHooks);

const start = () => hooks.runtime.now();

describe('too many failures', () => {
  beforeEach(() => hooks.act('settings', { ...quick, notificationAttempts: '1' }));
  const fail = async () => {
    hooks.answerWith(500);
    await hooks.deliver();
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
    await hooks.deliver();
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

describe('a failure that would deactivate the webhook', () => {
  /** Runs once, before the update that deactivates the webhook: the first one after the attempt. */
  let interfere: () => Promise<unknown>;
  let id: string;
  beforeEach(async () => {
    await hooks.close();
    const store = await createTestStore();
    interfere = () => Promise.resolve();
    const update: Store['update'] = async (rule) => {
      if (hooks.arrivals.length === 1) {
        const run = interfere;
        interfere = () => Promise.resolve();
        await run();
      }
      return store.update(rule);
    };
    Object.assign(hooks, await startHooks({ store: { ...store, update } }));
    await hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '1' });
    id = (await hooks.register({ changeTypes: 'Tested' })).id;
    await hooks.register({ changeTypes: 'WebhookDeactivated' });
    hooks.answerWith(500, 200);
  });
  const types = () => hooks.arrivals.map((sent) => bodyOf(sent).type);
  const fail = async () => {
    await hooks.deliver();
    await hooks.settle();
    expect(hooks.logLines.join('')).not.toContain('background task failed');
  };

  it('deactivates it', async () => {
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({ deactivatedBy: 'failures', failures: { count: 1 } });
    expect((await hooks.deliveriesOf(id)).deliveries).toMatchObject([{ state: 'failed' }]);
    expect(types()).toEqual(['Tested', 'WebhookDeactivated']);
  });

  it('is only counted if the settings allow more failures meanwhile', async () => {
    interfere = () => hooks.act('settings', { numberOfFailures: '2' });
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: { count: 1 } });
    expect((await hooks.deliveriesOf(id)).deliveries).toMatchObject([{ state: 'failed' }]);
    expect(types()).toEqual(['Tested']);
  });

  it('is not counted if an administrator deactivates the webhook meanwhile', async () => {
    interfere = () => hooks.act(`${id}/deactivate`);
    await fail();
    const byAdministrator = { deactivatedBy: 'administrator', failures: { count: 0 } };
    expect(await hooks.read(`/${id}`)).toMatchObject(byAdministrator);
    expect((await hooks.deliveriesOf(id)).deliveries).toMatchObject([{ state: 'failed' }]);
    expect(types()).toEqual(['Tested']);
  });

  it('is not counted if the webhook is deactivated and activated again meanwhile', async () => {
    interfere = async () => {
      await hooks.act(`${id}/deactivate`);
      await hooks.act(`${id}/activate`);
    };
    await fail();
    expect(await hooks.read(`/${id}`)).toMatchObject({ active: true, failures: { count: 0 } });
    expect((await hooks.deliveriesOf(id)).deliveries).toMatchObject([{ state: 'failed' }]);
    expect(types()).toEqual(['Tested']);
  });

  it('is dropped if the webhook is deleted meanwhile', async () => {
    interfere = () => hooks.act(`${id}/delete`);
    await fail();
    expect((await hooks.get(`/admin/services/webhooks/${id}`, hooks.administrator)).statusCode).toBe(404);
    expect(hooks.store.deliveries.pending()).toEqual({ count: 0, bytes: 0 });
    expect(types()).toEqual(['Tested']);
    expect((await hooks.get('/metrics')).body).toMatch(/^steward_webhook_failures_total 0$/m);
  });
});
