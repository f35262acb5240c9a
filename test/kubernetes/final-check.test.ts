// The final check: a job succeeds only if every workload that it has moved still has its images and is healthy.
import { describe, expect, it } from 'vitest';
import type { Cluster } from './cluster.ts';
import { fast } from './executor.ts';
import { type Upgrade, createTemplate, openUpgrade, textsOf } from './upgrade-kit.ts';
import { imageOf } from './workloads.ts';

/** The controllers of a real cluster cannot be paused. */
const isReal = process.env.STEWARD_TEST_KUBECONFIG !== undefined;

/** The hook holds the job between the last workload and the check. */
const hold = { step: 'after', image: 'task:1-stuck' };

it('a patch fails and is reverted if another client has set a former image since', async () => {
  const { cluster, start, end, setImage, waitForCode, images, ask, resume } = await openUpgrade([hold]);
  await start('upgrade', 'pat');
  await waitForCode(2906);
  await setImage('map-server', 'map-server:1');
  cluster.kubelet.heal('stuck');
  const { messages } = await end('failed');
  expect(textsOf(messages, 2901)).toEqual([
    'The job failed at the step "Check all workloads": deployment/map-server has the image map-server:1 in its container map-server ' +
      'instead of map-server:2.',
  ]);
  expect(textsOf(messages, 2904)).toEqual([
    'The workload deployment/map-tiles was put back to its former image map-tiles:1.',
    'The workload deployment/map-server already has its former image map-server:1.',
  ]);
  expect(await images()).toEqual(['map-server:1', 'map-tiles:1']);
  expect(await ask('upgrades/currentVersion')).toMatchObject({ build: '1234' });
  await resume();
  await end('success');
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
    const failed = await end('failed');
    expect(textsOf(failed.messages, 2901)[0]).toContain(`deployment/map-server has the image ${image} `);
    expect(await images()).toEqual([image, 'map-tiles:2']);
    await resume();
    const { messages, codes } = await end('success');
    expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
    expect(textsOf(messages.slice(failed.messages.length), 2038)).toEqual([
      'The workload deployment/map-server was updated with the image map-server:2.',
    ]);
    expect(codes.slice(failed.codes.length)).toEqual([2902, 2165, 2038, 2166, 2011, 2012]);
  },
);

describe('a resumed release', () => {
  /** Another client has changed both workloads between their rollouts and the check. */
  async function failTwice() {
    const opened = await openUpgrade([hold]);
    await opened.start('upgrade', 'rel');
    await opened.waitForCode(2906);
    for (const name of ['map-server', 'map-tiles']) await opened.setImage(name, `${name}:9`);
    opened.cluster.kubelet.heal('stuck');
    const failed = await opened.end('failed');
    return { ...opened, failed };
  }

  it('that cannot repair a workload has repaired the others before it, and continues there', async () => {
    const { cluster, end, resume, images, failed } = await failTwice();
    cluster.faults.inject({ method: 'PATCH', path: /map-tiles/, act: { status: 422 } });
    await resume();
    const refused = await end();
    expect(refused.codes.slice(failed.codes.length)).toEqual([2902, 2165, 2038, 2901, 2166]);
    expect(await images()).toEqual(['map-server:2', 'map-tiles:9']);
    await resume();
    const { codes } = await end('success');
    expect(codes.slice(refused.codes.length)).toEqual([2902, 2165, 2038, 2166, 2011, 2012]);
    expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
  });

  it('fails if a workload that it has repaired differs again', async () => {
    const { cluster, end, setImage, resume, failed } = await failTwice();
    cluster.faults.inject({
      method: 'PATCH',
      path: /map-tiles/,
      act: () => setImage('map-server', 'map-server:9'),
    });
    await resume();
    const { messages, codes } = await end('failed');
    expect(codes.slice(failed.codes.length)).toEqual([2902, 2165, 2038, 2038, 2901, 2166]);
    expect(textsOf(messages, 2901).at(-1)).toContain('deployment/map-server has the image map-server:9 ');
  });
});

