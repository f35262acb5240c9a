// PostgreSQL is killed and started again: reads work during the outage, and everything continues without help.
// three-processes.test.ts kills it under load.
import { beforeEach, expect, it } from 'vitest';
import type { PostgresServer } from '../kit/postgres.ts';
import { type Receiver, countPending, listDeliveries, publish, register, startReceiver } from './receiver.ts';
import {
  type Client,
  type InProcessSteward,
  pause,
  signInEverywhere,
  startInProcess,
  startSeededPostgres,
} from './steward.ts';
import { expectPatched, patch, upgrades } from './upgrade.ts';

const leaseMs = 2_000;
const stepMs = 60;

let postgres: PostgresServer;
let stewards: readonly [InProcessSteward, InProcessSteward];
let token: string;
let receiver: Receiver;
let webhookId: string;

beforeEach(async () => {
  postgres = await startSeededPostgres();
  const env = { UPGRADE_STEP_MS: String(stepMs), LOG_LEVEL: 'info' };
  const start = () => startInProcess(postgres.url, env, { leaseMs });
  stewards = await Promise.all([start(), start()]);
  token = await signInEverywhere(stewards);
  receiver = await startReceiver();
  // Both servers must have the webhook before the database stops.
  webhookId = await register(stewards, token, receiver, '*');
}, 60_000);

const eventually = { timeout: 60_000, interval: 50 };

/** Resolves when both servers have noticed. */
async function stopDatabase(): Promise<void> {
  await postgres.kill();
  for (const { readiness } of stewards) await expect.poll(readiness, eventually).toBe(503);
}

async function startDatabase(): Promise<void> {
  await postgres.start();
  for (const { readiness } of stewards) await expect.poll(readiness, eventually).toBe(200);
}

/** The log gets the entries of writes that fail during an outage. */
const entryInLog = 'an entry of the audit trail could not be stored';

/** Checks that no server has logged more than the outages and the audit entries of refused writes. */
function expectQuietLogs(outages: number): void {
  for (const { log } of stewards) {
    const lines = log()
      .split('\n')
      .filter((line) => line !== '' && !line.includes('"msg":"request"'));
    const entries = lines
      .map((line) => JSON.parse(line) as { level: number; msg: string })
      .filter(({ msg }) => msg !== entryInLog);
    expect(entries.filter(({ level }) => level >= 50)).toEqual([]);
    const outageEntries = entries.filter(({ msg }) => msg.includes('database'));
    expect(outageEntries.length).toBeLessThanOrEqual(2 * outages + 2);
    expect(entries.length - outageEntries.length).toBeLessThanOrEqual(5);
  }
}

const asBrowser = () => ({ headers: { accept: 'text/html', cookie: `steward_session=${token}` } });

it('while it is unavailable reads work, and writes are answered with 503', async () => {
  await stopDatabase();
  const refusedWith = (details: string[]) => ({
    status: 503,
    body: { status: 'error', error: { code: 503, message: 'The database cannot be reached.', details } },
  });
  const expectUnavailable = async (steward: Client) => {
    expect(await steward.readCatalog()).toMatchObject({
      status: 200,
      body: { text: expect.stringContaining('<Name>') as string },
    });
    for (const path of ['/admin', '/admin/mode', '/admin/services', '/admin/system/upgrades'])
      expect(await steward.get(path, token)).toMatchObject({ status: 200 });
    expect(await steward.ask('/health')).toMatchObject({ status: 200 });
    expect(await steward.ask('/metrics')).toMatchObject({
      status: 200,
      body: { text: expect.stringContaining('\nsteward_ready 0\n') as string },
    });
    expect(await steward.ask('/ready')).toMatchObject({
      status: 503,
      body: { reasons: ['the database cannot be reached'] },
    });
    const home = String((await steward.ask('/admin', asBrowser())).body.text);
    expect(home).toMatch(/id="connection"[^>]*>\s*The database cannot be reached since <time/);
    expect(home).toContain('Not known now.');
    expect(home.match(/<dd[^>]*><span class="none">–</g)).toHaveLength(4);
    expect(home.split('<main')[1]).not.toMatch(
      /class="(good|warn)"|Accepts changes|No delivery|none yet|Everything works/,
    );
    const answers = [
      await steward.post('/admin/services/createFolder', { folderName: 'Refused' }, token),
      await steward.post('/admin/services/webhooks/publish', { changeType: 'Tested' }, token),
      await steward.post('/admin/mode/update', { isReadOnly: 'true' }, token),
      await steward.get(`/admin/services/webhooks/${webhookId}/deliveries`, token),
    ];
    // Administrators learn the reason.
    for (const answer of answers)
      expect(answer).toMatchObject(refusedWith(['the database cannot be reached']));
    // Another process may have issued them a moment before.
    for (const unknown of ['unknown', `stw_${'k'.repeat(43)}`]) {
      const answer = await steward.get('/admin/mode', unknown);
      expect(answer).toMatchObject(refusedWith([]));
      answers.push(answer);
    }
    for (const { headers } of answers) expect(headers.get('retry-after')).toBe('5');
  };
  for (let round = 0; round < 5; round += 1) for (const steward of stewards) await expectUnavailable(steward);
  await startDatabase();
  for (const [index, steward] of stewards.entries()) {
    const folderName = `Back ${index}`;
    expect(await steward.post('/admin/services/createFolder', { folderName }, token)).toMatchObject({
      status: 200,
    });
    expect(await steward.get(`/admin/services/webhooks/${webhookId}/deliveries`, token)).toMatchObject({
      status: 200,
    });
    expect(await steward.ask('/admin', asBrowser())).toMatchObject({
      body: { text: expect.stringMatching(/id="connection"[^>]* hidden>/) as string },
    });
    expect(await publish(steward, token, `back-${index}`)).toMatchObject({ status: 200 });
    await expect.poll(() => receiver.arrivals.has(`back-${index}`), eventually).toBe(true);
  }
  expectQuietLogs(1);
  await stopDatabase();
  for (const { stop } of stewards) await stop();
});

/** Waits until no delivery is pending and checks that these events have arrived. */
async function expectAllDelivered(events: readonly string[]): Promise<void> {
  const listUndelivered = async () =>
    (await listDeliveries(stewards[1], token, webhookId)).filter(({ state }) => state !== 'delivered');
  await expect.poll(listUndelivered, eventually).toEqual([]);
  for (const steward of stewards) await expect.poll(() => countPending(steward), eventually).toBe(0);
  expect(events.filter((id) => !receiver.arrivals.has(id))).toEqual([]);
  expect(receiver.badSignatures).toEqual([]);
}

it('a running upgrade and pending deliveries are completed', async () => {
  receiver.mostAnswered = 0;
  const events = Array.from({ length: 60 }, (_, index) => `event-${index}`);
  for (const eventId of events)
    expect(await publish(stewards[0], token, eventId)).toMatchObject({ status: 200 });
  expect(await stewards[0].post(`${upgrades}/upgrade`, patch, token)).toMatchObject({ status: 200 });
  // The leases of the servers end during the second outage.
  for (const outageMs of [0, leaseMs, 0]) {
    receiver.mostAnswered += 10;
    await expect.poll(() => receiver.arrivals.size, eventually).toBeGreaterThan(receiver.mostAnswered);
    await stopDatabase();
    await pause(outageMs);
    await startDatabase();
  }
  receiver.mostAnswered = Infinity;
  await expectPatched(stewards[1], token);
  await expectAllDelivered(events);
  expectQuietLogs(3);
});
