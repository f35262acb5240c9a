// Tests of deliveries whose webhook is edited, deactivated or deleted.
import { describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';
import { onlyDeliveryOf } from './delivery-worker-kit.ts';

const hooks = perTest(startHooks);

const onlyDelivery = onlyDeliveryOf(() => hooks);

/** Creates a webhook with an attempt in progress, which ends when `answer` is called. */
async function beginAttempt() {
  const { id } = await hooks.register();
  let answer: (status: number) => void = () => undefined;
  hooks.httpClient.receiver = () => new Promise((resolve) => (answer = resolve));
  await hooks.deliver();
  return { id, answer };
}

describe('a changed webhook', () => {
  it('gets retries at its new address, with its new name', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500, 200);
    await hooks.deliver();
    await hooks.act(`${id}/edit`, { hookUrl: 'https://other.example/', name: 'Renamed' });
    await hooks.runtime.advance(5001);
    expect(hooks.arrivals.map(({ url }) => url)).toEqual([
      'https://hooks.example/in',
      'https://other.example/',
    ]);
    expect(hooks.arrivals[1]?.body).toContain('"webhookName":"Renamed"');
  });

  it('gets nothing after it was deactivated, and its pending deliveries are discarded', async () => {
    const { id } = await hooks.register();
    hooks.answerWith(500);
    await hooks.deliver();
    await hooks.act(`${id}/deactivate`);
    const deactivatedAt = hooks.runtime.now();
    expect(await hooks.read(`/${id}`)).toMatchObject({
      active: false,
      deactivatedAt,
      deactivatedBy: 'administrator',
    });
    expect(await onlyDelivery(id)).toMatchObject({
      state: 'discarded',
      endedAt: deactivatedAt,
      nextAttemptAt: null,
    });
    await hooks.runtime.advance(3_600_000);
    await hooks.act(`${id}/activate`);
    await hooks.runtime.advance(3_600_000);
    expect(hooks.arrivals).toHaveLength(1);
    expect(await hooks.publish()).toMatchObject({ deliveries: 1 });
  });

  it.each<[string, number, string]>([
    ['a successful', 200, 'delivered'],
    ['a failed', 500, 'discarded'],
  ])('that was deactivated during %s attempt (%i) has its delivery %s', async (_how, status, state) => {
    const { id, answer } = await beginAttempt();
    await hooks.act(`${id}/deactivate`);
    expect(await onlyDelivery(id)).toMatchObject({ state: 'pending' });
    answer(status);
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state });
    expect(await hooks.read(`/${id}`)).toMatchObject({ failures: { count: 0 } });
  });

  it('gets no retry of a delivery from before it was deactivated and activated again', async () => {
    const { id, answer } = await beginAttempt();
    await hooks.act(`${id}/deactivate`);
    await hooks.act(`${id}/activate`);
    answer(500);
    await hooks.settle();
    expect(await onlyDelivery(id)).toMatchObject({ state: 'discarded' });
  });

  it('gets a ping that waited for a slot when it was deactivated', async () => {
    const { id } = await hooks.register();
    hooks.httpClient.receiver = blackHole;
    for (let n = 0; n < 4; n += 1) await hooks.publish();
    await hooks.settle();
    const { deliveryId } = await hooks.act<{ deliveryId: string }>(`${id}/ping`);
    await hooks.act(`${id}/deactivate`);
    hooks.httpClient.receiver = () => 200;
    await hooks.runtime.advance(10_000);
    expect(await hooks.read(`/${id}/deliveries/${deliveryId}`)).toMatchObject({ state: 'delivered' });
  });

  it('gets nothing after it was deleted', async () => {
    const { id } = await hooks.register();
    let answer: (status: number) => void = () => undefined;
    let requests = 0;
    hooks.httpClient.receiver = () => new Promise((resolve) => ((answer = resolve), (requests += 1)));
    await hooks.deliver();
    await hooks.act(`${id}/delete`);
    answer(500);
    await hooks.runtime.advance(3_600_000);
    expect(requests).toBe(1);
    expect((await hooks.get('/metrics')).body).toMatch(/^steward_webhook_deliveries_pending 0$/m);
  });
});
