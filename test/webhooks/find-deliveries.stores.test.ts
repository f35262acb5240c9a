// Finding deliveries: of all webhooks and of one, by filter, as JSON and on the pages.
import { beforeEach, expect, it } from 'vitest';
import { perTest } from '../kit/cleanup.ts';
import { type DeliveryJson, startHooks } from '../kit/hooks.ts';

const hooks = perTest(startHooks);
beforeEach(async () => {
  await hooks.act('settings', { notificationAttempts: '1' });
});

type Page = { deliveries: DeliveryJson[]; total: number; totalIsExact?: boolean };

/** The events of the deliveries that match, and their webhooks. */
async function find(path: string): Promise<string[]> {
  const { deliveries, total } = await hooks.read<Page>(path);
  expect(total).toBe(deliveries.length);
  return deliveries.map(({ event, webhookName }) => `${event.id} to ${webhookName}`);
}

it('deliveries are found by state, type, event, status and time, of all webhooks and of one', async () => {
  const one = await hooks.register({ name: 'one' });
  const two = await hooks.register({ name: 'two', changeTypes: 'Closed' });
  hooks.answerWith(503);
  await hooks.deliver({ eventId: 'e1', changeType: 'Opened' });
  hooks.answerWith(200);
  await hooks.runtime.advance(1_000);
  const later = hooks.runtime.now();
  await hooks.deliver({ eventId: 'e2', changeType: 'Opened' });
  await hooks.act(`${two.id}/deactivate`);
  await hooks.deliver({ eventId: 'e3', changeType: 'Closed' });

  const all = ['e3 to two', 'e3 to one', 'e2 to one', 'e1 to one'];
  expect(await find('/deliveries')).toEqual(all);
  expect(await find(`/${one.id}/deliveries`)).toEqual(all.slice(1));
  expect(await find(`/deliveries?webhookId=${one.id}&status=2xx`)).toEqual(['e3 to one', 'e2 to one']);
  expect(await find('/deliveries?state=failed,%20missed')).toEqual(['e3 to two', 'e1 to one']);
  expect(await find('/deliveries?changeType=Opened&state=')).toEqual(['e2 to one', 'e1 to one']);
  expect(await find('/deliveries?eventId=e3')).toEqual(['e3 to two', 'e3 to one']);
  expect(await find('/deliveries?status=503')).toEqual(['e1 to one']);
  expect(await find('/deliveries?status=5xx')).toEqual(['e1 to one']);
  expect(await find('/deliveries?status=2xx')).toEqual(['e3 to one', 'e2 to one']);
  expect(await find('/deliveries?status=4xx')).toEqual([]);
  expect(await find('/deliveries?status=none')).toEqual(['e3 to two']);
  expect(await find(`/deliveries?from=${later}&to=${later}&status=200`)).toEqual(['e3 to one', 'e2 to one']);
  expect(await find(`/${one.id}/deliveries?to=${later - 1}`)).toEqual(['e1 to one']);
  expect(await find('/deliveries?from=2026-01-01T00:00:01&to=2026-01-01T00:00:01.000&status=503')).toEqual(
    [],
  );
  expect(await find('/deliveries?from=2026-01-01T00:00&to=2026-01-01T00:00:00.999')).toEqual(['e1 to one']);
  expect(await find(`/${two.id}/deliveries?status=200`)).toEqual([]);

  const [missed] = (await hooks.read<Page>('/deliveries?num=1')).deliveries;
  expect(missed).toMatchObject({ webhookId: two.id, state: 'missed', nextAttemptAt: null, attempts: [] });
  expect(missed?.endedAt).toBe(missed?.createdAt);
  expect(await hooks.read(`/deliveries/${missed?.id}`)).toEqual(
    await hooks.read(`/${two.id}/deliveries/${missed?.id}`),
  );
  const unknown = await hooks.get('/admin/services/webhooks/deliveries/unknown', hooks.administrator);
  expect(unknown.statusCode).toBe(404);
});

it('a filter with faults is refused, and the answer names each of them', async () => {
  const query = 'state=lost,failed&changeType=1&eventId=%21&status=99&from=x&to=-1&num=0';
  const refused = await hooks.get(`/admin/services/webhooks/deliveries?${query}`, hooks.administrator);
  expect(refused.statusCode).toBe(400);
  expect(refused.json<{ error: { details: string[] } }>().error.details).toEqual([
    'state: must be a comma list of pending, delivered, failed, discarded, missed.',
    'changeType: must be a letter and up to 63 letters or digits.',
    'eventId: must be 1 to 64 letters, digits, _ or -.',
    'status: must be an HTTP status from 100 to 599, a class such as 5xx, or none.',
    'from: must be a time in UTC such as 2026-11-18T07:30, or an integer of milliseconds since the epoch.',
    'to: must be a time in UTC such as 2026-11-18T07:30, or an integer of milliseconds since the epoch.',
    'num: must be an integer from 1 to 100.',
  ]);
});
