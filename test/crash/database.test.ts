// PostgreSQL itself is killed and comes back, under load: what was acknowledged is there, what can be answered meanwhile is, and
// everything goes on by itself (contract 2: store away).
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../kit/postgres.ts';
import { codesOfPatch, expectOneRun } from './messages.ts';
import { type Steward, connect, createChance, pause, signInEverywhere, startSteward } from './steward.ts';

/** How soon after its return everything works. */
const backWithinMs = 5_000;
const leaseMs = 10_000;
const stepMs = 60;

let postgres: PostgresServer;
let stewards: readonly [Steward, Steward];
let token: string;
let receiver: Server;
let receivingTakesMs = 0;
let arrived: Set<string>;

beforeEach(async () => {
  postgres = await startPostgres();
  const env = { UPGRADE_STEP_MS: String(stepMs), LOG_LEVEL: 'info' };
  stewards = await Promise.all([startSteward(postgres.url, env), startSteward(postgres.url, env)]);
  token = await signInEverywhere(stewards);
  arrived = new Set();
  receiver = createServer((request, response) => {
    arrived.add(request.headers['webhook-id'] as string);
    request.resume().on('end', () => void pause(receivingTakesMs).then(() => response.end()));
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const hookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/in`;
  const webhook = { name: 'hook', hookUrl, changeTypes: '*' };
  expect(await stewards[0].post('/admin/services/webhooks/create', webhook, token)).toMatchObject({
    status: 200,
  });
  // A process that has not heard of it before the database goes would not know it.
  const known = async (steward: Steward) =>
    (await steward.get('/admin/services/webhooks', token)).body.webhooks;
  for (const steward of stewards) await expect.poll(() => known(steward)).toHaveLength(1);
}, 60_000);

afterEach(async () => {
  receiver.closeAllConnections();
  await new Promise((resolve) => receiver.close(resolve));
  await Promise.all(stewards.map((steward) => steward.kill()));
});

const eventually = { timeout: backWithinMs, interval: 50 };
const readiness = async (steward: Steward) => (await steward.ask('/ready')).status;

/** Until both processes have noticed. */
async function goAway(): Promise<void> {
  await postgres.kill();
  for (const steward of stewards) await expect.poll(() => readiness(steward), eventually).toBe(503);
}

async function comeBack(): Promise<void> {
  await postgres.start();
  for (const steward of stewards) await expect.poll(() => readiness(steward), eventually).toBe(200);
}

/** No process has ended, and none has said more than that the database went and came back. */
function expectCalm(outages: number): void {
  for (const { child, output } of stewards) {
    expect(child.exitCode).toBeNull();
    expect(child.signalCode).toBeNull();
    const lines = output.out.split('\n').filter((line) => line !== '' && !line.includes('"msg":"request"'));
    const told = lines.map((line) => JSON.parse(line) as { level: number; msg: string });
    expect(told.filter(({ level }) => level >= 50)).toEqual([]);
    const ofOutages = told.filter(({ msg }) => msg.includes('database'));
    expect(ofOutages.length).toBeLessThanOrEqual(2 * outages + 2);
    expect(told.length - ofOutages.length).toBeLessThanOrEqual(5);
  }
}

const soap = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>
  <GetServiceDescriptions xmlns="http://www.example.com/schemas/Product/10.0"/></s:Body></s:Envelope>`;

it('while it is away reading goes on, and what cannot be done says so', { timeout: 240_000 }, async () => {
  const { body } = await stewards[0].get('/admin/services/webhooks', token);
  const [{ id = '' } = {}] = body.webhooks as { id?: string }[];
  await goAway();
  const refused = {
    status: 503,
    body: { status: 'error', error: { code: 503, message: 'The database cannot be reached.', details: [] } },
  };
  const expectAway = async (steward: Steward) => {
    const headers = { 'content-type': 'text/xml' };
    const catalog = await steward.ask('/services', { method: 'POST', headers, body: soap });
    expect(catalog).toMatchObject({
      status: 200,
      body: { text: expect.stringContaining('<Name>') as string },
    });
    for (const path of ['/admin', '/admin/mode', '/admin/services', '/admin/system/upgrades'])
      expect(await steward.get(path, token)).toMatchObject({ status: 200 });
    for (const path of ['/health', '/metrics'])
      expect(await steward.ask(path)).toMatchObject({ status: 200 });
    expect(await steward.ask('/ready')).toMatchObject({
      status: 503,
      body: { reasons: ['the database cannot be reached'] },
    });
    const answers = [
      await steward.post('/admin/services/createFolder', { folderName: 'Away' }, token),
      await steward.post('/admin/services/webhooks/publish', { changeType: 'Tested' }, token),
      await steward.post('/admin/mode/update', { isReadOnly: 'true' }, token),
      await steward.get(`/admin/services/webhooks/${id}/deliveries`, token),
    ];
    for (const answer of answers) {
      expect(answer).toMatchObject(refused);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  };
  const until = Date.now() + 2_000;
  while (Date.now() < until) for (const steward of stewards) await expectAway(steward);
  await comeBack();
  for (const [index, steward] of stewards.entries()) {
    const folderName = `Back ${index}`;
    expect(await steward.post('/admin/services/createFolder', { folderName }, token)).toMatchObject({
      status: 200,
    });
    expect(await steward.get(`/admin/services/webhooks/${id}/deliveries`, token)).toMatchObject({
      status: 200,
    });
    const event = { changeType: 'Tested', eventId: `back-${index}` };
    expect(await steward.post('/admin/services/webhooks/publish', event, token)).toMatchObject({
      status: 200,
    });
    await expect.poll(() => arrived.has(event.eventId), eventually).toBe(true);
  }
  expectCalm(1);
  await goAway();
  for (const { child, exited } of stewards) {
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  }
});

it('keeps everything that was acknowledged', { timeout: 240_000 }, async () => {
  const chance = createChance();
  const outages = 5;
  const acknowledged = { events: [] as string[], services: [] as string[], users: [] as string[] };
  let isOver = false;

  async function write(kind: keyof typeof acknowledged, path: string, name: string, fields: object) {
    const steward = stewards[chance() < 0.5 ? 0 : 1];
    const answer = await steward.post(path, { ...fields }, token);
    if (answer.status === 200) acknowledged[kind].push(name);
    else expect(answer).toMatchObject({ status: 503, body: { error: { code: 503 } } });
    return answer.status === 200;
  }
  const clients = [0, 1, 2, 3].map(async (client) => {
    for (let number = 0; !isOver; number += 1) {
      const name = `c${client}n${number}`;
      const event = { changeType: 'Tested', eventId: name };
      const service = { serviceName: name, type: 'MapServer' };
      const user = { username: name, password: 'battery staple', role: 'member' };
      if (client === 0) await write('users', '/admin/security/users/add', name, user);
      else if (client === 1) await write('services', '/admin/services/createService', name, service);
      // This one is safe to repeat, so it is; whether the others were done nobody can know.
      else while (!(await write('events', '/admin/services/webhooks/publish', name, event))) await pause(100);
      await pause(20 * chance());
    }
  });
  const load = Promise.all(clients);
  load.catch(() => undefined);
  for (let outage = 0; outage < outages; outage += 1) {
    await pause(500 + 500 * chance());
    await goAway();
    await comeBack();
  }
  isOver = true;
  await load;

  const query = await connect(postgres.url);
  const keysOf = async (statement: string) =>
    new Set((await query<{ key: string }>(statement)).map(({ key }) => key));
  const kept = {
    events: await keysOf('select key from publications'),
    services: await keysOf('select service_name as key from services'),
    users: await keysOf('select key from users'),
  };
  for (const kind of ['events', 'services', 'users'] as const) {
    expect(acknowledged[kind].filter((name) => !kept[kind].has(name))).toEqual([]);
    expect(acknowledged[kind]).not.toEqual([]);
  }
  // What the other process has written last may still be on its way.
  const unknownTo = async (steward: Steward) => {
    const { body } = await steward.get('/admin/services', token);
    const known = new Set((body.services as { serviceName: string }[]).map(({ serviceName }) => serviceName));
    return [...kept.services].filter((name) => name.startsWith('c') && !known.has(name));
  };
  for (const steward of stewards) await expect.poll(() => unknownTo(steward), eventually).toEqual([]);
  const pending = () => query(`select key, state from deliveries where state <> 'delivered'`);
  await expect.poll(pending, { timeout: 2 * leaseMs, interval: 100 }).toEqual([]);
  expect(acknowledged.events.filter((name) => !arrived.has(name))).toEqual([]);
  expectCalm(outages);
});

it('an upgrade and deliveries under way come to their end', { timeout: 240_000 }, async () => {
  receivingTakesMs = 200;
  const events = Array.from({ length: 60 }, (_, index) => `event-${index}`);
  for (const eventId of events) {
    const event = { changeType: 'Tested', eventId };
    expect(await stewards[0].post('/admin/services/webhooks/publish', event, token)).toMatchObject({
      status: 200,
    });
  }
  const asked = { versionManifest: '{"id":"pat_17022022_1250"}' };
  expect(await stewards[0].post('/admin/system/upgrades/upgrade', asked, token)).toMatchObject({
    status: 200,
  });
  // The second time nobody's lease is left when it comes back.
  for (const awayMs of [0, leaseMs + 500, 0]) {
    await pause(300);
    await goAway();
    await pause(awayMs);
    await comeBack();
  }
  type Status = { status: { state: string; messages: { code: number; message: string; when: number }[] } };
  const told = async () => {
    const { body } = await stewards[1].get('/admin/system/upgrades', token);
    return (body as unknown as Status).status;
  };
  await expect.poll(async () => (await told()).state, { timeout: 30_000, interval: 100 }).toBe('success');
  expectOneRun((await told()).messages, codesOfPatch(4));
  const query = await connect(postgres.url);
  const pending = () => query(`select key, state from deliveries where state <> 'delivered'`);
  await expect.poll(pending, { timeout: 2 * leaseMs, interval: 100 }).toEqual([]);
  expect(events.filter((id) => !arrived.has(id))).toEqual([]);
  expectCalm(3);
});
