// The final check: a job succeeds only if every workload that it has moved still has its images and is healthy.
import { expect, it } from 'vitest';
import type { Cluster } from './cluster.ts';
import { createTemplate, openUpgrade, openWorkloads, textsOf } from './upgrade-kit.ts';

/** The hook holds the job between the last workload and the check. */
const hold = { step: 'after', image: 'task:1-stuck' };

it('a patch fails and is reverted if another client has set a former image since', async () => {
  const { cluster, start, end, setImage, waitForCode, images, ask, resume } = await openUpgrade([hold]);
  await start('upgrade', 'pat');
  await waitForCode(2906);
  await setImage('map-server', 'map-server:1');
  cluster.kubelet.heal('stuck');
  const { state, messages } = await end();
  expect(state).toBe('failed');
  expect(textsOf(messages, 2901)).toEqual([
    'The job failed at the step "Check all workloads": deployment/map-server has the image map-server:1 in its container map-server ' +
      'instead of map-server:2.',
  ]);
  expect(await images()).toEqual(['map-server:1', 'map-tiles:1']);
  expect(await ask('upgrades/currentVersion')).toMatchObject({ build: '1234' });
  await resume();
  expect((await end()).state).toBe('success');
  expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
});

it.each(['map-server:1', 'map-server:9'])(
  'a release with a workload that has got the image %s fails, and resume moves that workload again',
  async (image) => {
    const { cluster, start, end, setImage, waitForCode, images, resume } = await openUpgrade([hold]);
    await start('upgrade', 'rel');
    await waitForCode(2906);
    await setImage('map-server', image);
    cluster.kubelet.heal('stuck');
    const failed = await end();
    expect(failed.state).toBe('failed');
    expect(textsOf(failed.messages, 2901)[0]).toContain(`deployment/map-server has the image ${image} `);
    expect(await images()).toEqual([image, 'map-tiles:2']);
    await resume();
    const { state, messages, codes } = await end();
    expect(state).toBe('success');
    expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
    expect(textsOf(messages.slice(failed.messages.length), 2038)).toEqual([
      'The workload deployment/map-server was updated with the image map-server:2.',
    ]);
    expect(codes.slice(failed.codes.length)).toEqual([2902, 2165, 2038, 2166, 2011, 2012]);
  },
);

it('a rollback is checked too', async () => {
  const { cluster, start, end, setImage, waitForCode, images, resume } = await openUpgrade([]);
  await start('upgrade', 'pat_next');
  expect((await end()).state).toBe('success');
  await createTemplate(cluster, hold);
  await start('rollback', 'pat');
  await waitForCode(2906);
  await setImage('map-tiles', 'map-tiles:3');
  cluster.kubelet.heal('stuck');
  const failed = await end();
  expect(failed.state).toBe('failed');
  expect(textsOf(failed.messages, 2901)[0]).toContain('instead of map-tiles:2.');
  await resume();
  const { state, messages } = await end();
  expect(state).toBe('success');
  expect(textsOf(messages.slice(failed.messages.length), 2038, 2904)).toEqual([
    'The workload deployment/map-tiles was put back to its former image map-tiles:2.',
  ]);
  expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
});

/** The new pods of the workload do not become ready. */
const breakSidecar = async (cluster: Cluster) => {
  await cluster.patch('Deployment', 'map-server', {
    spec: { replicas: 2, template: { spec: { containers: [{ name: 'side', image: 'side:2-stuck' }] } } },
  });
  await expect
    .poll(async () => (await cluster.read('Deployment', 'map-server')).status.unavailableReplicas ?? 0)
    .toBeGreaterThan(0);
};

it('a resumed release does not claim to have moved a workload that was only unhealthy', async () => {
  const { cluster, start, end, waitForCode, resume } = await openUpgrade([hold]);
  await start('upgrade', 'rel');
  await waitForCode(2906);
  await breakSidecar(cluster);
  cluster.kubelet.heal('1-stuck');
  const failed = await end();
  expect(failed.state).toBe('failed');
  cluster.faults.requests.length = 0;
  await resume();
  // The check has found it, and waits for its rollout.
  await expect
    .poll(() => cluster.faults.requests.filter(({ path }) => path.endsWith('/map-server')), { interval: 10 })
    .not.toEqual([]);
  cluster.kubelet.heal('2-stuck');
  const { state, messages } = await end();
  expect(state).toBe('success');
  expect(textsOf(messages.slice(failed.messages.length), 2038)).toEqual([
    'The workload deployment/map-server already has the image map-server:2.',
  ]);
  expect(cluster.faults.requests.filter(({ method }) => method === 'PATCH')).toEqual([]);
});

it('a release with a workload that is not healthy, or is gone, fails and names it', async () => {
  const { cluster, start, end, waitForCode } = await openUpgrade([hold]);
  await start('upgrade', 'rel');
  await waitForCode(2906);
  const path = `/apis/apps/v1/namespaces/${cluster.namespace}/deployments/map-tiles`;
  await cluster.request('DELETE', path);
  await breakSidecar(cluster);
  cluster.kubelet.heal('1-stuck');
  const { state, messages } = await end();
  expect(state).toBe('failed');
  expect(textsOf(messages, 2901)[0]).toMatch(
    /: deployment\/map-server is not healthy: of 2 wanted pods .* deployment\/map-tiles no longer exists\.$/,
  );
});

it('a workload that has its image already is not said to be updated', async () => {
  const cluster = await openWorkloads();
  const { start, end, setImage } = await openUpgrade([], { cluster });
  await setImage('map-tiles', 'map-tiles:2');
  await start('upgrade', 'pat');
  const { messages } = await end();
  expect(textsOf(messages, 2038)).toEqual([
    'The workload deployment/map-server was updated with the image map-server:2.',
    'The workload deployment/map-tiles already has the image map-tiles:2.',
  ]);
});

it('a workload that a killed process has patched is said to be updated', async () => {
  const { cluster, start, end } = await openUpgrade([]);
  // The answer to the patch is lost, so the request is repeated and finds the image.
  cluster.faults.inject({ method: 'PATCH', path: /map-server/, act: 'swallow' });
  await start('upgrade', 'pat');
  const { messages } = await end();
  expect(textsOf(messages, 2038)[0]).toBe(
    'The workload deployment/map-server was updated with the image map-server:2.',
  );
});
