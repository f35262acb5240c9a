// A namespace in which a job has left changed workloads behind, because its store is lost or its reverting failed:
// the plan of the next one names them.
import { expect, it } from 'vitest';
import type { Cluster } from './cluster.ts';
import { imagesIn, openSteward, openWorkloads, textsOf } from './upgrade-kit.ts';
import { imageOf } from './workloads.ts';
import { patchOf } from '../kit/versions.ts';

const names = ['part-1', 'part-2', 'part-3'];
const skipped = 'These steps have no step template and are skipped: logging.';

const patch = (build: string, ...images: string[]) => ({
  ...patchOf(`pat_${build}`, build),
  containers: images.map((image) => ({ name: image.split(':', 1)[0], image })),
});

const openNamespace = () => openWorkloads(names);

/** A Steward with an empty store of its own, and a manifest of one version. */
async function startSteward(cluster: Cluster, version: { id: string }) {
  const steward = await openSteward(cluster, [version], {
    // The job of a process that was killed does not release the lock.
    hasEnded: () => Promise.resolve(true),
  });
  return {
    ...steward,
    plan: () => steward.start('plan', version.id),
    upgrade: () => steward.start('upgrade', version.id),
    kill: () => steward.server.close(),
  };
}

/** The first Steward has moved part-1, is moving part-2, and is lost with its store. */
async function interrupt(cluster: Cluster): Promise<string> {
  const first = await startSteward(cluster, patch('1300', 'part-1:2', 'part-2:2-stuck', 'part-3:2'));
  const { jobId } = await first.upgrade();
  await first.waitForCode(2038, 2);
  await first.kill();
  return jobId;
}

const noticeOf = (name: string, jobId: string, end = 'which this Steward does not know') =>
  `deployment/${name} was changed by the job ${jobId}, ${end} ` +
  `(steward/state: updated; steward/former-images: {"${name}":"${name}:1"}).`;

it('is a notice of the plan, which names the job and the images from before', async () => {
  const cluster = await openNamespace();
  const jobId = await interrupt(cluster);
  const next = await startSteward(cluster, patch('1300', 'part-1:2', 'part-2:2-stuck', 'part-3:2'));
  const { notices, problems } = await next.plan();
  expect(problems).toEqual([]);
  expect(notices.map((notice) => notice.replaceAll(/-[^-]+-[^- ]+(?= is not ready)/g, '-pod'))).toEqual([
    noticeOf('part-1', jobId),
    noticeOf('part-2', jobId),
    'deployment/part-2: is not healthy: of 1 wanted pods 1 are updated and 1 available, 2 exist, ' +
      '1 of them not updated; part-2-pod is not ready. ' +
      'This does not block the upgrade, because a job that did not succeed has changed the workload.',
    skipped,
  ]);
});

it('is a notice too if the upgrade does not change the workload', async () => {
  const cluster = await openNamespace();
  const jobId = await interrupt(cluster);
  const next = await startSteward(cluster, patch('1301', 'part-3:3'));
  expect((await next.plan()).notices).toEqual([
    noticeOf('part-1', jobId),
    noticeOf('part-2', jobId),
    skipped,
  ]);
});

it('is reverted to the images that it has when an upgrade starts, if that fails', async () => {
  const cluster = await openNamespace();
  await interrupt(cluster);
  cluster.kubelet.heal('stuck');
  const next = await startSteward(cluster, patch('1301', 'part-1:3', 'part-2:2-stuck', 'part-3:3-missing'));
  await next.upgrade();
  const { messages } = await next.end('failed');
  expect(textsOf(messages, 2904)).toEqual([
    'The workload deployment/part-3 was put back to its former image part-3:1.',
    'The workload deployment/part-2 already has its former image part-2:2-stuck.',
    'The workload deployment/part-1 was put back to its former image part-1:2.',
  ]);
  expect(await imagesIn(cluster, names)).toEqual(['part-1:2', 'part-2:2-stuck', 'part-3:1']);
});

it('is not reported if another client has put it back', async () => {
  const cluster = await openNamespace();
  const steward = await startSteward(cluster, patch('1300', 'part-1:2', 'part-2:2-stuck', 'part-3:2'));
  await steward.upgrade();
  await steward.waitForCode(2038, 2);
  await cluster.patch('Deployment', 'part-1', imageOf('part-1:1', 'part-1'));
  await steward.kill();
  const next = await startSteward(cluster, patch('1300', 'part-1:2', 'part-2:2-stuck', 'part-3:2'));
  expect((await next.plan()).notices.filter((notice) => notice.includes('part-1'))).toEqual([]);
});

it('is recognised too if its own Steward could not put it back', async () => {
  const cluster = await openNamespace();
  const steward = await startSteward(cluster, patch('1300', 'part-1:2', 'part-2:2-missing', 'part-3:2'));
  const { jobId } = await steward.upgrade();
  await steward.waitForCode(2038, 2);
  const path = /\/deployments\/part-1\?/;
  const removeFault = cluster.faults.inject({ method: 'PATCH', path, times: Infinity, act: { status: 422 } });
  await steward.end('failed');
  expect(await imagesIn(cluster, names)).toEqual(['part-1:2', 'part-2:1', 'part-3:1']);
  removeFault();
  expect((await steward.plan()).notices).toEqual([
    noticeOf('part-1', jobId, 'which did not put it back'),
    skipped,
  ]);
  // It was put back, so another client has changed it.
  await cluster.patch('Deployment', 'part-2', imageOf('part-2:9', 'part-2'));
  const { notices } = await steward.plan();
  const text = new RegExp(`part-2 was changed by the job ${jobId}, which put it back; a policy or another`);
  expect(notices.filter((notice) => text.test(notice))).toHaveLength(1);
});
