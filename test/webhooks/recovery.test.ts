// Recovering events that a receiver did not get: missed deliveries, redelivery by filter, and counts of discarded
// deliveries.
import { beforeEach, describe, expect, it } from 'vitest';
import { newDelivery } from '../../src/webhooks/queue/delivery.ts';
import { listRedeliveries, requestRedeliveries } from '../../src/webhooks/queue/redelivery.ts';
import { entriesOf } from '../audit/kit.ts';
import { perTest } from '../kit/cleanup.ts';
import { startHooks } from '../kit/hooks.ts';
import { blackHole } from '../kit/http-client.ts';

const hooks = perTest(startHooks);

/** Starts the server again with other variables. */
async function restartWith(env: Record<string, string>): Promise<void> {
  await hooks.close();
  Object.assign(hooks, await startHooks({ env }));
}

const statesOf = async (id: string) => (await hooks.deliveriesOf(id)).deliveries.map(({ state }) => state);

/** The ids of the events that arrived, in the order of their names. */
const arrived = () => hooks.arrivals.map(({ headers }) => headers['webhook-id']).sort();

const refusal = async (path: string, fields: Record<string, string> = {}) => {
  const { statusCode, body } = await hooks.post(
    `/admin/services/webhooks/${path}`,
    fields,
    hooks.administrator,
  );
  return [statusCode, (JSON.parse(body) as { error: { details: string[]; message: string } }).error];
};

describe('an inactive webhook', () => {
  it('misses events, which publish does not count, and gets them by a redelivery', async () => {
    const active = await hooks.register();
    const inactive = await hooks.register({ active: 'false' });
    expect(await hooks.publish({ eventId: 'e1' })).toMatchObject({ deliveries: 1 });
    expect(await hooks.publish({ eventId: 'e1' })).toMatchObject({ deliveries: 1 });
    await hooks.settle();
    expect([await statesOf(active.id), await statesOf(inactive.id)]).toEqual([['delivered'], ['missed']]);
    await hooks.act(`${inactive.id}/activate`);
    await hooks.settle();
    expect(arrived()).toEqual(['e1']);
    expect(await hooks.act(`${inactive.id}/redeliver`)).toEqual({
      status: 'success',
      matched: 1,
      skipped: 0,
    });
    await hooks.settle();
    expect(arrived()).toEqual(['e1', 'e1']);
    const [repeated, original] = (await hooks.deliveriesOf(inactive.id)).deliveries;
    expect(repeated).toMatchObject({ state: 'delivered', redeliveryOf: original?.id, event: { id: 'e1' } });
    expect(original).toMatchObject({ state: 'missed', redeliveredAs: repeated?.id });
    expect(repeated).not.toHaveProperty('redeliveredAs');
  });

  it('neither gets nor misses events about itself', async () => {
    await hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '1' });
    const other = await hooks.register({ changeTypes: 'WebhookDeactivated', active: 'false' });
    const failing = await hooks.register({ changeTypes: '*' });
    hooks.answerWith(500);
    await hooks.deliver({ eventId: 'e1' });
    expect(await hooks.read(`/${failing.id}`)).toMatchObject({ active: false, deactivatedBy: 'failures' });
    expect((await hooks.deliveriesOf(failing.id)).deliveries.map(({ event }) => event.id)).toEqual(['e1']);
    expect((await hooks.deliveriesOf(other.id)).deliveries).toMatchObject([
      { state: 'missed', event: { type: 'WebhookDeactivated' } },
    ]);
  });
});

/** The deliveries of these events fail, a second before the next request. */
async function fail(...eventIds: string[]): Promise<void> {
  hooks.answerWith(500);
  for (const eventId of eventIds) await hooks.publish({ eventId });
  await hooks.settle();
  hooks.answerWith(200);
  hooks.arrivals.length = 0;
  await hooks.runtime.advance(1_000);
}

