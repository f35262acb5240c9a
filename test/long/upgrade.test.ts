// Upgrades whose process is killed or suspended beyond its lease while another process can take over: each ends in
// success, with the same messages except 2902. The moment is random here; upgrade-sweep.test.ts covers every step.
import { expect, it } from 'vitest';
import { builtInManifest } from '../../src/upgrades/versions/built-in-manifest.ts';
import {
  type Message,
  codesOfPatch,
  codesOfRelease,
  expectOneRun,
  timesResumed,
} from '../upgrades/message-codes.ts';
import {
  type StewardProcess,
  createRandom,
  createSeededDatabase,
  pause,
  signInEverywhere,
  startSteward,
} from '../process/steward.ts';

const stepMs = 40;
const upgrades = '/admin/system/upgrades';
/** The lease of a dead process plus the time to notice, many times over for a busy machine. */
const takeOverMs = 60_000;

type Status = { status: { state: string; messages: Message[] }; messageCount?: number };

const statusAt = async (steward: StewardProcess, token: string, query = '') =>
  (await steward.get(`${upgrades}?${query}`, token)).body as unknown as Status;

const patch = { id: 'pat_17022022_1250', version: '10.9.1.1250' };
const patches = { id: 'pat_28042022_1260', version: '10.9.1.1260' };
const release = { id: 'rel_14072022_2632', version: '11.0.0.2632' };

/** The number of deployments of each component. */
function countComponents(version: string): number[] {
  const { containers = [], newContainers = [] } = builtInManifest.find(({ id }) => id === version) ?? {};
  const counts: [string, number][] = [];
  for (const { name } of [...containers, ...newContainers]) {
    const component = name.split('_')[0] ?? '';
    const last = counts.at(-1);
    if (last?.[0] === component) last[1] += 1;
    else counts.push([component, 1]);
  }
  return counts.map(([, count]) => count);
}

/** What happens to the process that runs the job. `takenOver` resolves when another process has it. */
type Crash = (victim: StewardProcess, takenOver: Promise<unknown>) => Promise<void>;

const kill: Crash = (victim) => victim.kill();
/** Suspends the process until another has the job; then it continues where it was. */
const suspend: Crash = async ({ child }, takenOver) => {
  child.kill('SIGSTOP');
  await takenOver.finally(() => child.kill('SIGCONT'));
};

async function upgradeWithCrashes(
  target: { id: string; version: string },
  crashes: readonly Crash[],
  random: () => number,
): Promise<Message[]> {
  const { url } = await createSeededDatabase();
  const start = () => startSteward(url, { UPGRADE_STEP_MS: String(stepMs) });
  const all = await Promise.all([start(), start()]);
  const token = await signInEverywhere(all);
  const fields = {
    versionManifest: JSON.stringify({ id: target.id }),
    ...(target === release ? { upgradeSettings: '{}', licenseFile: new Blob(['{"license":true}']) } : {}),
  };
  expect(await all[0].post(`${upgrades}/upgrade`, fields, token)).toMatchObject({ status: 200 });

  // There are never more than two processes while a job runs, so the one that takes it over is the other one.
  let [owner, successor] = all;
  let deaths = 0;
  for (const crash of crashes) {
    // The replica of the successor may not have the job yet.
    const countMessages = async () => (await statusAt(successor, token)).messageCount ?? 0;
    await expect.poll(countMessages).toBeGreaterThan(0);
    const messageCount = await countMessages();
    await statusAt(successor, token, `after=${messageCount + Math.floor(6 * random())}&wait=30`);
    await pause(stepMs * random());
    if ((await statusAt(successor, token)).status.state !== 'in_progress') break;
    // The process may finish the job just before its death.
    const isResumedOrOver = async () => {
      const { state, messages } = (await statusAt(successor, token)).status;
      return state !== 'in_progress' || timesResumed(messages) === deaths + 1;
    };
    const takenOver = expect.poll(isResumedOrOver, { timeout: takeOverMs, interval: 50 }).toBe(true);
    await Promise.all([crash(owner, takenOver), takenOver]);
    const former = owner;
    owner = successor;
    if (timesResumed((await statusAt(owner, token)).status.messages) === deaths) break;
    deaths += 1;
    successor = crash === kill ? await start() : former;
    if (crash === kill) all.push(successor);
  }
  const isRunning = async () => (await statusAt(owner, token)).status.state === 'in_progress';
  await expect.poll(isRunning, { timeout: takeOverMs, interval: 100 }).toBe(false);
  const { status } = await statusAt(owner, token);
  expect(status.state).toBe('success');
  expect(deaths).toBeGreaterThan(0);
  expect(timesResumed(status.messages)).toBe(deaths);
  for (const member of all.filter(({ child }) => child.signalCode === null)) {
    const version = async () => (await member.get('/admin', token)).body.fullVersion;
    await expect.poll(version).toBe(target.version);
    expect((await member.get('/admin/mode', token)).body.isReadOnly).toBe(false);
  }
  expect(all.flatMap((steward) => steward.loggedErrors())).toEqual([]);
  return status.messages;
}

it('an upgrade succeeds although its processes are killed or suspended', async () => {
  const random = createRandom();
  const [onePatch, twoPatches, oneRelease] = await Promise.all([
    upgradeWithCrashes(patch, [kill, suspend], random),
    upgradeWithCrashes(patches, [kill, kill], random),
    upgradeWithCrashes(release, [suspend, kill], random),
  ]);
  expectOneRun(onePatch, codesOfPatch(4));
  expectOneRun(twoPatches, codesOfPatch(4 + 5));
  expectOneRun(oneRelease, codesOfRelease(countComponents(release.id)));
});
