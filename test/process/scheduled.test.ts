// A scheduled upgrade with several processes, some of which are killed around its start: it starts once, and succeeds.
import { expect, it } from 'vitest';
import { type Message, codesOfPatch, expectOneRun } from '../upgrades/message-codes.ts';
import {
  type StewardProcess,
  createRandom,
  createSeededDatabase,
  pause,
  signInEverywhere,
  startSteward,
} from './steward.ts';

const upgrades = '/admin/system/upgrades';
const patch = { versionManifest: '{"id":"pat_17022022_1250"}' };
const ended = { timeout: 60_000, interval: 100 };

type Status = { status: { state: string; messages: Message[] } };

const statusAt = async (steward: StewardProcess, token: string) =>
  (await steward.get(upgrades, token)).body as unknown as Status;

/** The clocks of two of them are wrong: only that of the database counts. */
async function startThree() {
  const { url } = await createSeededDatabase();
  const start = (aheadMs = 0) => {
    const clock = `const { now } = Date; Date.now = () => now() + ${aheadMs};`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(clock)}`;
    return startSteward(url, { UPGRADE_STEP_MS: '20', NODE_OPTIONS });
  };
  const all = await Promise.all([start(), start(90_000), start(-90_000)]);
  return { start, all, token: await signInEverywhere(all) };
}

/** Schedules the patch `aheadMs` ahead, and returns its start. */
async function schedule(steward: StewardProcess, token: string, aheadMs: number): Promise<number> {
  const startAt = Date.now() + aheadMs;
  const { status } = await steward.post(`${upgrades}/upgrade`, { ...patch, startAt: String(startAt) }, token);
  expect(status).toBe(200);
  return startAt;
}

function expectOneStart({ status: { messages } }: Status): void {
  expectOneRun(messages, [2908, ...codesOfPatch(4)]);
}

it(
  'starts once with three processes, two of which are killed around its time',
  { timeout: 120_000 },
  async () => {
    const random = createRandom();
    const { all, token } = await startThree();
    const [victim, survivor, other] = all;
    const victims = [victim, other];
    const startAt = await schedule(survivor, token, 1500);
    for (const victim of victims) {
      await pause(Math.max(0, startAt - Date.now() - 50 + 150 * random()));
      await victim.kill();
    }
    await expect.poll(async () => (await statusAt(survivor, token)).status.state, ended).toBe('success');
    expectOneStart(await statusAt(survivor, token));
    const started = (await statusAt(survivor, token)).status.messages[1];
    expect(started?.when).toBeGreaterThanOrEqual(startAt);
    expect(started?.when).toBeLessThan(startAt + 30_000);
  },
);

it('starts once when all processes were down at its time', { timeout: 120_000 }, async () => {
  const { start, all, token } = await startThree();
  const startAt = await schedule(all[0], token, 1000);
  await Promise.all(all.map((steward) => steward.kill()));
  await pause(Math.max(0, startAt + 500 - Date.now()));
  const back = await Promise.all([start(), start()]);
  for (const steward of back)
    await expect.poll(async () => (await statusAt(steward, token)).status.state, ended).toBe('success');
  expectOneStart(await statusAt(back[0], token));
});
