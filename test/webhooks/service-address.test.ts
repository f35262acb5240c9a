// Tests of the addresses of webhooks beneath their services.
import { expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';

const hooks = perTest(startHooks);

const get = (path: string) => hooks.get(`/admin/services/${path}`, hooks.administrator);

it('a webhook beneath its service is the same webhook', async () => {
  const roads = 'Maps/Roads.MapServer/webhooks';
  const { id } = await hooks.register({ service: 'Maps/Roads.MapServer', changeTypes: 'Tested' });
  expect((await get(`${roads}/${id}`)).json()).toEqual(await hooks.read(`/${id}`));
  const edit = await hooks.post(
    `/admin/services/${roads}/${id}/edit`,
    { name: 'another' },
    hooks.administrator,
  );
  expect(edit.json()).toEqual({ status: 'success' });
  expect(await hooks.read(`/${id}`)).toMatchObject({ name: 'another' });
  await hooks.deliver({ service: 'Maps/Roads.MapServer' });
  const [delivery] = (await hooks.deliveriesOf(id)).deliveries;
  const path = `${id}/deliveries/${delivery?.id ?? ''}`;
  expect((await get(`${roads}/${path}`)).json()).toEqual(await hooks.read(`/${path}`));
  const page = await get(`${roads}/${id}?f=html`);
  expect([page.statusCode, page.headers.location]).toEqual([303, `/admin/services/webhooks/${id}`]);
  const redelivery = await hooks.post(
    `/admin/services/${roads}/${id}/redeliver`,
    { state: 'delivered' },
    hooks.administrator,
  );
  expect(redelivery.json()).toEqual({ status: 'success', matched: 1, skipped: 0 });
  await hooks.settle();
  expect((await hooks.deliveriesOf(id)).deliveries).toHaveLength(2);
});

it('a webhook of another service, or of none, is not found beneath a service', async () => {
  const { id: ofAll } = await hooks.register();
  const { id: ofRoads } = await hooks.register({ service: 'Maps/Roads.MapServer' });
  for (const path of [`Maps/Roads.MapServer/webhooks/${ofAll}`, `World.MapServer/webhooks/${ofRoads}`]) {
    expect((await get(path)).statusCode).toBe(404);
    const deleted = await hooks.post(`/admin/services/${path}/delete`, {}, hooks.administrator);
    expect(deleted.statusCode).toBe(404);
  }
  expect((await hooks.read<{ webhooks: unknown[] }>('')).webhooks).toHaveLength(2);
});
