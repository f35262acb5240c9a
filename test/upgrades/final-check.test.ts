// The final check of a resumed release records the workloads that it has repaired, also if it fails.
// test/kubernetes/final-check.test.ts has the other cases.
import { expect, it } from 'vitest';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import { releaseOf } from '../kit/versions.ts';
import { type Status, admin, upgrades, useJobs } from './jobs-kit.ts';

const { server, start, upgrade, status } = useJobs();

const names = ['GATEWAY_INGRESS', 'GATEWAY_PROXY', 'SECURITY_DIRECTORY'];
const more = ['SECURITY_TOKENS', 'STORE_QUEUE'];
const release = {
  ...releaseOf('rel'),
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
  const done = await finish();
  expect(after(slow, done).map(({ code }) => code)).toEqual([2902, 2165, 2038, 2166, 2011, 2012]);
  expect(
    after(failed, done)
      .filter(({ code }) => code === 2038)
      .map(({ message }) => message.replace(/ (was|already) .*/, ' $1')),
  ).toEqual([
    'The workload GATEWAY_INGRESS was',
    'The workload GATEWAY_PROXY already',
    ...['SECURITY_DIRECTORY', 'SECURITY_TOKENS', 'STORE_QUEUE'].map((name) => `The workload ${name} was`),
  ]);
});
