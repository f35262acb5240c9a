// Two processes deliver under load, and one of them is killed every half second: every acknowledged event arrives,
// no delivery stays pending, and an event arrives twice only if its attempt was running when a process was killed.
import { expect, it } from 'vitest';
import {
  changeSettings,
  countPending,
  listDeliveries,
  register,
  startReceiver,
} from '../process/receiver.ts';
import {
  type StewardProcess,
  createRandom,
  createSeededDatabase,
  pause,
  signInEverywhere,
  startSteward,
} from '../process/steward.ts';

const kills = 10;
const killEveryMs = 500;
const receivers = 3;
/** Enough for attempts to run all the time, and few enough to be delivered soon after the last kill. */
const eventsPerKill = 40;
const attemptsAllowed = 5;
/** The limit of simultaneous attempts to one receiver, over all processes. */
const simultaneousAttempts = 4;
/** The lease of the last killed process must end before its deliveries can be attempted again. */
const settledWithinMs = 60_000;

/** A slow receiver that refuses the first attempt of some events and counts what it accepts. */
async function startSlowReceiver(random: () => number) {
  const accepted = new Map<string, number>();
  const refused = new Set<string>();
  const receiver = await startReceiver({
    respond: (id) => {
      const refuses = !refused.has(id) && !accepted.has(id) && random() < 0.1;
      if (refuses) refused.add(id);
      else accepted.set(id, (accepted.get(id) ?? 0) + 1);
      return pause(5 + 20 * random(), refuses ? '500' : '204');
    },
  });
  return { ...receiver, accepted };
}

it('no event is lost, and no delivery stays pending', async () => {
  const random = createRandom();
  const { url } = await createSeededDatabase();
  const all: StewardProcess[] = [];
  const start = async () => {
    const steward = await startSteward(url);
    all.push(steward);
    return steward;
  };
  const stewards = await Promise.all([start(), start()]);
  const token = await signInEverywhere(stewards);
  await changeSettings(stewards[0], token, {
    notificationAttempts: String(attemptsAllowed),
    notificationElapsedTimeInSeconds: '1',
    notificationTimeOutInSeconds: '5',
  });
  const hooks = await Promise.all(Array.from({ length: receivers }, () => startSlowReceiver(random)));
  const ids: string[] = [];
  for (const hook of hooks) ids.push(await register(stewards, token, hook, 'Tested'));

  /** The two running processes; undefined while a killed one is being replaced. */
  const slots: (StewardProcess | undefined)[] = [...stewards];
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

  const [survivor] = slots as [StewardProcess];
  const listAll = async () =>
    (await Promise.all(ids.map((id) => listDeliveries(survivor, token, id)))).flat();
  const listStuck = async () => (await listAll()).filter(({ state }) => state !== 'delivered');
  await expect.poll(listStuck, { timeout: settledWithinMs, interval: 500 }).toEqual([]);
  for (const { accepted, badSignatures } of hooks) {
    expect(acknowledged.filter((id) => !accepted.has(id))).toEqual([]);
    expect([...accepted.keys()].sort()).toEqual([...acknowledged].sort());
    expect(badSignatures).toEqual([]);
  }
  const arrivals = hooks.flatMap(({ accepted }) => [...accepted.values()]);
  const duplicates = arrivals.reduce((sum, count) => sum + count - 1, 0);
  expect(duplicates).toBeLessThanOrEqual(kills * simultaneousAttempts * receivers);

  const listed = await listAll();
  expect(listed).toHaveLength(acknowledged.length * receivers);
  expect(Math.max(...listed.map(({ attempts }) => attempts.length))).toBeLessThanOrEqual(attemptsAllowed);
  expect(Math.min(...listed.map(({ attempts }) => attempts.length))).toBe(1);
  for (const steward of slots as StewardProcess[]) await expect.poll(() => countPending(steward)).toBe(0);
  expect(all.flatMap((steward) => steward.loggedErrors())).toEqual([]);
  // Without this check the test could pass without any load.
  expect(acknowledged.length).toBeGreaterThan(kills * 10);
  expect(repeats).toBeGreaterThan(0);
});