describe('redelivery by filter', () => {
  beforeEach(() => hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '1000' }));

  it('repeats only what matches, and nothing twice', async () => {
    const { id } = await hooks.register();
    await fail('e1', 'e2', 'e3');
    await hooks.deliver({ eventId: 'delivered' });
    hooks.arrivals.length = 0;
    expect(await hooks.act(`${id}/redeliver`, { eventId: 'e2', state: 'failed' })).toMatchObject({
      matched: 1,
    });
    await hooks.settle();
    expect(arrived()).toEqual(['e2']);
    expect(await hooks.act(`${id}/redeliver`, { status: '500' })).toMatchObject({ matched: 2 });
    await hooks.settle();
    expect(await hooks.act(`${id}/redeliver`)).toMatchObject({ matched: 0 });
    expect(await hooks.act(`${id}/redeliver`, { state: 'delivered', changeType: 'Other' })).toMatchObject({
      matched: 0,
    });
    await hooks.settle();
    expect(arrived()).toEqual(['e1', 'e2', 'e3']);
    expect(await hooks.act('redeliver', { state: 'delivered', eventId: 'delivered' })).toMatchObject({
      matched: 1,
    });
    await hooks.settle();
    expect(arrived()).toEqual(['delivered', 'e1', 'e2', 'e3']);
  });

  it('is recorded in the audit trail with its filter', async () => {
    const { id } = await hooks.register({ active: 'false' });
    await hooks.publish({ eventId: 'e1' });
    await hooks.act(`${id}/activate`);
    await hooks.act(`${id}/redeliver`, { status: 'none' });
    const [entry] = await entriesOf(hooks);
    expect(entry?.changes.map(({ field, after }) => `${field}: ${String(after)}`)).toEqual([
      'state: failed, discarded, missed',
      'status: none',
      'matched: 1',
      'skipped: 0',
    ]);
  });

  it('is stored once while the same request is repeated', async () => {
    await restartWith({ WEBHOOK_MAX_PENDING: '1' });
    const { id } = await hooks.register({ active: 'false' });
    for (const eventId of ['e1', 'e2', 'e3']) await hooks.publish({ eventId });
    await hooks.act(`${id}/activate`);
    hooks.httpClient.receiver = blackHole;
    for (const state of ['missed', 'missed', 'failed,missed', 'missed'])
      await hooks.act(`${id}/redeliver`, { state });
    const filters = listRedeliveries(hooks.store).map(({ filter }) => filter.states);
    expect(filters).toEqual(expect.arrayContaining([['missed'], ['failed', 'missed']]));
    expect(filters).toHaveLength(2);
  });

  it('of all webhooks skips inactive ones, and is a conflict for one that is inactive', async () => {
    const [one, two] = [await hooks.register(), await hooks.register()];
    await fail('e1', 'e2');
    await hooks.act(`${two.id}/deactivate`);
    expect(await hooks.act('redeliver')).toEqual({ status: 'success', matched: 2, skipped: 2 });
    await hooks.settle();
    expect(arrived()).toEqual(['e1', 'e2']);
    expect(await refusal(`${two.id}/redeliver`)).toMatchObject([409, { message: /is not active/ }]);
    expect(await statesOf(one.id)).toEqual(['delivered', 'delivered', 'failed', 'failed']);
    expect(await statesOf(two.id)).toEqual(['failed', 'failed']);
  });

  it('refuses a filter that matches pending deliveries', async () => {
    const { id } = await hooks.register();
    expect(await refusal(`${id}/redeliver`, { state: 'pending', status: 'any' })).toMatchObject([
      400,
      {
        details: [
          'state: must be a comma list of delivered, failed, discarded, missed.',
          'status: must be an HTTP status from 100 to 599, a class such as 5xx, or none.',
        ],
      },
    ]);
  });

  it('pauses at WEBHOOK_MAX_PENDING, continues in read-only mode, and stops when the webhook is deactivated', async () => {
    await restartWith({ WEBHOOK_MAX_PENDING: '3' });
    const { id } = await hooks.register({ active: 'false' });
    for (let n = 0; n < 8; n += 1) await hooks.publish({ eventId: `e${n}` });
    await hooks.act(`${id}/activate`);
    hooks.httpClient.receiver = blackHole;
    expect(await hooks.act(`${id}/redeliver`)).toMatchObject({ matched: 8 });
    await hooks.post('/admin/mode/update', { isReadOnly: 'true' }, hooks.administrator);
    await hooks.runtime.advance(2_000);
    const pending = async () => (await statesOf(id)).filter((state) => state === 'pending').length;
    expect(await pending()).toBe(3);
    // The first three attempts time out one after another, and more are created.
    await hooks.runtime.advance(60_000);
    expect(await pending()).toBe(3);
    expect((await statesOf(id)).filter((state) => state === 'failed').length).toBeGreaterThan(0);
    await hooks.post('/admin/mode/update', { isReadOnly: 'false' }, hooks.administrator);
    await hooks.act(`${id}/deactivate`);
    const created = (await hooks.deliveriesOf(id)).total;
    await hooks.act(`${id}/activate`);
    await hooks.runtime.advance(60_000);
    expect((await hooks.deliveriesOf(id)).total).toBe(created);
    expect(created).toBeLessThan(16);
  });
});

