// Upgrades whose process is killed, or sleeps through its lease, while another one is there to take them up: each ends in success,
// as if nothing had happened but for 2902 (contract 6, "Runs"). Where exactly is left to random; upgrade-sweep.test.ts leaves out no place.
import { expect, it } from 'vitest';
import { builtInManifest } from '../../src/upgrades/built-in-manifest.ts';
import { createDatabase } from '../kit/postgres.ts';
import { type Message, codesOfPatch, codesOfRelease, expectOneRun, timesResumed } from './messages.ts';
import { type Steward, connect, createRandom, pause, signInEverywhere, startSteward } from './steward.ts';

const stepMs = 40;
const upgrades = '/admin/system/upgrades';
/** The lease of a dead one, until the other has noticed; and for a busy machine as long again. */
const takenUpWithinMs = 30_000;

type Status = { status: { state: string; messages: Message[] }; messageCount?: number };

const statusAt = async (steward: Steward, token: string, query = '') =>
  (await steward.get(`${upgrades}?${query}`, token)).body as unknown as Status;

const patch = { id: 'pat_17022022_1250', version: '10.9.1.1250' };
const patches = { id: 'pat_28042022_1260', version: '10.9.1.1260' };
const release = { id: 'rel_14072022_2632', version: '11.0.0.2632' };

/** How many deployments each of its components has. */
function componentsOf(version: string): number[] {
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

/** What happens to the process that has the job; `takenUp` when it no longer has. */
type Way = (victim: Steward, takenUp: Promise<unknown>) => Promise<void>;

const kill: Way = (victim) => victim.kill();
/** It wakes up in the middle of what it was doing, and is none the wiser. */
const stun: Way = async ({ child }, takenUp) => {
  child.kill('SIGSTOP');
  await takenUp.finally(() => child.kill('SIGCONT'));
};

/** Processes on a database of their own, known by the names they have there. */
async function startGroup(count: number) {
  const { url } = await createDatabase();
  const query = await connect(url);
  const members = new Map<string, Steward>();
  const all: Steward[] = [];

  async function start(): Promise<void> {
    const steward = await startSteward(url, { UPGRADE_STEP_MS: String(stepMs) });
    const names = await query<{ id: string }>('select id from processes');
    const name = names.find(({ id }) => !members.has(id))?.id ?? '';
    members.set(name, steward);
    all.push(steward);
  }
  for (let started = 0; started < count; started += 1) await start();
  return { query, members, start, all };
}

async function upgradeThrough(
  target: { id: string; version: string },
  ways: readonly Way[],
  random: () => number,
): Promise<Message[]> {
  const { query, members, start, all } = await startGroup(2);
  const token = await signInEverywhere(all);
  const fields = {
    versionManifest: JSON.stringify({ id: target.id }),
    ...(target === release ? { upgradeSettings: '{}', licenseFile: new Blob(['{"license":true}']) } : {}),
  };
  expect(await all[0]?.post(`${upgrades}/upgrade`, fields, token)).toMatchObject({ status: 200 });

  let deaths = 0;
  for (const way of ways) {
    const [job] = await query<{ runner: string }>('select runner from jobs');
    const owner = members.get(job?.runner ?? '') as Steward;
    const heir = [...members.values()].find((member) => member !== owner) as Steward;
    // It may not have heard of the job yet.
    const known = async () => (await statusAt(heir, token)).messageCount ?? 0;
    await expect.poll(known).toBeGreaterThan(0);
    const messageCount = await known();
    await statusAt(heir, token, `after=${messageCount + Math.floor(6 * random())}&wait=30`);
    await pause(stepMs * random());
    if ((await statusAt(heir, token)).status.state !== 'in_progress') break;
    deaths += 1;
    // What it did last may have been the end of the job, of which nothing is left to be taken up.
    const hasFinished = async () => {
      const [now] = await query<{ state: string; runner: string }>('select state, runner from jobs');
      return now?.state !== 'in_progress' && now?.runner === job?.runner;
    };
    const timesTakenUp = async () =>
      (await hasFinished()) ? deaths : timesResumed((await statusAt(heir, token)).status.messages);
    const takenUp = expect.poll(timesTakenUp, { timeout: takenUpWithinMs, interval: 50 }).toBe(deaths);
    const isOver = way(owner, takenUp);
    if (way === kill) await start();
    await Promise.all([isOver, takenUp]);
    if (way === kill) members.delete(job?.runner ?? '');
    if (await hasFinished()) {
      deaths -= 1;
      break;
    }
  }
  const last = [...members.values()].at(-1) as Steward;
  const isRunning = async () => (await statusAt(last, token)).status.state === 'in_progress';
  await expect.poll(isRunning, { timeout: takenUpWithinMs, interval: 100 }).toBe(false);
  const { status } = await statusAt(last, token);
  expect(status.state).toBe('success');
  expect(deaths).toBeGreaterThan(0);
  expect(timesResumed(status.messages)).toBe(deaths);
  for (const member of members.values()) {
    const version = async () => (await member.get('/admin', token)).body.fullVersion;
    await expect.poll(version).toBe(target.version);
    expect((await member.get('/admin/mode', token)).body.isReadOnly).toBe(false);
  }
  expect(all.flatMap((steward) => steward.complaints())).toEqual([]);
  return status.messages;
}

it('ends in success, whoever dies', { timeout: 180_000 }, async () => {
  const random = createRandom();
  const [one, two, whole] = await Promise.all([
    upgradeThrough(patch, [kill, stun], random),
    upgradeThrough(patches, [kill, kill], random),
    upgradeThrough(release, [stun, kill], random),
  ]);
  expectOneRun(one, codesOfPatch(4));
  expectOneRun(two, codesOfPatch(4 + 5));
  expectOneRun(whole, codesOfRelease(componentsOf(release.id)));
});