it('a rollback is checked too', async () => {
  const { cluster, start, end, setImage, waitForCode, images, resume } = await openUpgrade([]);
  await start('upgrade', 'pat_next');
  await end('success');
  await createTemplate(cluster, hold);
  await start('rollback', 'pat');
  await waitForCode(2906);
  await setImage('map-tiles', 'map-tiles:3');
  cluster.kubelet.heal('stuck');
  const failed = await end('failed');
  expect(textsOf(failed.messages, 2901)[0]).toContain('instead of map-tiles:2.');
  await resume();
  const { messages } = await end('success');
  expect(textsOf(messages.slice(failed.messages.length), 2038, 2904)).toEqual([
    'The workload deployment/map-tiles was put back to the image map-tiles:2 of the version.',
  ]);
  expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
});

/** The new pods of the workload do not become ready. */
const breakSidecar = async (cluster: Cluster) => {
  await cluster.patch('Deployment', 'map-server', {
    spec: {
      replicas: 2,
      progressDeadlineSeconds: 2 ** 31 - 1,
      template: { spec: { containers: [{ name: 'side', image: 'side:2-stuck' }] } },
    },
  });
  await expect
    .poll(async () => (await cluster.read('Deployment', 'map-server')).status.unavailableReplicas ?? 0)
    .toBeGreaterThan(0);
};

/** Installs the version; the change is made between the last workload and the check. */
async function disturb(id: string, change: (upgrade: Upgrade) => Promise<unknown>, options = {}) {
  const upgrade = await openUpgrade([hold], options);
  await upgrade.start('upgrade', id);
  await upgrade.waitForCode(2906);
  await change(upgrade);
  upgrade.cluster.kubelet.heal('1-stuck');
  return upgrade;
}

