// A scheduled upgrade with several processes, two of which are killed at its start: it starts once, and succeeds.
import { expect, it } from 'vitest';
import { Fleet } from './fleet.ts';
import {
  type Client,
  type StewardProcess,
  createSeededDatabase,
  pause,
  signInEverywhere,
  startSteward,
} from './steward.ts';
import { expectPatched, patch, upgrades } from './upgrade.ts';

const skewMs = 3_600_000;

/** The clocks of two of them are wrong: only that of the database counts. */
async function startThree() {
  const fleet = new Fleet<StewardProcess>((await createSeededDatabase()).url, startSteward);
  const join = (aheadMs: number) => {
    const clock = `const { now } = Date; Date.now = () => now() + ${aheadMs};`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(clock)}`;
    return fleet.join({ UPGRADE_STEP_MS: '20', NODE_OPTIONS });
  };
  await Promise.all([join(0), join(skewMs), join(-skewMs)]);
  return { fleet, token: await signInEverywhere(fleet.running()) };
}

/** Schedules the patch to start soon, and returns its start. */
async function schedule(fleet: Fleet<StewardProcess>, token: string): Promise<number> {
  let startAt = 0;
  const request = async () => {
    startAt = Date.now() + 1_000;
    const sent = fleet.post(`${upgrades}/upgrade`, { ...patch, startAt: String(startAt) }, token);
    // If the machine stalls now, the process is killed at the start before it has answered.
    return (await sent.catch(() => undefined))?.status;
  };
  // The start is refused if the machine has stalled until it was in the past.
  await expect.poll(request).not.toBe(400);
  return startAt;
}

async function expectOneStart(steward: Client, token: string, startAt: number): Promise<void> {
  const [, started] = await expectPatched(steward, token, [2908]);
  expect(started?.when).toBeGreaterThanOrEqual(startAt);
  expect(started?.when).toBeLessThan(startAt + skewMs / 2);
}

it(
  'starts once with three processes, two of which are killed at its start',
  { timeout: 120_000 },
  async () => {
    const { fleet, token } = await startThree();
    // The process that starts it does not get the answer to the commit.
    const killed = fleet.killAt((slot, act) => fleet.proxy(slot).loseNextCommit('Upgrade from').then(act));
    const startAt = await schedule(fleet, token);
    await killed;
    await fleet.killAt((slot, act) => fleet.proxy(slot).atNextTransaction(act));
    await expectOneStart(fleet.running()[0] as Client, token, startAt);
  },
);

it('starts once when all processes were down at its time', { timeout: 120_000 }, async () => {
  const { fleet, token } = await startThree();
  const startAt = await schedule(fleet, token);
  await Promise.all([0, 1, 2].map((slot) => fleet.kill(slot)));
  await pause(Math.max(0, startAt - Date.now()));
  for (const steward of await Promise.all([fleet.start(0), fleet.start(1)]))
    await expectOneStart(steward, token, startAt);
});
