// An API server that is away, slow, busy or forgetful for a while, and the lock on a namespace.
import { afterEach, describe, expect, it } from 'vitest';
import type { KubernetesOptions } from '../../src/upgrades/executors/kubernetes/executor.ts';
import type { StepContext } from '../../src/upgrades/executors/executor.ts';
import { type Cluster, openCluster } from './cluster.ts';
import { createHastyWorld, createTestExecutor } from './executor.ts';
import type { Act } from './faults.ts';

let cluster: Cluster | undefined;
afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
});

/** A namespace with the Deployment `a`, and executors for it. */
async function open() {
  const on = (cluster = await openCluster());
  await on.createWorkload({
    kind: 'Deployment',
    name: 'a',
    replicas: 1,
    containers: [{ name: 'a', image: 'a:1' }],
  });
  await on.settled('Deployment', 'a');
  return {
    on,
    start: (options: Partial<KubernetesOptions> = {}) => createTestExecutor(on, options),
    patches: () => on.faults.requests.filter((one) => one.method === 'PATCH'),
    image: async () => (await on.read('Deployment', 'a')).spec.template.spec.containers[0]?.image,
  };
}

const errand = (jobId = 'job', fence = 1): StepContext => ({
  jobId,
  fence,
  runStartedAt: Date.now(),
  signal: new AbortController().signal,
  assertOwnership: () => Promise.resolve(),
});
const workload = {
  name: 'deployment/a',
  component: 'A',
  parts: [{ container: 'a', image: 'a:2', formerImage: 'a:1' }],
};

/** Half a minute, which the server may be away, is a second and a half. */
const hasty = () => ({ runtime: createHastyWorld(20) });

describe('an API server', () => {
  it.each<[string, Act]>([
    ['is too busy', { status: 429, headers: { 'retry-after': '1' } }],
    ['fails inside', { status: 500 }],
    ['is not ready', { status: 503 }],
    ['has lost its database', { status: 504 }],
    ['breaks the connection', 'cut'],
    ['breaks it once it has done what it was asked', 'swallow'],
    ['does not answer', 'hang'],
    ['does not know us', { status: 401 }],
    ['does not know what we may do', { status: 403 }],
  ])('that %s for a moment is asked again', async (_what, act) => {
    const { on, start, image } = await open();
    const executor = start(hasty());
    await executor.perform('Launch the upgrader', errand());
    for (const method of ['GET', 'PATCH', 'PUT']) on.faults.inject({ method, act });
    await executor.apply(workload, errand());
    for (const method of ['GET', 'PATCH', 'PUT']) on.faults.inject({ method, act });
    await executor.verify(workload, errand());
    expect(await image()).toBe('a:2');
    on.faults.inject({ act });
    await executor.release('job');
  });

  it('that is away for less than the lease holds up a job, and no more', async () => {
    const { on, start, image } = await open();
    const executor = start(hasty());
    await executor.apply(workload, errand());
    await on.faults.down();
    const verified = executor.verify(workload, errand());
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await on.faults.up();
    await verified;
    expect(await image()).toBe('a:2');
  });

  it('that has been away and does not know us yet when it is back is asked again', async () => {
    const { on, start } = await open();
    const executor = start(hasty());
    await executor.perform('Launch the upgrader', errand());
    await on.faults.down();
    const applied = executor.apply(workload, errand());
    await new Promise((resolve) => setTimeout(resolve, 800));
    on.faults.inject({ act: { status: 403 } });
    await on.faults.up();
    await applied;
  });

  it('that stays away fails the step', async () => {
    const { on, start } = await open();
    const executor = start(hasty());
    await executor.perform('Launch the upgrader', errand());
    await on.faults.down();
    await expect(executor.apply(workload, errand())).rejects.toThrow(
      /^the API server cannot be reached: .*ECONNREFUSED/,
    );
    await executor.release('job');
    await on.faults.up();
  });

  it('that refuses us from the beginning, or for good, is not asked for long', async () => {
    const { on, start } = await open();
    const forget = on.faults.inject({ act: { status: 401 }, times: Infinity });
    const executor = start(hasty());
    await expect(executor.perform('Launch the upgrader', errand())).rejects.toThrow(
      /^the API server refuses \(401\)/,
    );
    expect(on.faults.requests).toHaveLength(1);
    forget();
    await executor.perform('Launch the upgrader', errand());
    on.faults.inject({ method: 'PATCH', act: { status: 403 }, times: Infinity });
    await expect(executor.apply(workload, errand())).rejects.toThrow(/^the API server refuses \(403\)/);
  });

  it('that refuses what we send is not asked again', async () => {
    const { on, start, patches } = await open();
    on.faults.inject({ method: 'PATCH', act: { status: 422 } });
    await expect(start().apply(workload, errand())).rejects.toThrow(
      /^the API server refuses \(422\): injected 422/,
    );
    expect(patches()).toHaveLength(1);
  });
});

