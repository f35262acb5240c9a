// The connection to PostgreSQL breaks after a commit and before its answer, so the process does not know whether
// the change was stored. It was: the process must neither lose it nor make it twice, and must not log an error.
import { expect, it } from 'vitest';
import { allDeliveries } from '../kit/deliveries-sql.ts';
import { startProxy } from './proxy.ts';
import {
  changeSettings,
  countPending,
  listDeliveries,
  publish,
  register,
  startReceiver,
  webhooksPath,
} from './receiver.ts';
import {
  type Steward,
  connect,
  createSeededDatabase,
  renewedThrice,
  signInEverywhere,
  startInProcess,
} from './steward.ts';
import { expectPatched, patch, patchId, upgrades } from './upgrade.ts';

const pollOptions = { timeout: 60_000, interval: 50 };

async function start(env: Record<string, string> = {}) {
  const { url } = await createSeededDatabase();
  const proxy = await startProxy(url);
  const steward = await startInProcess(proxy.url, env, { leaseMs: 2_500 });
  return { steward, proxy, query: await connect(url), token: await signInEverywhere([steward]) };
}

it('an upgrade runs although the answer to its start was lost', async () => {
  const { steward, proxy, token } = await start({ UPGRADE_STEP_MS: '0' });
  const cut = proxy.loseNextCommit(patchId);
  expect(await steward.post(`${upgrades}/upgrade`, patch, token)).toMatchObject({ status: 503 });
  await cut;
  await expectPatched(steward, token);
  expect(steward.loggedErrors()).toEqual([]);
});

it('a job continues and ends once after the answers to two recorded steps and to its end were lost', async () => {
  const { steward, proxy, query, token } = await start({ UPGRADE_STEP_MS: '0' });
  // Part of a message that every updated workload causes.
  const update = 'was updated with the image';
  const end = 'system/jobs/{job}/end';
  async function loseAll(): Promise<void> {
    for (const lost of [update, update, end]) await proxy.loseNextCommit(lost);
  }
  const allLost = loseAll();
  expect(await steward.post(`${upgrades}/upgrade`, patch, token)).toMatchObject({ status: 200 });
  await allLost;
  await expect.poll(steward.readiness, pollOptions).toBe(200);
  await expectPatched(steward, token);
  // The runner has repeated the lost update.
  await renewedThrice(query);
  expect(await query('select outcome, address from audit where operation = $1', [end])).toEqual([
    { outcome: 'success', address: null },
  ]);
  expect(steward.loggedErrors()).toEqual([]);
});

const published = (steward: Steward, token: string, eventId: string) =>
  expect.poll(async () => (await publish(steward, token, eventId)).status, pollOptions).toBe(200);

it('an event is published once although the answer to it or to the change that caused it was lost', async () => {
  const { steward, proxy, query, token } = await start();
  const receiver = await startReceiver();
  const id = await register([steward], token, receiver, '*');
  const eventId = 'lost-event';
  const cut = proxy.loseNextCommit(eventId);
  expect(await publish(steward, token, eventId)).toMatchObject({ status: 503 });
  await cut;
  expect(await query('select id from event_ids')).toEqual([{ id: eventId }]);
  await published(steward, token, eventId);
  const again = { status: 200, body: { eventId, deliveries: 1 } };
  expect(await publish(steward, token, eventId)).toMatchObject(again);
  const states = async () => (await listDeliveries(steward, token, id)).map(({ state }) => state);
  await expect.poll(states, pollOptions).toEqual(['delivered']);
  await expect.poll(() => countPending(steward), pollOptions).toBe(0);
  expect([...receiver.arrivals]).toEqual([[eventId, 1]]);

  const service = { serviceName: 'LostService', type: 'MapServer' };
  const create = async () => (await steward.post('/admin/services/createService', service, token)).status;
  const cutAgain = proxy.loseNextCommit(service.serviceName);
  expect(await create()).toBe(503);
  await cutAgain;
  // It exists.
  await expect.poll(create, pollOptions).toBe(409);
  await expect.poll(states, pollOptions).toEqual(['delivered', 'delivered']);
  expect([...receiver.arrivals.values()]).toEqual([1, 1]);
  expect(steward.loggedErrors()).toEqual([]);
});

it('a delivery is attempted although the answer to its claim was lost', async () => {
  const { steward, proxy, query, token } = await start();
  await changeSettings(steward, token, { notificationElapsedTimeInSeconds: '0' });
  let id = '';
  let cut: Promise<void> | undefined;
  const receiver = await startReceiver({
    respond: () => {
      if (cut) return '204';
      // Only the claim of the retry has the webhook and its receiver: what was sent has a path.
      cut = proxy.loseNextCommit(id, `127.0.0.1:${new URL(receiver.url).port}"`);
      return '500';
    },
  });
  id = await register([steward], token, receiver, '*');
  await published(steward, token, 'one');
  await expect.poll(() => receiver.arrivals.has('one'), pollOptions).toBe(true);
  await cut;
  const recorded = async () =>
    (await listDeliveries(steward, token, id)).map(({ state, attempts }) => [state, attempts.length]);
  await expect.poll(recorded, pollOptions).toEqual([['delivered', 2]]);
  expect([...receiver.arrivals]).toEqual([['one', 2]]);
  // The claims of the two attempts, and the lost one.
  expect(await query('select last_value::int as claims from claim_numbers')).toEqual([{ claims: 3 }]);
  expect(await countPending(steward)).toBe(0);
  expect(steward.loggedErrors()).toEqual([]);
});

