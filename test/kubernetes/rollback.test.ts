// A rollback on a cluster: it puts back exactly what was there, also after other jobs, it heals what is sick, and one that
// cannot finish has a way out.
import { describe, expect, it } from 'vitest';
import type { Cluster } from './cluster.ts';
import { patchOf } from '../kit/versions.ts';
import { imagesIn, openSteward, openWorkloads, textsOf } from './upgrade-kit.ts';
import { imageOf } from './workloads.ts';

const names = ['admin-api', 'admin-tools'];
const installed = 'rel_10092021_1234';

const patch = (build: string, previous: string, ...images: string[]) => ({
  ...patchOf(`pat_${build}`, build),
  previousBuild: previous,
  containers: images.map((image) => ({
    name: (image.split(':', 1)[0] ?? '').toUpperCase().replace('-', '_'),
    image,
  })),
});

const first = patch('1300', '1234', 'admin-api:2', 'admin-tools:2');
const second = patch('1301', '1300', 'admin-api:3', 'admin-tools:3');
const missing = patch('1301', '1300', 'admin-api:3', 'admin-tools:3-missing');

async function open(versions: readonly object[], given?: Cluster) {
  const cluster = given ?? (await openWorkloads(names, 'custom'));
  const steward = await openSteward(cluster, versions);
  const images = () => imagesIn(cluster, names);
  const run = async (operation: string, id: string) => {
    const { error } = await steward.start(operation, id);
    expect(error).toBeUndefined();
    return steward.end();
  };
  return { ...steward, images, run };
}

const custom = ['admin-api:custom', 'admin-tools:custom'];

describe('a rollback puts back what was there', () => {
  it('after a patch that failed and was reverted', async () => {
    const { run, images } = await open([first, missing]);
    expect((await run('upgrade', 'pat_1300')).state).toBe('success');
    expect((await run('upgrade', 'pat_1301')).state).toBe('failed');
    expect(await images()).toEqual(['admin-api:2', 'admin-tools:2']);
    const { state, messages } = await run('rollback', installed);
    expect(state).toBe('success');
    expect(await images()).toEqual(custom);
    expect(textsOf(messages, 2904)).toContain(
      'The workload deployment/admin-api was put back to its former image admin-api:custom.',
    );
  });

  it('after two patches in two jobs, in one step or in two', async () => {
    for (const targets of [[installed], ['pat_1300', installed]]) {
      const { run, images } = await open([first, second]);
      await run('upgrade', 'pat_1300');
      await run('upgrade', 'pat_1301');
      for (const target of targets) expect((await run('rollback', target)).state).toBe('success');
      expect(await images()).toEqual(custom);
    }
  });

  it('after a repair', async () => {
    const { run, images, setImage } = await open([first]);
    await run('upgrade', 'pat_1300');
    await setImage('admin-api', 'admin-api:other');
    await run('upgrade', 'pat_1300');
    expect(await images()).toEqual(['admin-api:2', 'admin-tools:2']);
    await run('rollback', installed);
    expect(await images()).toEqual(custom);
  });
});

describe('a workload that is not healthy', () => {
  const sick = patch('1300', '1234', 'admin-api:2-late', 'admin-tools:2');
  const openSick = async (next: object) => {
    const opened = await open([sick, next]);
    await opened.run('upgrade', 'pat_1300');
    opened.cluster.kubelet.crash('late', { isDown: true });
    await expect
      .poll(async () => (await opened.cluster.read('Deployment', 'admin-api')).status.availableReplicas ?? 0)
      .toBe(0);
    return opened;
  };

  it('does not block the rollback that heals it', async () => {
    const { run, images } = await openSick(second);
    expect((await run('rollback', installed)).state).toBe('success');
    expect(await images()).toEqual(custom);
  });

  it('does not block the patch that gives its container another image, and is a notice of its plan', async () => {
    const { start, run } = await openSick(second);
    const { problems, notices } = await start('plan', 'pat_1301');
    expect(problems).toEqual([]);
    expect(notices.join(' ')).toMatch(
      /deployment\/admin-api: is not healthy: .* This does not block the job, because it gives the workload other images\./,
    );
    expect((await run('upgrade', 'pat_1301')).state).toBe('success');
  });

  it('blocks a patch that leaves its container as it is', async () => {
    const { start } = await openSick(patch('1301', '1300', 'admin-api:2-late', 'admin-tools:3'));
    expect((await start('plan', 'pat_1301')).problems).toEqual([
      expect.stringMatching(/^cluster: deployment\/admin-api: is not healthy: /),
    ]);
  });

  it('because it lacks pods blocks a patch that gives its container another image', async () => {
    const { cluster, run, start } = await open([first, second]);
    await run('upgrade', 'pat_1300');
    const quota = { metadata: { name: 'full' }, spec: { hard: { pods: '2' } } };
    await cluster.request('POST', `/api/v1/namespaces/${cluster.namespace}/resourcequotas`, quota);
    await cluster.patch('Deployment', 'admin-api', { spec: { replicas: 2 } });
    await expect
      .poll(async () => (await cluster.read('Deployment', 'admin-api')).status.unavailableReplicas ?? 0)
      .toBe(1);
    expect((await start('plan', 'pat_1301')).problems).toEqual([
      expect.stringMatching(/^cluster: deployment\/admin-api: is not healthy: /),
    ]);
  });

  it('does not block the repair that heals it', async () => {
    const { cluster, run, images } = await open([first]);
    await run('upgrade', 'pat_1300');
    await cluster.patch('Deployment', 'admin-api', imageOf('admin-api:other-missing', 'admin-api'));
    await expect
      .poll(async () => (await cluster.read('Deployment', 'admin-api')).status.unavailableReplicas ?? 0)
      .toBe(1);
    expect((await run('upgrade', 'pat_1300')).state).toBe('success');
    expect(await images()).toEqual(['admin-api:2', 'admin-tools:2']);
  });
});

describe('a rollback that cannot finish', () => {
  const openFailed = async () => {
    const opened = await open([first, second], await openWorkloads(names, 'gone'));
    await opened.run('upgrade', 'pat_1300');
    // The images of before were deleted from the registry meanwhile.
    opened.cluster.faults.inject({
      method: 'PATCH',
      path: /deployments\/admin-api\?/,
      times: 1,
      act: { status: 422 },
    });
    expect((await opened.run('rollback', installed)).state).toBe('failed');
    return opened;
  };

  it('is repaired by an upgrade to the version that it started from', async () => {
    const { start, run, images } = await openFailed();
    const { error } = await start('upgrade', 'pat_1301');
    expect(error).toMatchObject({
      code: 409,
      message: expect.stringMatching(
        /has failed: resume it, or roll back to rel_10092021_1234 again, or upgrade to pat_1300 again\.$/,
      ) as string,
    });
    expect((await run('upgrade', 'pat_1300')).state).toBe('success');
    expect(await images()).toEqual(['admin-api:2', 'admin-tools:2']);
    expect((await run('upgrade', 'pat_1301')).state).toBe('success');
  });

  it('can be asked for again, and then plans anew', async () => {
    const { run, images } = await openFailed();
    expect((await run('rollback', installed)).state).toBe('success');
    expect(await images()).toEqual(['admin-api:gone', 'admin-tools:gone']);
    expect((await run('upgrade', 'pat_1300')).state).toBe('success');
  });
});
