// Two processes deliver under load, and one or the other is killed every half second: what was acknowledged arrives, nothing stays
// behind, and what arrives twice was under way when a process was killed (contract 5: at least once).
import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { type Steward, connect, createRandom, pause, signInEverywhere, startSteward } from './steward.ts';

const kills = 20;
const killEveryMs = 500;
const receivers = 3;
/** So many that some are always under way, and few enough to be delivered soon once the killing is over. */
const eventsPerKill = 40;
const attemptsAllowed = 5;
/** Of one receiver at the same time, by all processes together (contract 5). */
const attemptsUnderWay = 4;
/** For the lease of the last one killed to end, and what waited for that to be delivered. */
const leaseMs = 10_000;
const settledWithinMs = leaseMs + 15_000;

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** Takes its time, and fails the first attempt of some events; counts what it has taken. */
async function startReceiver(random: () => number) {
  const taken = new Map<string, number>();
  const refused = new Set<string>();
  const server = createServer((request, response) => {
    const id = request.headers['webhook-id'] as string;
    const refuses = !refused.has(id) && !taken.has(id) && random() < 0.1;
    const takesMs = 5 + 20 * random();
    request.resume().on('end', () => {
      if (refuses) refused.add(id);
      else taken.set(id, (taken.get(id) ?? 0) + 1);
      void pause(takesMs).then(() => response.writeHead(refuses ? 500 : 204).end());
    });
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`, taken, refused };
}

it('loses no event, and leaves none behind', { timeout: 240_000 }, async () => {
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
  const told = await Promise.all(Array.from({ length: receivers }, () => startReceiver(random)));
  const settings = {
    notificationAttempts: String(attemptsAllowed),
    notificationElapsedTimeInSeconds: '1',
    notificationTimeOutInSeconds: '5',
  };
  expect(await stewards[0].post('/admin/services/webhooks/settings', settings, token)).toMatchObject({
    status: 200,
  });
  for (const [index, { url: hookUrl }] of told.entries()) {
    const fields = { name: `hook ${index}`, hookUrl, changeTypes: 'Tested' };
    expect(await stewards[0].post('/admin/services/webhooks/create', fields, token)).toMatchObject({
      status: 200,
    });
  }

  /** What each place has at the moment: nothing while a new one starts. */
  const places: (Steward | undefined)[] = [...stewards];
  const acknowledged: string[] = [];
  let allowed = 0;
  let isOver = false;
  let repeats = 0;

  /** As a client does: asks again, and the other process, until there is an answer. */
  async function publish(eventId: string, first: number): Promise<void> {
    const fields = { changeType: 'Tested', payload: '{}', eventId };
    for (let turn = first; ; turn += 1) {
      const steward = places[turn % 2] ?? places[(turn + 1) % 2];
      const answer = await steward?.post('/admin/services/webhooks/publish', fields, token).catch(() => null);
      if (answer) {
        expect(answer).toMatchObject({ status: 200, body: { eventId, deliveries: receivers } });
        acknowledged.push(eventId);
        return;
      }
      // It was killed before it could answer: nothing else is an excuse.
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
    const place = kill % 2;
    const victim = places[place];
    allowed += eventsPerKill;
    await victim?.kill();
    places[place] = undefined;
    // A start may take longer than half a second: the other one is not killed before this one is there.
    [places[place]] = await Promise.all([start(), pause(killEveryMs)]);
  }
  isOver = true;
  await load;

  const stuck = () => query(`select key, state, due_at from deliveries where state <> 'delivered'`);
  await expect.poll(stuck, { timeout: settledWithinMs, interval: 200 }).toEqual([]);
  for (const { taken } of told) {
    expect(acknowledged.filter((id) => !taken.has(id))).toEqual([]);
    expect([...taken.keys()].sort()).toEqual([...acknowledged].sort());
  }
  const arrivals = told.flatMap(({ taken }) => [...taken.values()]);
  const duplicates = arrivals.reduce((sum, count) => sum + count - 1, 0);
  expect(duplicates).toBeLessThanOrEqual(kills * attemptsUnderWay * receivers);

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
  expect(all.flatMap((steward) => steward.complaints())).toEqual([]);
  // There was something to lose.
  expect(acknowledged.length).toBeGreaterThan(kills * 10);
  expect(repeats).toBeGreaterThan(0);
});