it('a recorded delivery is not attempted again', async () => {
  const { steward, proxy, query, token } = await start();
  let cut: Promise<void> | undefined;
  // The update that records the attempt contains the response.
  const receiver = await startReceiver({
    respond: (eventId) => {
      cut ??= proxy.loseNextCommit(`thanks for ${eventId}`);
      return `200 thanks for ${eventId}`;
    },
  });
  const id = await register([steward], token, receiver, '*');
  await published(steward, token, 'one');
  await expect.poll(() => receiver.arrivals.size, pollOptions).toBe(1);
  await cut;
  await published(steward, token, 'two');
  const recorded = async () =>
    (await listDeliveries(steward, token, id)).map(({ event, state, attempts }) => [
      event.id,
      state,
      attempts.length,
    ]);
  await expect.poll(recorded, pollOptions).toEqual([
    ['two', 'delivered', 1],
    ['one', 'delivered', 1],
  ]);
  // The worker has repeated the lost update.
  await renewedThrice(query);
  expect([...receiver.arrivals]).toEqual([
    ['one', 1],
    ['two', 1],
  ]);
  expect(steward.loggedErrors()).toEqual([]);
});

it.each([
  { attempts: 3, limit: 5, expected: { state: 'pending', failures: 0, isActive: true, events: 0 } },
  { attempts: 1, limit: 5, expected: { state: 'failed', failures: 1, isActive: true, events: 0 } },
  { attempts: 1, limit: 1, expected: { state: 'failed', failures: 1, isActive: false, events: 1 } },
])(
  'a failed attempt is recorded once, with $attempts allowed attempts and $limit allowed failures',
  async ({ attempts: allowed, limit, expected }) => {
    const { steward, proxy, query, token } = await start();
    await changeSettings(steward, token, {
      notificationAttempts: String(allowed),
      notificationElapsedTimeInSeconds: '3600',
      numberOfFailures: String(limit),
    });
    let cut: Promise<void> | undefined;
    const failing = await startReceiver({
      respond: () => {
        cut = proxy.loseNextCommit('sorry for this');
        return '500 sorry for this';
      },
    });
    const observer = await startReceiver();
    const id = await register([steward], token, failing, 'Tested');
    await register([steward], token, observer, 'WebhookDeactivated');
    await published(steward, token, 'one');
    await expect.poll(() => failing.arrivals.has('one'), pollOptions).toBe(true);
    await cut;
    // What was committed before the answer was lost.
    const stored = () =>
      query(
        `select state, attempts, claimed_by is null as free from ${allDeliveries} d where webhook_id = $1`,
        [id],
      );
    const recorded = [{ state: expected.state, attempts: 1, free: true }];
    expect(await stored()).toEqual(recorded);

    await expect.poll(steward.readiness, pollOptions).toBe(200);
    // The worker has repeated the lost update.
    await renewedThrice(query);
    expect(await stored()).toEqual(recorded);
    const { body } = await steward.get(`${webhooksPath}/${id}`, token);
    const { active, failures } = body as { active: boolean; failures: { count: number } };
    expect({ active, count: failures.count }).toEqual({
      active: expected.isActive,
      count: expected.failures,
    });
    await expect.poll(() => observer.arrivals.size, pollOptions).toBe(expected.events);
    expect([...observer.arrivals.values()]).toEqual(expected.events === 1 ? [1] : []);
    const deactivations = await query(
      `select target, outcome, address from audit where operation = 'services/webhooks/{webhook}/deactivate'`,
    );
    const deactivation = { target: `services/webhooks/${id}`, outcome: 'success', address: null };
    expect(deactivations).toEqual(Array(expected.events).fill(deactivation));
    expect([...failing.arrivals]).toEqual([['one', 1]]);
    expect(await query(`select count(*)::int from ${allDeliveries} d`)).toEqual([
      { count: 1 + expected.events },
    ]);
    await expect.poll(() => countPending(steward), pollOptions).toBe(expected.state === 'pending' ? 1 : 0);
    expect(steward.loggedErrors()).toEqual([]);
  },
);

it('a delivery whose webhook is deleted during the attempt causes no error', async () => {
  const { steward, token } = await start();
  let id = '';
  const first = await startReceiver({
    respond: async () => {
      expect(await steward.post(`${webhooksPath}/${id}/delete`, {}, token)).toMatchObject({ status: 200 });
      return '200';
    },
  });
  id = await register([steward], token, first, '*');
  await published(steward, token, 'one');
  await expect.poll(() => first.arrivals.has('one'), pollOptions).toBe(true);
  const isDeleted = async () => (await steward.get(`${webhooksPath}/${id}`, token)).status === 404;
  await expect.poll(isDeleted, pollOptions).toBe(true);
  // The result of this delivery is recorded after the result of the first.
  const next = await startReceiver();
  const nextId = await register([steward], token, next, '*');
  await published(steward, token, 'two');
  const states = async () => (await listDeliveries(steward, token, nextId)).map(({ state }) => state);
  await expect.poll(states, pollOptions).toEqual(['delivered']);
  expect(await countPending(steward)).toBe(0);
  expect([...next.arrivals]).toEqual([['two', 1]]);
  expect([...first.arrivals]).toEqual([['one', 1]]);
  expect(steward.loggedErrors()).toEqual([]);
});