describe('the lock on a namespace', () => {
  const lease = async (on: Cluster) => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${on.namespace}/leases/upgrade-lock`;
    const { spec } = await on.request<{ spec: { holderIdentity?: string; leaseTransitions?: number } }>(
      'GET',
      path,
    );
    return [spec.holderIdentity, spec.leaseTransitions];
  };

  it('is taken by a job, given back, and taken by the next', async () => {
    const { on, start } = await open();
    const executor = start();
    await executor.perform('Launch the upgrader', errand());
    expect(await lease(on)).toEqual(['job/1', 1]);
    await executor.release('job');
    expect(await lease(on)).toEqual([undefined, 1]);
    await start().perform('Launch the upgrader', errand('another'));
    expect(await lease(on)).toEqual(['another/1', 2]);
  });

  it('keeps another Steward out while it is renewed, and tells it in its plan', async () => {
    const { start, patches } = await open();
    const [ours, theirs] = [start(hasty()), start(hasty())];
    await ours.perform('Launch the upgrader', errand());
    const { problems } = (await start().inventory()).planReverts([]);
    expect(problems).toEqual([
      expect.stringMatching(
        /^cluster: another Steward has the namespace: its Lease upgrade-lock is held by the job job\/1, and free in \d+ seconds unless it is renewed\.$/,
      ),
    ]);
    const refused = theirs.apply(workload, errand('theirs'));
    refused.catch(() => undefined);
    for (let time = 0; time < 8; time += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      await ours.perform('Launch the upgrader', errand());
    }
    await expect(refused).rejects.toThrow(
      'another Steward has the namespace: its Lease upgrade-lock is held by the job job/1.',
    );
    expect(patches()).toEqual([]);
  });

  it('is had by another Steward once it has not been renewed for as long as it holds', async () => {
    const { on, start, image } = await open();
    await start(hasty()).perform('Launch the upgrader', errand());
    await start(hasty()).apply(workload, errand('theirs'));
    expect(await lease(on)).toEqual(['theirs/1', 2]);
    expect(await image()).toBe('a:2');
  });

  it('goes at once to whoever takes the same job up, and whoever had it changes nothing any more', async () => {
    const { on, start, patches } = await open();
    const [former, heir] = [start(hasty()), start(hasty())];
    await former.perform('Launch the upgrader', errand('job', 1));
    await heir.perform('Launch the upgrader', errand('job', 2));
    expect(await lease(on)).toEqual(['job/2', 2]);
    const late = former.apply(workload, errand('job', 1));
    late.catch(() => undefined);
    for (let time = 0; time < 8; time += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      await heir.perform('Launch the upgrader', errand('job', 2));
    }
    await expect(late).rejects.toThrow('held by the job job/2');
    // Nor when nobody has the lock any more: the job is over, and it does not know.
    await heir.release('job');
    await expect(former.apply(workload, errand('job', 1))).rejects.toThrow(
      'another process has had the Lease',
    );
    expect(patches()).toEqual([]);
    await former.release('job');
    expect(await lease(on)).toEqual([undefined, 2]);
  });

  it('does not keep out the next job of the same Steward when it could not be given back', async () => {
    const { on, start } = await open();
    await start(hasty()).perform('Launch the upgrader', errand());
    const hasEnded = (jobId: string) => jobId === 'job';
    expect((await start({ hasEnded }).inventory()).planReverts([]).problems).toEqual([]);
    await start({ hasEnded }).perform('Launch the upgrader', errand('next'));
    expect(await lease(on)).toEqual(['next/1', 2]);
  });

  it('cannot be had where there is no namespace any more', async () => {
    const { on, start } = await open();
    on.faults.inject({
      path: /leases/,
      times: Infinity,
      act: { status: 404, body: { message: 'no namespace' } },
    });
    await expect(start().perform('Launch the upgrader', errand())).rejects.toThrow(
      'refuses (404): no namespace.',
    );
  });

  it('is not all: nothing is changed for a job that another process has', async () => {
    const { start, patches } = await open();
    const lost = {
      ...errand(),
      confirm: () => Promise.reject(new Error('another process has taken the job up.')),
    };
    await expect(start().apply(workload, lost)).rejects.toThrow('another process has taken the job up.');
    expect(patches()).toEqual([]);
  });
});