/** The check waits for the workload: it reads it after its list of all workloads, which follows the Job of the hook. */
const waitForCheck = (cluster: Cluster, name: string) =>
  expect
    .poll(
      () => {
        const paths = cluster.faults.requests.map(({ method, path }) => `${method} ${path}`);
        const list = paths.findLastIndex((path) => /^GET .*deployments\?limit=/.test(path));
        const job = paths.findLastIndex((path) => /^GET .*\/jobs\//.test(path));
        const read = paths.findLastIndex((path) => path.startsWith('GET ') && path.endsWith(`/${name}`));
        return job < list && list < read;
      },
      { interval: 5 },
    )
    .toBe(true);

describe('a workload with its images', () => {
  it.each<[string, (upgrade: Upgrade) => Promise<unknown>]>([
    [
      'whose newest change the controller has not observed',
      ({ cluster }) => {
        cluster.pauseDeployments(Infinity);
        return cluster.patch('Deployment', 'map-server', { metadata: { annotations: { touched: 'yes' } } });
      },
    ],
    [
      'that is being scaled',
      ({ cluster }) => {
        cluster.pauseDeployments(Infinity);
        return cluster.patch('Deployment', 'map-server', { spec: { replicas: 3 } });
      },
    ],
    [
      'that has lost a pod',
      async ({ cluster }) => {
        const [pod] = await cluster.pods('Deployment', 'map-server');
        const path = `/api/v1/namespaces/${cluster.namespace}/pods/${pod?.metadata.name ?? ''}`;
        await cluster.kubelet.pause();
        await cluster.request('DELETE', path);
        const available = async () =>
          (await cluster.read('Deployment', 'map-server')).status.availableReplicas;
        await expect.poll(available).toBeUndefined();
        cluster.pauseDeployments(Infinity);
        cluster.kubelet.resume();
      },
    ],
  ])('%s gets the time of a rollout', async (_what, change) => {
    const { cluster, end, images } = await disturb('pat', change);
    if (!isReal) await waitForCheck(cluster, 'map-server');
    cluster.pauseDeployments(0);
    await end('success');
    expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
  });

  it('that stays unhealthy fails the job when that time is over, and the job names it', async () => {
    const { end } = await disturb('rel', ({ cluster }) => breakSidecar(cluster), {
      ...fast(),
      rolloutTimeoutMs: 20_000,
    });
    const { messages } = await end('failed');
    expect(textsOf(messages, 2901)[0]).toMatch(
      /"Check all workloads": deployment\/map-server: no progress for \d+ seconds: of 2 wanted pods .*map-server\S+ is not ready/,
    );
  });

  it.each([
    ['runs again', false],
    ['waits for its next start', true],
  ])('whose program has crashed since its rollout and %s fails the job', async (_what, isDown) => {
    const { end, images } = await disturb('pat', async ({ cluster }) => {
      // The clock of the node is an hour behind.
      cluster.kubelet.crash('2', { isDown, at: Date.now() - 3_600_000 });
      await expect
        .poll(async () => JSON.stringify(await cluster.pods('Deployment', 'map-server')))
        .toContain('lastState');
    });
    const { messages } = await end('failed');
    expect(textsOf(messages, 2901)).toEqual([
      expect.stringMatching(
        /"Check all workloads": deployment\/map-\w+: the container map-\w+ of the pod map-\S+ has ended since the rollout \(Error, exit code 1\)\.$/,
      ),
    ]);
    expect(await images()).toEqual(['map-server:1', 'map-tiles:1']);
  });

  it.each(['failed', 'success'])(
    'whose program has crashed before the resume ends it in %s',
    async (state) => {
      const crash = async ({ cluster }: Upgrade, times: number) => {
        cluster.kubelet.crash('2');
        const pods = async () => JSON.stringify(await cluster.pods('Deployment', 'map-server'));
        await expect.poll(pods).toContain(`"restartCount":${times}`);
      };
      const upgrade = await disturb('rel', (opened) => crash(opened, 1), fast(20));
      await upgrade.end('failed');
      const { requests } = upgrade.cluster.faults;
      requests.length = 0;
      await upgrade.server.runtime.advance(1000);
      await upgrade.resume();
      await expect.poll(() => requests.some(({ path }) => path.includes('/pods?'))).toBe(true);
      if (state === 'failed') await crash(upgrade, 2);
      expect((await upgrade.end()).state).toBe(state);
    },
  );

  it.skipIf(isReal)('whose crashed pod is not on the first page of pods fails the job', async () => {
    const { cluster, end } = await disturb('pat', ({ cluster: on }) => {
      on.kubelet.crash('2');
      const firstPage = { metadata: { continue: '0' }, items: [] };
      on.faults.inject({ path: /\/pods\?\S*limit=5000$/, act: { status: 200, body: firstPage } });
      return expect
        .poll(async () => JSON.stringify(await on.pods('Deployment', 'map-server')))
        .toContain('lastState');
    });
    await end('failed');
    expect(cluster.faults.requests.some(({ path }) => path.includes('continue=0'))).toBe(true);
  });

  it('whose program has crashed only before its rollout was complete does not fail the job', async () => {
    const { cluster, start, end, images } = await openUpgrade([]);
    // The clock of the node is an hour ahead.
    cluster.kubelet.crash('2', { at: Date.now() + 3_600_000 });
    await start('upgrade', 'pat');
    await end('success');
    expect(JSON.stringify(await cluster.pods('Deployment', 'map-tiles'))).toContain('lastState');
    expect(await images()).toEqual(['map-server:2', 'map-tiles:2']);
  });

  it('is not patched by a resumed release that waits for it', async () => {
    const { cluster, end, resume } = await disturb('rel', ({ cluster: on }) => breakSidecar(on), {
      ...fast(),
      rolloutTimeoutMs: 20_000,
    });
    const failed = await end('failed');
    cluster.faults.requests.length = 0;
    cluster.kubelet.heal('2-stuck');
    await resume();
    const { codes } = await end('success');
    expect(codes.slice(failed.codes.length)).toEqual([2902, 2165, 2166, 2011, 2012]);
    expect(cluster.faults.requests.filter(({ method }) => method === 'PATCH')).toEqual([]);
  });

  it.skipIf(isReal)(
    'that becomes unhealthy while the check waits for another one gets that time too',
    async () => {
      const { cluster, end } = await disturb('pat', ({ cluster: on }) => {
        on.pauseDeployments(Infinity);
        return on.patch('Deployment', 'map-server', { spec: { replicas: 2 } });
      });
      await waitForCheck(cluster, 'map-server');
      await cluster.patch('Deployment', 'map-tiles', {
        spec: { replicas: 2, template: { spec: { containers: [{ name: 'side', image: 'side:2-stuck' }] } } },
      });
      cluster.pauseDeployments(0);
      await waitForCheck(cluster, 'map-tiles');
      cluster.kubelet.heal('2-stuck');
      await end('success');
      const { status } = await cluster.read('Deployment', 'map-tiles');
      expect(status).toMatchObject({ replicas: 2, updatedReplicas: 2, availableReplicas: 2 });
    },
  );

  it.skipIf(isReal)(
    'whose image another client changes while the check waits for a second one fails the job',
    async () => {
      const { cluster, end } = await disturb('rel', ({ cluster: on }) => {
        on.pauseDeployments(Infinity);
        return on.patch('Deployment', 'map-server', { spec: { replicas: 2 } });
      });
      await waitForCheck(cluster, 'map-server');
      await cluster.patch('Deployment', 'map-tiles', imageOf('map-tiles:9', 'map-tiles'));
      cluster.pauseDeployments(0);
      const { state, messages } = await end();
      expect([state, ...textsOf(messages, 2901)]).toEqual([
        'failed',
        'The job failed at the step "Check all workloads": deployment/map-tiles has the image map-tiles:9 in its container map-tiles ' +
          'instead of map-tiles:2.',
      ]);
    },
  );
});

it('a release with a workload that is gone fails at once and names it', async () => {
  const { cluster, start, end, waitForCode } = await openUpgrade([hold]);
  await start('upgrade', 'rel');
  await waitForCode(2906);
  const path = `/apis/apps/v1/namespaces/${cluster.namespace}/deployments/map-tiles`;
  await cluster.request('DELETE', path);
  await breakSidecar(cluster);
  cluster.kubelet.heal('1-stuck');
  const { messages } = await end('failed');
  expect(textsOf(messages, 2901)[0]).toMatch(
    /"Check all workloads": deployment\/map-tiles no longer exists\.$/,
  );
});

it('a workload that has its image already is not said to be updated', async () => {
  const { start, end, setImage } = await openUpgrade([]);
  await setImage('map-tiles', 'map-tiles:2');
  await start('upgrade', 'pat');
  const { messages } = await end();
  expect(textsOf(messages, 2038)).toEqual([
    'The workload deployment/map-server was updated with the image map-server:2.',
    'The workload deployment/map-tiles already has the image map-tiles:2.',
  ]);
});

it('a workload is said to be updated if the answer to its patch is lost', async () => {
  const { cluster, start, end } = await openUpgrade([]);
  // The answer to the patch is lost, so the request is repeated and finds the image.
  cluster.faults.inject({ method: 'PATCH', path: /map-server/, act: 'swallow' });
  await start('upgrade', 'pat');
  const { messages } = await end();
  expect(textsOf(messages, 2038)[0]).toBe(
    'The workload deployment/map-server was updated with the image map-server:2.',
  );
});

it('a resumed release does not say of a workload that an earlier run has patched that it was updated', async () => {
  const { cluster, start, end, resume } = await openUpgrade([]);
  // The patch is sent; then the workload is gone for a moment, so its step fails.
  cluster.faults.inject({ method: 'PATCH', path: /map-tiles/, act: 'swallow' });
  cluster.faults.inject({
    method: 'GET',
    path: /deployments\/map-tiles$/,
    act: (): Promise<void> => Promise.resolve(),
  });
  cluster.faults.inject({ method: 'GET', path: /deployments\/map-tiles$/, act: { status: 404 } });
  await start('upgrade', 'rel');
  const failed = await end();
  expect(textsOf(failed.messages, 2901)).toEqual([
    'The job failed at the step "Update deployment deployment/map-tiles": deployment/map-tiles no longer exists.',
  ]);
  await resume();
  const { messages } = await end('success');
  expect(textsOf(messages.slice(failed.messages.length), 2038)).toEqual([
    'The workload deployment/map-tiles already has the image map-tiles:2.',
  ]);
});

it('a rollback does not say of a workload that another client has put back that it was put back', async () => {
  const { start, end, setImage } = await openUpgrade([]);
  await start('upgrade', 'pat_next');
  await end('success');
  await setImage('map-server', 'map-server:2');
  await start('rollback', 'pat');
  const { messages } = await end('success');
  expect(textsOf(messages, 2904)).toEqual([
    'The workload deployment/map-tiles was put back to the image map-tiles:2 of the version.',
    'The workload deployment/map-server already has the image map-server:2 of the version.',
  ]);
});
