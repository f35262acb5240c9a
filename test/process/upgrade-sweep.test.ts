// A job whose process dies before it reads the plan, in every step, and before and after each step is recorded: the
// other process takes over each time, and the messages are those of a job without deaths. The dead processes wake
// up later and change nothing.
import { expect, it } from 'vitest';
import { newestJob } from '../../src/upgrades/jobs/job-table.ts';
import { laterVersions, freshRelease } from '../kit/sample-manifest.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import {
  codesOfFailedPatch,
  codesOfPatch,
  codesOfRelease,
  codesOfRollback,
  expectOneRun,
} from '../upgrades/message-codes.ts';
import { pollOptions, startPair } from './pair.ts';

/** Versions with every kind of step and few containers. */
const small = (version: Version, names: string[]): Version => ({
  ...version,
  containers: names.map((name) => ({ name, image: `${name}:${version.build}`, checksum: 'N/A' })),
  newContainers: [],
  newLicensesRequired: false,
});
const byId = (id: string) => laterVersions.find((version) => version.id === id) as Version;
const start = small(freshRelease, ['A_1', 'A_2', 'B_1']);
const patch = small(byId('pat_17022022_1250'), ['A_1', 'B_1', 'A_2']);
const release = small(byId('rel_14072022_2632'), ['A_1', 'A_2', 'B_1', 'C_1']);
const patchOfRelease = small(byId('pat_22092022_2650'), ['A_1', 'C_1']);
const manifest = [patch, release, patchOfRelease];

const startSmallPair = (fails?: (workload: string) => boolean) =>
  startPair({ start, manifest, ...(fails && { fails }) });

it('a patch succeeds', async () => {
  const { begin, sweep } = await startSmallPair();
  await begin('upgrade', patch.id);
  const { messages, deaths, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(messages, codesOfPatch(3));
  expect(after.patches.map(({ id }) => id)).toEqual([patch.id]);
  // Four deaths at each of its 18 steps, and one before the end.
  expect(deaths).toBeGreaterThanOrEqual(4 * 18 + 1);
});

it('a release with a patch succeeds', async () => {
  const { begin, sweep } = await startSmallPair();
  await begin('upgrade', release.id, true);
  const { messages, deaths, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(messages, codesOfRelease([2, 1, 1], 2));
  expect(after.release.id).toBe(release.id);
  expect(deaths).toBeGreaterThan(100);
});

it.each(['nothing is stored', 'the answer is lost'] as const)(
  'a patch succeeds although the database becomes unavailable during the take-over: %s',
  async (outage) => {
    const { begin, pair, observer, declare, isOver, readMessages } = await startSmallPair();
    await begin('upgrade', patch.id);
    for (const peer of pair) peer.failNextUpdate(outage);
    await declare('dead', observer);
    await expect.poll(isOver, pollOptions).toBe(true);
    expectOneRun(await readMessages(), codesOfPatch(3));
    for (const { crashes } of pair) expect(crashes).toEqual([]);
  },
);

it('a process that wakes up after the job has ended finds no plan', async () => {
  const { begin, pair, observer, declare, isOver, readJob, readMessages } = await startSmallPair();
  await begin('upgrade', patch.id);
  const halts = pair.map((peer) => peer.haltAt('before the plan').then(() => peer));
  await declare('dead', observer);
  const owner = await Promise.race(halts);
  for (const peer of pair) if (peer !== owner) peer.runFreely();
  owner.die();
  await declare('dead', owner.store);
  await expect.poll(isOver, pollOptions).toBe(true);
  const ended = await readJob();
  expect(ended).toMatchObject([{ state: 'success' }]);
  expect(await observer.jobs.plan(observer.read(newestJob)?.id ?? '')).toBeUndefined();

  await owner.wakeUp();
  await expect.poll(owner.ends, pollOptions).toBe(1);
  expect(await readJob()).toEqual(ended);
  expectOneRun(await readMessages(), codesOfPatch(3));
  for (const { crashes } of pair) expect(crashes).toEqual([]);
});

it('a rollback succeeds', async () => {
  const { begin, sweep } = await startSmallPair();
  await begin('upgrade', patch.id);
  await sweep();
  await begin('rollback', start.id);
  const { messages, state, after } = await sweep();
  expect(state).toBe('success');
  expectOneRun(messages, codesOfRollback(3));
  expect(after.patches).toEqual([]);
});

it('a failing patch reverts its workloads', async () => {
  const { begin, sweep } = await startSmallPair((workload) => workload === 'B_1');
  await begin('upgrade', patch.id);
  const { messages, state, after } = await sweep();
  expect(state).toBe('failed');
  expectOneRun(messages, codesOfFailedPatch(2));
  expect(after.patches).toEqual([]);
});
