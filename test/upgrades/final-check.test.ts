// The final check of a resumed job: it repairs the workloads that differ, and records them when it ends.
import { expect, it } from 'vitest';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import type { Server } from '../kit/server.ts';
import { type Status, admin, patch1, upgrades, useJobs } from './jobs-kit.ts';

let server: Server;
const { start, upgrade, status } = useJobs((started) => (server = started));

const names = ['GATEWAY_INGRESS', 'GATEWAY_PROXY', 'SECURITY_DIRECTORY'];
const more = ['SECURITY_TOKENS', 'STORE_QUEUE'];
const release = {
  id: 'rel',
  type: 'release',
  version: '10.9.2',
  build: '2000',
  previousReleaseBuild: '1234',
  containers: [...names, ...more].map((name) => ({ name, image: `${name}:2` })),
};

async function finish(): Promise<Status> {
  for (let seconds = 0; ; seconds += 1) {
    const now = await status();
    if (now.status.state !== 'in_progress') return now;
    expect(seconds).toBeLessThan(3000);
    await server.runtime.advance(1000);
  }
}

/** Steps take no time, except the repair of the workloads in `differing`, which takes three seconds each. */
async function failAtCheck(differing: Set<string>) {
  const refusing = new Set<string>();
  const simulated = createSimulatedExecutor({ runtime: timelessRuntime, stepMs: 0, failures: new Map() });
  const check: Executor['check'] = async (workloads, _which, { signal }, repaired) => {
    const found = workloads.filter(({ name }) => differing.has(name));
    if (!repaired && found.length > 0) throw new Error(found.map(({ name }) => `${name} differs.`).join(' '));
    for (const workload of found) {
      await server.runtime.sleep(3000, signal);
      if (refusing.delete(workload.name)) throw new Error(`${workload.name} is refused.`);
      differing.delete(workload.name);
      repaired?.push({ workload, isPatched: workload.name !== 'GATEWAY_PROXY' });
    }
  };
  await start({ UPGRADE_STEP_TIMEOUT_SECONDS: '10' }, { executor: { ...simulated, check } });
  const manifestFile = { name: 'm.json', content: JSON.stringify([release]) };
  await server.postParts(`${upgrades}/importManifest`, { manifestFile }, admin);
  return { refusing, fail: failOf(differing) };
}

/** Waits until the job has failed at its check. */
const failOf = (differing: ReadonlySet<string>) => async () => {
  const failed = await finish();
  expect(failed.status.messages.findLast(({ code }) => code === 2901)?.message).toBe(
    `The job failed at the step "Check all workloads": ${[...differing].map((name) => `${name} differs.`).join(' ')}`,
  );
  const resume = () => server.post(`/admin/system/jobs/${failed.jobId}/resume`, { token: admin });
  return { failed, resume };
};

const after = (seen: Status, now: Status) => now.status.messages.slice(seen.messageCount);

it('of a resumed release repairs the workloads that differ, and records all of them when it ends', async () => {
  const { fail } = await failAtCheck(new Set(names));
  await upgrade(release.id, { upgradeSettings: '{}' });
  const { failed, resume } = await fail();
  await resume();
  await server.runtime.advance(8000);
  expect(after(failed, await status()).map(({ code }) => code)).toEqual([2902, 2165]);
  const done = await finish();
  expect(done.status.state).toBe('success');
  expect(after(failed, done).map(({ code }) => code)).toEqual([
    2902, 2165, 2038, 2038, 2038, 2166, 2011, 2012,
  ]);
  expect(
    after(failed, done)
      .filter(({ code }) => code === 2038)
      .map(({ message }) => message),
  ).toEqual([
    'The workload GATEWAY_INGRESS was updated with the image GATEWAY_INGRESS:2.',
    'The workload GATEWAY_PROXY already has the image GATEWAY_PROXY:2.',
    'The workload SECURITY_DIRECTORY was updated with the image SECURITY_DIRECTORY:2.',
  ]);
});

it('records the workloads that it has repaired if a later one cannot be repaired, or its time is over', async () => {
  const { refusing, fail } = await failAtCheck(new Set([...names, ...more]));
  await upgrade(release.id, { upgradeSettings: '{}' });
  const { failed, resume } = await fail();
  refusing.add('GATEWAY_PROXY');
  await resume();
  const refused = await finish();
  expect(refused.status.state).toBe('failed');
  expect(after(failed, refused).map(({ code }) => code)).toEqual([2902, 2165, 2038, 2901, 2166]);
  expect(refused.status.messages.at(-2)?.message).toContain('GATEWAY_PROXY is refused.');
  await resume();
  const slow = await finish();
  expect(after(refused, slow).map(({ code }) => code)).toEqual([2902, 2165, 2038, 2038, 2038, 2901, 2166]);
  expect(slow.status.messages.at(-2)?.message).toContain('it took longer than 10 seconds.');
  await resume();
  expect(after(slow, await finish()).map(({ code }) => code)).toEqual([2902, 2165, 2038, 2166, 2011, 2012]);
});

it('of a patch repairs nothing: its steps have moved the workloads again', async () => {
  const differing = new Set(['GATEWAY_INGRESS']);
  const { fail } = await failAtCheck(differing);
  await server.post(`${upgrades}/deleteImportedManifest`, { token: admin });
  await upgrade(patch1);
  const { resume } = await fail();
  await resume();
  const { failed } = await fail();
  expect(failed.status.state).toBe('failed');
  expect([...differing]).toEqual(['GATEWAY_INGRESS']);
});

it('of a resumed rollback says which workloads were put back again', async () => {
  const differing = new Set<string>();
  const { fail } = await failAtCheck(differing);
  await server.post(`${upgrades}/deleteImportedManifest`, { token: admin });
  await upgrade(patch1);
  expect((await finish()).status.state).toBe('success');
  differing.add('GATEWAY_PROXY').add('GATEWAY_INGRESS');
  const versionManifest = JSON.stringify({ id: 'rel_10092021_1234' });
  await server.postParts(`${upgrades}/rollback`, { versionManifest }, admin);
  const { failed, resume } = await fail();
  await resume();
  const texts = after(failed, await finish()).filter(({ code }) => code === 2904);
  expect(texts.map(({ message }) => message.split(' former')[0])).toEqual([
    'The workload GATEWAY_PROXY already has its',
    'The workload GATEWAY_INGRESS was put back to its',
  ]);
});
