// Three processes under load, with every fault at once: processes are killed in turn at named points, the database crashes,
// connections of single processes are cut or hang, and an upgrade runs. Nothing acknowledged is lost, nothing is
// stored or counted twice, and an event arrives twice only in the rare case that its attempt was running when its
// process died. CRASH_KILLS sets the number of kills.
import { expect, it } from 'vitest';
import { impatientAddress } from '../kit/postgres.ts';
import {
  type Fleet,
  type Point,
  listFolders,
  startFleet,
  startFolderClient,
  startPublishers,
} from './fleet.ts';
import { timesResumed } from '../upgrades/message-codes.ts';
import {
  changeSettings,
  countPending,
  expectDelivered,
  listDeliveries,
  register,
  startReceiver,
  webhooksPath,
} from './receiver.ts';
import {
  type StewardProcess,
  pause,
  signInEverywhere,
  startSeededPostgres,
  startSteward,
} from './steward.ts';
import { expectPatched, patch, upgrades } from './upgrade.ts';

const kills = Number(process.env.CRASH_KILLS ?? 3);
const isLong = kills >= 10;
/** A long run checks the share of duplicates, which needs many events. */
const eventsPerKill = isLong ? 150 : 60;
/** The others accept so many while the killed process is down. */
const eventsMeanwhile = 10;
const receiverCount = 2;
/** With more, the deliveries would take long after the last event. */
const maxUndelivered = 50;
const attemptsAllowed = 2;
/** The lease of the last killed process must end before its deliveries can be attempted again. */
const settled = { timeout: 60_000, interval: 100 };
/** The kills, the one during the upgrade, the crash of the database, the cut and the hang. */
const faults = kills + 4;
/** At most four attempts for each receiver run at once, and a fault may interrupt all of them. */
const maxDuplicates = faults * 4 * receiverCount;
/** A killed process has a third of the attempts, so the average is lower. */
const maxDuplicatesShare = 0.02;

it('no fault loses or repeats anything', { timeout: 300_000 + kills * 20_000 }, async () => {
  const postgres = await startSeededPostgres();
  const fleet = await startFleet(startSteward, impatientAddress(postgres.url), 3, { UPGRADE_STEP_MS: '60' });
  const token = await signInEverywhere(fleet.running());
  await changeSettings(fleet.at(0), token, {
    notificationAttempts: String(attemptsAllowed),
    notificationElapsedTimeInSeconds: '0',
    numberOfFailures: '10000',
  });
  let onAttempt: () => void = () => undefined;
  const respond = () => {
    onAttempt();
    return pause(5, '204');
  };
  const receivers = await Promise.all(
    Array.from({ length: receiverCount }, () => startReceiver({ respond })),
  );
  const failing = await startReceiver({ respond: () => '500' });
  for (const receiver of receivers) await register(fleet.running(), token, receiver, 'Tested');
  const failingId = await register(fleet.running(), token, failing, 'Broken');

  const tested = startPublishers(fleet, token, {
    isHeldBack: (acknowledged) =>
      receivers.some(({ arrivals }) => acknowledged > arrivals.size + maxUndelivered),
    changeType: 'Tested',
    deliveries: receiverCount,
    clients: 6,
    pauseMs: 30,
  });
  const broken = startPublishers(fleet, token, {
    changeType: 'Broken',
    deliveries: 1,
    clients: 1,
    pauseMs: 100,
  });
  const folders = startFolderClient(fleet, token, true);

  const points: readonly Point[] = [
    (slot, act) => fleet.proxy(slot).atNextTransaction(act),
    (_slot, act) =>
      new Promise<void>((resolve) => {
        onAttempt = () => resolve(act());
      }),
    // The process never gets the answer to the commit of an event.
    (slot, act) => fleet.proxy(slot).loseNextCommit('Tested-').then(act),
  ];
  await injectFaults(fleet, postgres, points, () => tested.acknowledged.length);
  await folders.stop();
  await upgradeWithKill(fleet, token);
  await Promise.all([tested.stop(), broken.stop()]);
  for (const steward of fleet.running()) await expect.poll(() => countPending(steward), settled).toBe(0);

  for (const receiver of receivers) await expectDelivered(fleet.at(0), token, receiver, tested.acknowledged);
  const failures = await listDeliveries(fleet.at(0), token, failingId);
  expect(failures.map(({ event }) => event.id).sort()).toEqual([...broken.acknowledged].sort());
  expect(failures.filter(({ state }) => state !== 'failed')).toEqual([]);
  expect(failures.filter(({ attempts }) => attempts.length !== attemptsAllowed)).toEqual([]);
  for (const steward of fleet.running()) {
    const count = async () =>
      ((await steward.get(`${webhooksPath}/${failingId}`, token)).body.failures as { count: number }).count;
    await expect.poll(count).toBe(failures.length);
  }
  for (const steward of fleet.running()) {
    const missing = async () => {
      const stored = await listFolders(steward, token);
      return folders.acknowledged.filter((name) => !stored.includes(name));
    };
    await expect.poll(missing, settled).toEqual([]);
  }
  const { body } = await fleet.at(1).get('/admin/system/audit?operation=system/jobs/%7Bjob%7D/end', token);
  expect(body.entries).toMatchObject([{ user: null, outcome: 'success', count: 1 }]);

  const deliveries = receiverCount * tested.acknowledged.length;
  const duplicates = receivers.reduce((sum, receiver) => sum + receiver.duplicates(), 0);
  const repeats = tested.repeats() + broken.repeats();
  if (process.env.CRASH_KILLS !== undefined)
    process.stdout.write(
      `${kills} kills: ${deliveries} deliveries, ${duplicates} duplicates, ${failures.length} failures, ${repeats} repeated requests\n`,
    );
  expect(duplicates).toBeLessThanOrEqual(maxDuplicates);
  if (isLong) expect(duplicates / deliveries).toBeLessThan(maxDuplicatesShare);
  expect(fleet.loggedErrors()).toEqual([]);
  // Without these checks the test could pass without any load.
  expect(broken.acknowledged.length).toBeGreaterThan(kills * 5);
  expect(folders.acknowledged.length).toBeGreaterThan(kills * 5);
  expect(tested.repeats()).toBeGreaterThan(0);
});

