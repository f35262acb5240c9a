// Two processes deliver under load, and one of them is killed every half second: every acknowledged event arrives, no delivery stays
// pending, and an event arrives twice only if its attempt was running when a process was killed.
import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { type Steward, connect, createRandom, pause, signInEverywhere, startSteward } from './steward.ts';

const kills = 10;
const killEveryMs = 500;
const receivers = 3;
/** Enough for attempts to run all the time, and few enough to be delivered soon after the last kill. */
const eventsPerKill = 40;
const attemptsAllowed = 5;
/** The limit of simultaneous attempts to one receiver, over all processes. */
const simultaneousAttempts = 4;
/** The lease of the last killed process must end before its deliveries can be attempted again. */
const leaseMs = 10_000;
const settledWithinMs = leaseMs + 15_000;

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A slow receiver that refuses the first attempt of some events and counts what it accepts. */
async function startReceiver(random: () => number) {
  const accepted = new Map<string, number>();
  const refused = new Set<string>();
  const server = createServer((request, response) => {
    const id = request.headers['webhook-id'] as string;
    const refuses = !refused.has(id) && !accepted.has(id) && random() < 0.1;
    const delayMs = 5 + 20 * random();
    request.resume().on('end', () => {
      if (refuses) refused.add(id);
      else accepted.set(id, (accepted.get(id) ?? 0) + 1);
      void pause(delayMs).then(() => response.writeHead(refuses ? 500 : 204).end());
    });
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`, accepted, refused };
}

it('no event is lost, and no delivery stays pending', { timeout: 240_000 }, async () => {
  const random = createRandom();
  const { url } = await createDatabase();
  const query = await connect(url);
  const all: Steward[] = [];
  const start = async () => {
    const steward = await startSteward(url);
    all.push(steward);
    return steward;
  };
  const stewards = await Promise.all([start(), start()]);
  const token = await signInEverywhere(stewards);
  const hooks = await Promise.all(Array.from({ length: receivers }, () => startReceiver(random)));
  const settings = {
    notificationAttempts: String(attemptsAllowed),
    notificationElapsedTimeInSeconds: '1',
    notificationTimeOutInSeconds: '5',
  };
  expect(await stewards[0].post('/admin/services/webhooks/settings', settings, token)).toMatchObject({
    status: 200,
  });
  for (const [index, { url: hookUrl }] of hooks.entries()) {
    const fields = { name: `hook ${index}`, hookUrl, changeTypes: 'Tested' };
    expect(await stewards[0].post('/admin/services/webhooks/create', fields, token)).toMatchObject({
      status: 200,
    });
  }

  /** The two running processes; undefined while a killed one is being replaced. */
  const slots: (Steward | undefined)[] = [...stewards];
  const acknowledged: string[] = [];
  let allowed = 0;
  let isOver = false;
  let repeats = 0;

  /** Repeats the request, alternating between the processes, until one answers. */
  async function publish(eventId: string, first: number): Promise<void> {
    const fields = { changeType: 'Tested', payload: '{}', eventId };
    for (let turn = first; ; turn += 1) {
      const steward = slots[turn % 2] ?? slots[(turn + 1) % 2];
      const answer = await steward?.post('/admin/services/webhooks/publish', fields, token).catch(() => null);
      if (answer) {
        expect(answer).toMatchObject({ status: 200, body: { eventId, deliveries: receivers } });
        acknowledged.push(eventId);
        return;
      }
      // The only allowed reason for a missing answer is a killed process.
      repeats += 1;
      await pause(10);
    }
  }
  const publishers = [0, 1, 2, 3].map(async (publisher) => {
    for (let number = 0; !isOver; number += 1) {
      if (acknowledged.length < allowed) await publish(`event-${publisher}-${number}`, publisher);
      await pause(200 * random());
    }
  });

  const load = Promise.all(publishers);
  load.catch(() => undefined);

  for (let kill = 0; kill < kills; kill += 1) {
    const slot = kill % 2;
    const victim = slots[slot];
    allowed += eventsPerKill;
    await victim?.kill();
    slots[slot] = undefined;
    // A start may take longer than half a second. Without this wait both processes could be down.
    [slots[slot]] = await Promise.all([start(), pause(killEveryMs)]);
  }
  isOver = true;
  await load;

  const stuck = () => query(`select key, state, due_at from deliveries where state <> 'delivered'`);
  await expect.poll(stuck, { timeout: settledWithinMs, interval: 200 }).toEqual([]);
  for (const { accepted } of hooks) {
    expect(acknowledged.filter((id) => !accepted.has(id))).toEqual([]);
    expect([...accepted.keys()].sort()).toEqual([...acknowledged].sort());
  }
  const arrivals = hooks.flatMap(({ accepted }) => [...accepted.values()]);
  const duplicates = arrivals.reduce((sum, count) => sum + count - 1, 0);
  expect(duplicates).toBeLessThanOrEqual(kills * simultaneousAttempts * receivers);

  const [counted] = await query<Record<string, string>>(
    `select count(*) as deliveries, max(tries) as tries, min(tries) as fewest from (
       select d.key, (select count(*) from attempts a where a.key = d.key) as tries from deliveries d) t`,
  );
  expect(Number(counted?.deliveries)).toBe(acknowledged.length * receivers);
  expect(Number(counted?.tries)).toBeLessThanOrEqual(attemptsAllowed);
  expect(Number(counted?.fewest)).toBe(1);
  expect(await query('select name, unfinished::int from queues')).toEqual([
    { name: 'deliveries', unfinished: 0 },
  ]);
  expect(all.flatMap((steward) => steward.loggedErrors())).toEqual([]);
  // Without this check the test could pass without any load.
  expect(acknowledged.length).toBeGreaterThan(kills * 10);
  expect(repeats).toBeGreaterThan(0);
});
