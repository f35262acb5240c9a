// The connection to PostgreSQL breaks after a commit and before its answer, so the process does not know whether the change was stored.
// It was: the process must neither lose it nor make it twice, and must not log an error.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { startProxy } from './proxy.ts';
import { type Message, codesOfPatch, expectOneRun } from './messages.ts';
import { type Steward, connect, pause, signInEverywhere, startSteward } from './steward.ts';

const upgrades = '/admin/system/upgrades';
const webhooks = '/admin/services/webhooks';
const upgradeFields = { versionManifest: '{"id":"pat_17022022_1250"}' };
const pollOptions = { timeout: 15_000, interval: 50 };

async function start(env: Record<string, string> = {}) {
  const { url } = await createDatabase();
  const proxy = await startProxy(url);
  const steward = await startSteward(proxy.url, env);
  return { steward, proxy, query: await connect(url), token: await signInEverywhere([steward]) };
}

async function expectSuccess(steward: Steward, token: string): Promise<void> {
  const status = async () =>
    ((await steward.get(upgrades, token)).body as { status: { state: string; messages: Message[] } }).status;
  await expect.poll(async () => (await status()).state, pollOptions).toBe('success');
  expectOneRun((await status()).messages, codesOfPatch(4));
}

it('an upgrade runs although the answer to its start was lost', { timeout: 60_000 }, async () => {
  const { steward, proxy, token } = await start({ UPGRADE_STEP_MS: '0' });
  const cut = proxy.loseNextCommit();
  expect(await steward.post(`${upgrades}/upgrade`, upgradeFields, token)).toMatchObject({ status: 503 });
  await cut;
  await expectSuccess(steward, token);
  expect(steward.loggedErrors()).toEqual([]);
});

it('a job continues after the answer to a recorded step was lost', { timeout: 60_000 }, async () => {
  const { steward, proxy, token } = await start({ UPGRADE_STEP_MS: '20' });
  expect(await steward.post(`${upgrades}/upgrade`, upgradeFields, token)).toMatchObject({ status: 200 });
  for (let lost = 0; lost < 2; lost += 1) {
    await proxy.loseNextCommit();
    await expect.poll(async () => (await steward.ask('/ready')).status, pollOptions).toBe(200);
  }
  await expectSuccess(steward, token);
  expect(steward.loggedErrors()).toEqual([]);
});

/** Registers a webhook. The receiver answers after `onArrival`. */
async function receive(steward: Steward, token: string, onArrival: (arrived: readonly string[]) => unknown) {
  const arrived: string[] = [];
  const receiver = createServer((request, response) => {
    arrived.push(request.headers['webhook-id'] as string);
    request.resume().on('end', () => void Promise.resolve(onArrival(arrived)).then(() => response.end()));
  });
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => receiver.close().closeAllConnections());
  const hookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/in`;
  const created = await steward.post(
    `${webhooks}/create`,
    { name: 'hook', hookUrl, changeTypes: '*' },
    token,
  );
  return { arrived, id: (created.body.webhook as { id: string }).id };
}

async function publish(steward: Steward, token: string, eventId: string): Promise<void> {
  const event = { changeType: 'Tested', eventId };
  const isPublished = async () => (await steward.post(`${webhooks}/publish`, event, token)).status;
  await expect.poll(isPublished, pollOptions).toBe(200);
}

it('a recorded delivery is not attempted again', { timeout: 60_000 }, async () => {
  const { steward, proxy, query, token } = await start();
  let cut: Promise<void> | undefined;
  const { arrived } = await receive(steward, token, () => void (cut ??= proxy.loseNextCommit()));
  await publish(steward, token, 'one');
  await expect.poll(() => arrived, pollOptions).toEqual(['one']);
  await cut;
  await publish(steward, token, 'two');
  const recorded = () =>
    query(`select state, count(a.key)::int as attempts from deliveries d left join attempts a using (key)
           group by d.key, state, placed order by placed`);
  const delivered = { state: 'delivered', attempts: 1 };
  await expect.poll(recorded, pollOptions).toEqual([delivered, delivered]);
  // Long enough for the worker to repeat the lost update.
  await pause(1_500);
  expect(arrived).toEqual(['one', 'two']);
  expect(steward.loggedErrors()).toEqual([]);
});

it(
  'a delivery whose webhook is deleted during the attempt causes no error',
  { timeout: 60_000 },
  async () => {
    const { steward, query, token } = await start();
    const { id, arrived } = await receive(steward, token, async ([first]) => {
      if (first === 'one') await steward.post(`${webhooks}/${id}/delete`, {}, token);
    });
    await publish(steward, token, 'one');
    await expect.poll(() => arrived, pollOptions).toEqual(['one']);
    // The result of this delivery is recorded after the result of the first.
    const next = await receive(steward, token, () => undefined);
    await publish(steward, token, 'two');
    const states = () => query('select state from deliveries');
    await expect.poll(states, pollOptions).toEqual([{ state: 'delivered' }]);
    expect(next.arrived).toEqual(['two']);
    expect(steward.loggedErrors()).toEqual([]);
  },
);
