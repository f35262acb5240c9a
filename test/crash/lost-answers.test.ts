// The connection to PostgreSQL breaks after a commit and before its answer: nobody knows whether it was done. It was; and it is
// neither forgotten nor done twice, by a process that goes on living and finds nothing remarkable in that.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { startLine } from './line.ts';
import { type Message, codesOfPatch, expectOneRun } from './messages.ts';
import { type Steward, connect, pause, signInEverywhere, startSteward } from './steward.ts';

const upgrades = '/admin/system/upgrades';
const webhooks = '/admin/services/webhooks';
const asked = { versionManifest: '{"id":"pat_17022022_1250"}' };
const patience = { timeout: 15_000, interval: 50 };

async function start(env: Record<string, string> = {}) {
  const { url } = await createDatabase();
  const line = await startLine(url);
  const steward = await startSteward(line.url, env);
  return { steward, line, query: await connect(url), token: await signInEverywhere([steward]) };
}

async function expectSuccess(steward: Steward, token: string): Promise<void> {
  const status = async () =>
    ((await steward.get(upgrades, token)).body as { status: { state: string; messages: Message[] } }).status;
  await expect.poll(async () => (await status()).state, patience).toBe('success');
  expectOneRun((await status()).messages, codesOfPatch(4));
}

it('an upgrade that was accepted runs', { timeout: 60_000 }, async () => {
  const { steward, line, token } = await start({ UPGRADE_STEP_MS: '0' });
  const cut = line.loseNextCommit();
  expect(await steward.post(`${upgrades}/upgrade`, asked, token)).toMatchObject({ status: 503 });
  await cut;
  await expectSuccess(steward, token);
  expect(steward.complaints()).toEqual([]);
});

it('a job goes on after a step that was recorded', { timeout: 60_000 }, async () => {
  const { steward, line, token } = await start({ UPGRADE_STEP_MS: '20' });
  expect(await steward.post(`${upgrades}/upgrade`, asked, token)).toMatchObject({ status: 200 });
  for (let lost = 0; lost < 2; lost += 1) {
    await line.loseNextCommit();
    await expect.poll(async () => (await steward.ask('/ready')).status, patience).toBe(200);
  }
  await expectSuccess(steward, token);
  expect(steward.complaints()).toEqual([]);
});

/** Registers a webhook; `onArrival` holds up the answer. */
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
  await expect.poll(isPublished, patience).toBe(200);
}

it('a delivery that was recorded is not made again', { timeout: 60_000 }, async () => {
  const { steward, line, query, token } = await start();
  let cut: Promise<void> | undefined;
  const { arrived } = await receive(steward, token, () => void (cut ??= line.loseNextCommit()));
  await publish(steward, token, 'one');
  await expect.poll(() => arrived, patience).toEqual(['one']);
  await cut;
  await publish(steward, token, 'two');
  const recorded = () =>
    query(`select state, count(a.key)::int as attempts from deliveries d left join attempts a using (key)
           group by d.key, state, placed order by placed`);
  const delivered = { state: 'delivered', attempts: 1 };
  await expect.poll(recorded, patience).toEqual([delivered, delivered]);
  // Until it has tried again to record the first.
  await pause(1_500);
  expect(arrived).toEqual(['one', 'two']);
  expect(steward.complaints()).toEqual([]);
});

it(
  'a delivery of which nothing is left when it is to be recorded is nobody’s concern',
  { timeout: 60_000 },
  async () => {
    const { steward, query, token } = await start();
    const { id, arrived } = await receive(steward, token, async ([first]) => {
      if (first === 'one') await steward.post(`${webhooks}/${id}/delete`, {}, token);
    });
    await publish(steward, token, 'one');
    await expect.poll(() => arrived, patience).toEqual(['one']);
    // What is recorded of this one comes after what is recorded of the other.
    const next = await receive(steward, token, () => undefined);
    await publish(steward, token, 'two');
    const states = () => query('select state from deliveries');
    await expect.poll(states, patience).toEqual([{ state: 'delivered' }]);
    expect(next.arrived).toEqual(['two']);
    expect(steward.complaints()).toEqual([]);
  },
);