describe('what was not delivered', () => {
  const stateOf = async (id: string) => {
    const { health, undelivered, undeliveredIsExact } = await hooks.read(`/${id}`);
    const { webhooks } = await hooks.read<{ webhooks: Record<string, unknown>[] }>('');
    const listed = webhooks.find((webhook) => webhook.id === id);
    expect(listed).toMatchObject({ health, undelivered, undeliveredIsExact });
    return [health, undelivered, undeliveredIsExact];
  };
  const miss = (webhookId: string, number: number) =>
    hooks.store.deliveries.publish(() =>
      Array.from({ length: number }, (_, n) => {
        const event = { id: `e${n}`, type: 'Tested', timestamp: 1, service: null, data: '{}' };
        const id = `${webhookId} ${n}`;
        return { ...newDelivery({ id, webhookId, event, isPing: false }, 1), state: 'missed', endedAt: 1 };
      }),
    );
  beforeEach(() => hooks.act('settings', { notificationAttempts: '1', numberOfFailures: '1000' }));

  it('counts until its redelivery is delivered, and makes a webhook behind', async () => {
    const { id } = await hooks.register();
    expect(await stateOf(id)).toEqual(['ok', 0, true]);
    await fail('e1', 'e2');
    expect(await stateOf(id)).toEqual(['behind', 2, true]);
    await hooks.act(`${id}/redeliver`, { eventId: 'e1' });
    await hooks.settle();
    expect(await stateOf(id)).toEqual(['behind', 1, true]);
    const { receiver } = hooks.httpClient;
    hooks.httpClient.receiver = blackHole;
    await hooks.act(`${id}/redeliver`);
    for (const state of ['pending', 'failed']) {
      await hooks.settle();
      expect((await statesOf(id))[0]).toBe(state);
      expect(await stateOf(id)).toEqual(['behind', 1, true]);
      await hooks.runtime.advance(60_000);
    }
    hooks.httpClient.receiver = receiver;
    await hooks.act(`${id}/redeliver`);
    await hooks.settle();
    expect(await stateOf(id)).toEqual(['ok', 0, true]);
  });

  it('also counts while the webhook is failing, deactivated or inactive', async () => {
    await hooks.act('settings', { numberOfFailures: '2' });
    const { id } = await hooks.register();
    const inactive = await hooks.register({ active: 'false' });
    await fail('e1');
    expect(await stateOf(id)).toEqual(['failing', 1, true]);
    await fail('e2');
    expect(await stateOf(id)).toEqual(['deactivated', 2, true]);
    // It misses the two events, and the three that the server publishes about the other webhook.
    expect(await stateOf(inactive.id)).toMatchObject(['inactive', 4, true]);
  });

  it('is counted up to 1,000', async () => {
    const [one, two] = [await hooks.register(), await hooks.register()];
    await miss(one.id, 1_000);
    await miss(two.id, 1_001);
    expect(await stateOf(one.id)).toEqual(['behind', 1_000, true]);
    expect(await stateOf(two.id)).toEqual(['behind', 1_000, false]);
  });

  it('counts no more after dismiss, but what fails later does', async () => {
    const { id } = await hooks.register();
    await fail('e1', 'e2');
    expect(await hooks.act(`${id}/dismiss`)).toEqual({ status: 'success', dismissed: 2 });
    expect(await stateOf(id)).toEqual(['ok', 0, true]);
    expect(await statesOf(id)).toEqual(['failed', 'failed']);
    const [entry] = await entriesOf(hooks);
    expect(entry).toMatchObject({
      operation: 'services/webhooks/{webhook}/dismiss',
      outcome: 'success',
      changes: [{ field: 'dismissed', before: null, after: 2 }],
    });
    expect(await hooks.act(`${id}/dismiss`)).toEqual({ status: 'success', dismissed: 0 });
    await hooks.runtime.advance(1);
    await fail('e3');
    expect(await stateOf(id)).toEqual(['behind', 1, true]);
    expect(await hooks.act(`${id}/activate`, { redeliver: 'true' })).toMatchObject({ matched: 1 });
    await hooks.settle();
    expect(arrived()).toEqual(['e3']);
    expect(await hooks.act(`${id}/redeliver`)).toMatchObject({ matched: 0 });
    expect(await hooks.act('redeliver', { ids: id })).toMatchObject({ matched: 0 });
    expect(await hooks.act(`${id}/redeliver`, { state: 'failed' })).toMatchObject({ matched: 2 });
    await hooks.settle();
    expect(arrived()).toEqual(['e1', 'e2', 'e3']);
  });

  it('is redelivered by the activation, if redeliver=true', async () => {
    const { id } = await hooks.register();
    await fail('e1');
    await hooks.act(`${id}/deactivate`);
    await hooks.publish({ eventId: 'e2' });
    expect(await hooks.act(`${id}/activate`, { redeliver: 'true' })).toEqual({
      status: 'success',
      matched: 2,
    });
    const [entry] = await entriesOf(hooks);
    expect(entry?.changes.map(({ field, after }) => `${field}: ${String(after)}`)).toEqual([
      'active: true',
      'deactivatedBy: null',
      'matched: 2',
    ]);
    await hooks.settle();
    expect(arrived()).toEqual(['e1', 'e2']);
    expect(await stateOf(id)).toEqual(['ok', 0, true]);
    expect(await hooks.act(`${id}/activate`)).toEqual({ status: 'success' });
  });

  it('is matched up to 10,000, and redelivered beyond', async () => {
    await restartWith({ WEBHOOK_RECOVERABLE: '20000', WEBHOOK_MAX_PENDING: '1' });
    hooks.httpClient.receiver = blackHole;
    const [one, two, off] = [
      await hooks.register(),
      await hooks.register(),
      await hooks.register({ active: 'false' }),
    ];
    await miss(one.id, 10_000);
    await miss(off.id, 10_001);
    expect(await hooks.act('redeliver')).toEqual({ status: 'success', matched: 10_000, skipped: 10_000 });
    // One of them is pending now.
    await miss(two.id, 2);
    expect(await hooks.act('redeliver')).toEqual({
      status: 'success',
      matched: 10_000,
      matchedIsExact: false,
      skipped: 10_000,
    });
    expect(listRedeliveries(hooks.store).map(({ webhookId }) => webhookId)).toEqual(
      expect.arrayContaining([one.id, two.id]),
    );
  });

  it('concerns every active webhook if counting took too long', async () => {
    const [one, two] = [await hooks.register(), await hooks.register({ active: 'false' })];
    const { now, newId } = hooks.runtime;
    const request = { filter: {}, requestedAt: now(), skipsDismissed: true, newId };
    const counted = { counts: new Map<string, number>(), isWhole: false };
    const stored = await hooks.store.update((transaction) => ({
      ...requestRedeliveries(transaction, [one.id, two.id], counted, request),
      of: listRedeliveries(transaction).map(({ webhookId }) => webhookId),
    }));
    expect(stored).toEqual({ matched: 0, matchedIsExact: false, skipped: 0, of: [one.id] });
    await hooks.settle();
    expect(listRedeliveries(hooks.store)).toEqual([]);
  });
});

