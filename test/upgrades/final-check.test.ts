// The final check of a resumed job: it repairs the workloads that differ one after another, and records each when
// it is done.
import { expect, it } from 'vitest';
import type { Executor } from '../../src/upgrades/executors/executor.ts';
import { createSimulatedExecutor } from '../../src/upgrades/executors/simulated.ts';
import { timelessRuntime } from '../kit/runtime.ts';
import type { Server } from '../kit/server.ts';
import { type Status, admin, codesOf, patch1, upgrades, useJobs } from './jobs-kit.ts';

let server: Server;
const { start, upgrade, status } = useJobs((started) => (server = started));

const names = ['GATEWAY_INGRESS', 'GATEWAY_PROXY', 'SECURITY_DIRECTORY'];
const release = {
  id: 'rel',
  type: 'release',
  version: '10.9.2',
  build: '2000',
  previousReleaseBuild: '1234',
  containers: names.map((name) => ({ name, image: `${name}:2` })),
};

async function finish(): Promise<Status> {
  for (let seconds = 0; ; seconds += 1) {
    const now = await status();
    if (now.status.state !== 'in_progress') return now;
    expect(seconds).toBeLessThan(3000);
    await server.runtime.advance(1000);
  }
}

/**
 * Steps take no time, except the repair of the workloads in `differing`, which takes eight of the ten seconds that
 * a step may take.
 */
async function failAtCheck(differing: Set<string>) {
  const refusing = new Set<string>();
  let isChecked = false;
  const simulated = createSimulatedExecutor({ runtime: timelessRuntime, stepMs: 0, failures: new Map() });
  const check: Executor['check'] = (workloads) => {
    isChecked = true;
    const found = workloads.filter(({ name }) => differing.has(name));
    const deviations = found.map((workload) => ({ workload, problem: `${workload.name} differs.` }));
    return Promise.resolve({ deviations, repaired: [] });
  };
  const apply: Executor['apply'] = async (workload, { signal }) => {
    if (isChecked) await server.runtime.sleep(8000, signal);
    if (isChecked && refusing.delete(workload.name)) throw new Error(`${workload.name} is refused.`);
    if (isChecked) differing.delete(workload.name);
    return { isPatched: true };
  };
  await start({ UPGRADE_STEP_TIMEOUT_SECONDS: '10' }, { executor: { ...simulated, check, apply } });
  const manifestFile = { name: 'm.json', content: JSON.stringify([release]) };
  await server.postParts(`${upgrades}/importManifest`, { manifestFile }, admin);
  await upgrade(release.id, { upgradeSettings: '{}' });
  const failed = await finish();
  expect(failed.status.messages.at(-2)?.message).toBe(
    `The job failed at the step "Check all workloads": ${[...differing].map((name) => `${name} differs.`).join(' ')}`,
  );
  const resume = () => server.post(`/admin/system/jobs/${failed.jobId}/resume`, { token: admin });
  return { failed, refusing, resume };
}

const after = (seen: Status, now: Status) => now.status.messages.slice(seen.messageCount);

it('records each workload when it is repaired, and each has the time of a step', async () => {
  const { failed, resume } = await failAtCheck(new Set(names));
  await resume();
  const began = server.runtime.now();
  await server.runtime.advance(9000);
  expect(after(failed, await status()).map(({ code }) => code)).toEqual([2902, 2165, 2038]);
  const done = await finish();
  expect(done.status.state).toBe('success');
  const repaired = after(failed, done).filter(({ code }) => code === 2038);
  expect(repaired.map(({ message }) => /workload (\w+) was updated/.exec(message)?.[1])).toEqual(names);
  expect(repaired[2]?.when).toBeGreaterThan(began + 20_000);
  expect(codesOf(done).slice(-3)).toEqual([2166, 2011, 2012]);
});

it('keeps the messages of repaired workloads if a later one cannot be repaired', async () => {
  const { failed, refusing, resume } = await failAtCheck(new Set(['GATEWAY_INGRESS', 'GATEWAY_PROXY']));
  refusing.add('GATEWAY_PROXY');
  await resume();
  const again = await finish();
  expect(again.status.state).toBe('failed');
  expect(after(failed, again).map(({ code }) => code)).toEqual([2902, 2165, 2038, 2901, 2166]);
  await resume();
  expect(after(again, await finish()).map(({ code }) => code)).toEqual([2902, 2165, 2038, 2166, 2011, 2012]);
});

it('fails if a repaired workload differs again', async () => {
  const differing = new Set(['GATEWAY_INGRESS', 'GATEWAY_PROXY']);
  const { resume } = await failAtCheck(differing);
  await resume();
  await server.runtime.advance(9000);
  differing.add('GATEWAY_INGRESS');
  const failed = await finish();
  expect(failed.status.messages.at(-2)?.message).toBe(
    'The job failed at the step "Check all workloads": GATEWAY_INGRESS differs.',
  );
});

it('records a workload that a killed process has repaired, once', async () => {
  const simulated = createSimulatedExecutor({ runtime: timelessRuntime, stepMs: 0, failures: new Map() });
  let checks = 0;
  const check: Executor['check'] = ([, second]) => {
    checks += 1;
    const deviations = checks === 1 && second ? [{ workload: second, problem: 'It differs.' }] : [];
    return Promise.resolve({ deviations, repaired: checks === 1 ? [] : ['GATEWAY_PROXY'] });
  };
  await start({}, { executor: { ...simulated, check } });
  const manifestFile = { name: 'm.json', content: JSON.stringify([release]) };
  await server.postParts(`${upgrades}/importManifest`, { manifestFile }, admin);
  await upgrade(release.id, { upgradeSettings: '{}' });
  const failed = await finish();
  await server.post(`/admin/system/jobs/${failed.jobId}/resume`, { token: admin });
  const texts = after(failed, await finish()).filter(({ code }) => code === 2038);
  expect(texts.map(({ message }) => message)).toEqual([
    'The workload GATEWAY_PROXY was updated with the image GATEWAY_PROXY:2.',
  ]);
});

it('says of a rollback whether the workload was put back again', async () => {
  const differing = new Set<string>();
  const simulated = createSimulatedExecutor({ runtime: timelessRuntime, stepMs: 0, failures: new Map() });
  const check: Executor['check'] = (workloads) =>
    Promise.resolve({
      deviations: workloads
        .filter(({ name }) => differing.has(name))
        .map((workload) => ({ workload, problem: 'It differs.' })),
      repaired: [],
    });
  let isResumed = false;
  const rollback: Executor['rollback'] = ({ name }) => {
    if (isResumed) differing.delete(name);
    return Promise.resolve({ isPatched: name !== names[0] });
  };
  await start({}, { executor: { ...simulated, check, rollback } });
  await upgrade(patch1);
  await finish();
  differing.add('GATEWAY_INGRESS').add('GATEWAY_PROXY');
  const versionManifest = JSON.stringify({ id: 'rel_10092021_1234' });
  await server.postParts(`${upgrades}/rollback`, { versionManifest }, admin);
  const failed = await finish();
  isResumed = true;
  await server.post(`/admin/system/jobs/${failed.jobId}/resume`, { token: admin });
  const texts = after(failed, await finish()).filter(({ code }) => code === 2904);
  expect(texts.map(({ message }) => message.split(' former')[0])).toEqual([
    'The workload GATEWAY_PROXY was put back to its',
    'The workload GATEWAY_INGRESS already has its',
  ]);
});