type Restartable = { kill: () => Promise<void>; start: () => Promise<void> };

/** Kills the processes in turn. The other faults happen between the first and the second half of the kills. */
async function injectFaults(
  fleet: Fleet<StewardProcess>,
  postgres: Restartable,
  points: readonly Point[],
  countEvents: () => number,
): Promise<void> {
  const accepted = (before: number, events: number) =>
    expect.poll(countEvents, { timeout: 60_000, interval: 20 }).toBeGreaterThan(before + events);
  for (let kill = 0; kill < kills; kill += 1) {
    const slot = kill % 3;
    const before = countEvents();
    let hung = Promise.resolve();
    if (kill === Math.floor(kills / 2)) {
      await postgres.kill();
      for (const { readiness } of fleet.running()) await expect.poll(readiness, settled).toBe(503);
      await postgres.start();
      for (const { readiness } of fleet.running()) await expect.poll(readiness, settled).toBe(200);
      const [cut, hanging] = [(slot + 1) % 3, (slot + 2) % 3];
      fleet.proxy(cut).cut();
      await fleet.proxy(cut).atNextTransaction(() => undefined);
      const resume = fleet.proxy(hanging).hang();
      hung = expect
        .poll(fleet.at(hanging).readiness, settled)
        .toBe(503)
        .then(() => resume('continue'));
    }
    await fleet.killAt(points[kill % points.length] as Point, [slot]);
    await accepted(countEvents(), eventsMeanwhile);
    await fleet.start(slot);
    await hung;
    await accepted(before, eventsPerKill);
  }
}

/** Starts an upgrade and kills its process. Another process completes it. */
async function upgradeWithKill(fleet: Fleet<StewardProcess>, token: string): Promise<void> {
  // After the message that a workload was updated.
  const killed = fleet.killAt((slot, act) =>
    fleet.proxy(slot).loseNextCommit('was updated with the image').then(act),
  );
  const begin = async () => (await fleet.at(0).post(`${upgrades}/upgrade`, patch, token)).status;
  await expect.poll(begin, settled).toBe(200);
  await fleet.start(await killed);
  expect(timesResumed(await expectPatched(fleet.at(1), token))).toBeGreaterThan(0);
}