describe('the number of discarded deliveries', () => {
  beforeEach(async () => {
    hooks.httpClient.receiver = blackHole;
    await hooks.settle();
  });

  it('is in the answers of deactivate and delete, without attempts in progress', async () => {
    const { id } = await hooks.register();
    for (let n = 0; n < 7; n += 1) await hooks.publish();
    await hooks.settle();
    expect(await hooks.act(`${id}/deactivate`)).toEqual({ status: 'success', discarded: 3 });
    expect(await hooks.act(`${id}/deactivate`)).toEqual({ status: 'success', discarded: 0 });
    expect(await hooks.act(`${id}/delete`)).toEqual({ status: 'success', discarded: 0 });
  });

  it('is in the answer of an edit that deactivates, and of no other edit', async () => {
    const { id } = await hooks.register();
    for (let n = 0; n < 6; n += 1) await hooks.publish();
    await hooks.settle();
    expect(await hooks.act(`${id}/edit`, { active: 'true' })).toEqual({ status: 'success' });
    expect(await hooks.act(`${id}/edit`, { active: 'false', name: 'other' })).toEqual({
      status: 'success',
      discarded: 2,
    });
    expect(await hooks.read(`/${id}`)).toMatchObject({ name: 'other', deactivatedBy: 'administrator' });
  });
});
