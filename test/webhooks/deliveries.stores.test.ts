// Tests of pings, and of listing, keeping and redelivering deliveries.
import { describe, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';
import { onlyDeliveryOf } from './delivery-worker-kit.ts';

const hooks = perTest(startHooks);

const onlyDelivery = onlyDeliveryOf(() => hooks);

describe('ping', () => {
  it('is attempted once, even if the webhook is inactive', async () => {
    const { id } = await hooks.register({ active: 'false', changeTypes: 'Nothing' });
    hooks.answerWith(500);
    const { deliveryId } = await hooks.act<{ deliveryId: string }>(`${id}/ping`);
    await hooks.runtime.advance(3_600_000);
    expect(hooks.arrivals).toHaveLength(1);
    expect(JSON.parse(hooks.arrivals[0]?.body ?? '')).toMatchObject({
      type: 'Ping',
      service: null,
      data: {},
    });
    expect(await hooks.read(`/${id}/deliveries/${deliveryId}`)).toMatchObject({
      id: deliveryId,
      event: { type: 'Ping' },
      state: 'failed',
    });
  });
});

describe('deliveries', () => {
  it('are listed in pages, newest first', async () => {
    const { id } = await hooks.register();
    for (let n = 0; n < 30; n += 1) await hooks.publish({ eventId: `e${n}` });
    await hooks.settle();
    type Page = { deliveries: { event: { id: string } }[]; total: number };
    const page = async (query: string) => {
      const { deliveries, total } = await hooks.read<Page>(`/${id}/deliveries${query}`);
      return [total, deliveries.length, deliveries[0]?.event.id];
    };
    expect(await page('')).toEqual([30, 25, 'e29']);
    expect(await page('?start=25')).toEqual([30, 5, 'e4']);
    expect(await page('?start=28&num=1')).toEqual([30, 1, 'e1']);
    expect(await page('?start=30')).toEqual([30, 0, undefined]);
    for (const bad of ['start=-1', 'num=0', 'num=101']) {
      const { statusCode } = await hooks.get(
        `/admin/services/webhooks/${id}/deliveries?${bad}`,
        hooks.administrator,
      );
      expect(statusCode).toBe(400);
    }
  });

  it('are counted in each hour', async () => {
    const { id } = await hooks.register();
    await hooks.deliver();
    hooks.answerWith(500);
    await hooks.act(`${id}/ping`);
    await hooks.settle();
    const now = hooks.runtime.now();
    type Answer = { hours: { at: number; delivered: number; meanMs: number | null }[]; since: number };
    const read = (path: string) => hooks.read<Answer>(path);
    const { hours, since } = await read(`/${id}/history?from=${now - 7_200_000}`);
    expect(since).toBeLessThanOrEqual(now);
    expect(hours.at(-1)).toEqual({
      at: now - (now % 3_600_000),
      delivered: 1,
      failed: 0,
      missed: 0,
      discarded: 0,
      meanMs: expect.any(Number) as number,
    });
    for (const { at, delivered, meanMs } of hours.slice(0, -1)) {
      expect(at % 3_600_000).toBe(0);
      expect([delivered, meanMs]).toEqual([0, null]);
    }
    expect((await read('/history')).hours.at(-1)).toEqual(hours.at(-1));
    const path = `/admin/services/webhooks/history?from=1&to=${36 * 86_400_000}`;
    const refused = await hooks.get(path, hooks.administrator);
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('from: must be at most 35 days before to.');
  });

  it('can be redelivered: the same event in a new delivery', async () => {
    const { id } = await hooks.register();
    await hooks.deliver({ eventId: 'again', payload: '{"a":1}' });
    const first = await onlyDelivery(id);
    const path = `${id}/deliveries/${first?.id ?? ''}`;
    const { deliveryId } = await hooks.act<{ deliveryId: string }>(`${path}/redeliver`);
    await hooks.settle();
    expect(deliveryId).not.toBe(first?.id);
    const [one, two] = hooks.arrivals;
    expect([two?.body, two?.headers['webhook-id']]).toEqual([one?.body, 'again']);
    expect((await hooks.deliveriesOf(id)).total).toBe(2);
    await hooks.act(`${id}/deactivate`);
    const refused = await hooks.post(`/admin/services/webhooks/${path}/redeliver`, {}, hooks.administrator);
    expect(refused.statusCode).toBe(409);
  });

  it('of another webhook are not found', async () => {
    const { id } = await hooks.register();
    await hooks.publish();
    const delivery = await onlyDelivery(id);
    const other = await hooks.register();
    const path = `/admin/services/webhooks/${other.id}/deliveries/${delivery?.id ?? ''}`;
    expect((await hooks.get(path, hooks.administrator)).statusCode).toBe(404);
  });

  it('are kept up to WEBHOOK_HISTORY and WEBHOOK_RECOVERABLE after they ended', async () => {
    await hooks.close();
    Object.assign(hooks, await startHooks({ env: { WEBHOOK_HISTORY: '3', WEBHOOK_RECOVERABLE: '2' } }));
    const { id } = await hooks.register();
    for (let n = 0; n < 6; n += 1) await hooks.publish({ eventId: `e${n}` });
    await hooks.settle();
    const eventIds = async () => (await hooks.deliveriesOf(id)).deliveries.map(({ event }) => event.id);
    await expect.poll(eventIds).toEqual(['e5', 'e4', 'e3']);
    hooks.httpClient.receiver = blackHole;
    for (let n = 6; n < 14; n += 1) await hooks.publish({ eventId: `e${n}` });
    await hooks.settle();
    expect((await eventIds()).slice(8)).toEqual(['e5', 'e4', 'e3']);
    expect(await hooks.act(`${id}/deactivate`)).toEqual({ status: 'success', discarded: 4 });
    // Four are being attempted.
    const kept = ['e13', 'e12', 'e9', 'e8', 'e7', 'e6', 'e5', 'e4', 'e3'];
    await expect.poll(eventIds).toEqual(kept);
    const metrics = async () => (await hooks.get('/metrics')).body;
    await expect.poll(metrics).toMatch(/^steward_webhook_evictions_total 2$/m);
  });

  it('store any answer as text', async () => {
    const { id } = await hooks.register();
    hooks.answerWith({ status: 500, body: Buffer.from([0x61, 0, 0xff, 0xc3, 0xa4, 0xe2, 0x82]) });
    await hooks.deliver();
    expect((await onlyDelivery(id))?.attempts[0]?.response).toBe('a\uFFFD\uFFFDä');
  });
});
