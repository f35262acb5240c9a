// What the Jobs of steps and their pods really say: which of them work, which have not started, and what a condition
// means.
import { describe, expect, it } from 'vitest';
import type { Job, Pod } from './objects.ts';
import { fast } from './executor.ts';
import { type TemplateOptions, openUpgrade, openWorkloads, textsOf } from './upgrade-kit.ts';

const podSpec = {
  schedulerName: 'steward-test',
  terminationGracePeriodSeconds: 0,
  restartPolicy: 'Never',
  containers: [{ name: 'task', image: 'task:1' }],
};

const withInit = (step: string, image: string, fields = {}): TemplateOptions => ({
  step,
  jobSpec: { template: { spec: { ...podSpec, initContainers: [{ name: 'dump', image, ...fields }] } } },
});

const conditionsOf = ([job]: readonly Job[]) => (job?.status.conditions ?? []).map(({ type }) => type);

/** Longer than a Job may take to start. */
const longTimeMs = 60_000;

describe('a Job whose init container', () => {
  it('works for longer than a rollout may take is waited for', async () => {
    const options = { ...fast(), rolloutTimeoutMs: 20_000 };
    const { cluster, start, end, jobPods } = await openUpgrade([withInit('before', 'dump:working')], options);
    await start('upgrade', 'pat');
    await expect
      .poll(async () => (await jobPods())[0]?.status.initContainerStatuses?.[0]?.state)
      .toHaveProperty('running');
    await options.runtime.sleep(longTimeMs);
    cluster.kubelet.heal('working');
    expect((await end()).state).toBe('success');
  });

  it('waits for its volume for longer than that did not start, and is deleted', async () => {
    const options = { ...fast(), rolloutTimeoutMs: 20_000 };
    const { start, end, jobs } = await openUpgrade([withInit('before', 'dump:creating')], options);
    await start('upgrade', 'pat');
    const { state, messages } = await end();
    expect(state).toBe('failed');
    expect(textsOf(messages, 2901)[0]).toMatch(
      /did not start, and was deleted: no pod has begun to work for \d+ seconds: steward-\S+ is not ready \(dump: ContainerCreating\)\.$/,
    );
    expect(await jobs()).toEqual([]);
  });

  it('has no image did not start, and is deleted', async () => {
    const { start, end, jobs } = await openUpgrade([withInit('before', 'dump:missing')], fast());
    await start('upgrade', 'pat');
    expect(textsOf((await end()).messages, 2901)[0]).toMatch(/cannot pull the image dump:missing/);
    expect(await jobs()).toEqual([]);
  });
});

it('a Job whose task has no image did not start, although a sidecar of it runs', async () => {
  const template = withInit('before', 'side:stuck', { restartPolicy: 'Always' });
  const spec = { ...podSpec, containers: [{ name: 'task', image: 'task:missing' }] };
  const { initContainers } = (
    template.jobSpec as { template: { spec: object & { initContainers: object[] } } }
  ).template.spec;
  const { start, end, jobs } = await openUpgrade(
    [{ ...template, jobSpec: { template: { spec: { ...spec, initContainers } } } }],
    fast(),
  );
  await start('upgrade', 'pat');
  expect(textsOf((await end()).messages, 2901)[0]).toMatch(/cannot pull the image task:missing/);
  expect(await jobs()).toEqual([]);
});

describe('a Job of the database engine that is complete', () => {
  it('is complete although a pod of it on a lost node has not ended, and does not run again', async () => {
    const { cluster, start, end, jobs, jobPods, waitForCode } = await openUpgrade([
      { step: 'database-engine', image: 'task:1-stuck', args: ['{"catalog":{"status":"success"}}'] },
    ]);
    await start('upgrade', 'rel');
    await waitForCode(2144);
    await expect.poll(async () => (await jobPods()).length).toBe(1);
    const name = (await jobs())[0]?.metadata.name ?? '';
    await cluster.request('POST', `/api/v1/namespaces/${cluster.namespace}/pods`, {
      metadata: { name: 'earlier', labels: { 'job-name': name } },
      spec: { ...podSpec, containers: [{ name: 'task', image: 'task:lost-stuck' }] },
    });
    cluster.kubelet.heal('1-stuck');
    const { state, messages } = await end();
    expect(state).toBe('success');
    expect(textsOf(messages, 2153)).toEqual(['{"catalog":{"status":"success"}}']);
    expect((await jobs()).map((job) => job.metadata.name)).toEqual([name]);
  });
});

describe('a Job that has failed', () => {
  const openFailing = async () => {
    const upgrade = await openUpgrade(
      [{ step: 'after', image: 'task:1-stuck', args: ['the dump is too old'] }],
      fast(),
    );
    const { cluster, start, jobPods, jobs, waitForCode } = upgrade;
    await start('upgrade', 'pat');
    await waitForCode(2906);
    await expect.poll(async () => (await jobPods()).length).toBe(1);
    return {
      ...upgrade,
      pod: (await jobPods())[0] as Pod,
      failed: async () => {
        await cluster.passTime(1_800_000);
        await expect.poll(async () => conditionsOf(await jobs())).toEqual(['Failed']);
      },
    };
  };

  it('fails its step although a pod on a lost node does not end, after the time that the pod has to end', async () => {
    const { cluster, end, jobPods, images, pod, failed } = await openFailing();
    await cluster.loseNode(pod.metadata.name);
    await failed();
    const { state, messages } = await end();
    expect(state).toBe('failed');
    expect(textsOf(messages, 2901)).toEqual([
      expect.stringMatching(/"Run the hook after": the Job \S+ failed \(DeadlineExceeded: .*\)\.$/),
    ]);
    expect(await images()).toEqual(['map-server:1', 'map-tiles:1']);
    expect(await jobPods()).toHaveLength(1);
  });
});

describe('a Job that is suspended', () => {
  const suspended = {
    step: 'before',
    jobSpec: { suspend: true, backoffLimit: 0, template: { spec: podSpec } },
  };

  it('waits for as long as it is', async () => {
    const options = { ...fast(), rolloutTimeoutMs: 20_000 };
    const { cluster, start, end, jobs } = await openUpgrade([suspended], options);
    await start('upgrade', 'pat');
    await expect.poll(async () => (await jobs()).length).toBe(1);
    await options.runtime.sleep(longTimeMs);
    const path = `/apis/batch/v1/namespaces/${cluster.namespace}/jobs/${(await jobs())[0]?.metadata.name}`;
    await cluster.request('PATCH', path, { spec: { suspend: false } });
    expect((await end()).state).toBe('success');
  });

  it('and ends with the time of its step says so', async () => {
    const { server, start, end, jobs, waitForReason } = await openUpgrade([suspended]);
    await start('upgrade', 'pat');
    await expect.poll(async () => (await jobs()).length).toBe(1);
    await waitForReason(/is suspended/);
    await server.runtime.advance(1_860_000);
    expect(textsOf((await end()).messages, 2901)).toEqual([
      expect.stringMatching(
        /took longer than 1860 seconds: the Job steward-\S+-5-1 is suspended \(spec\.suspend\)\.$/,
      ),
    ]);
  });
});

it('a Job that a finalizer keeps is no longer waited for when its pods are gone', async () => {
  const finalizers = ['example.com/never'];
  const { cluster, start, ask, end, jobs, jobPods, waitForCode } = await openUpgrade([
    { step: 'after', image: 'task:1-stuck' },
  ]);
  const { jobId } = await start('upgrade', 'pat');
  await waitForCode(2906);
  await expect.poll(async () => (await jobPods()).length).toBe(1);
  const path = `/apis/batch/v1/namespaces/${cluster.namespace}/jobs/${(await jobs())[0]?.metadata.name}`;
  await cluster.request('PATCH', path, { metadata: { finalizers } });
  await ask(`jobs/${jobId}/cancel`);
  await expect.poll(async () => (await jobs())[0]?.metadata.deletionTimestamp).toBeDefined();
  for (const { metadata } of await jobPods())
    await cluster.request('DELETE', `/api/v1/namespaces/${cluster.namespace}/pods/${metadata.name}`);
  expect((await end()).state).toBe('cancelled');
  expect(await jobs()).toHaveLength(1);
  await cluster.request('PATCH', path, { metadata: { finalizers: null } });
});

it('a Job whose pods do not end is waited for when the upgrade is cancelled', async () => {
  const cluster = await openWorkloads();
  const { start, ask, end, read, jobPods, waitForCode } = await openUpgrade(
    [{ step: 'after', image: 'task:1-stuck' }],
    { cluster, ...fast() },
  );
  const { jobId } = await start('upgrade', 'pat');
  await waitForCode(2906);
  await expect.poll(async () => (await jobPods()).length).toBe(1);
  const pod = (await jobPods())[0]?.metadata.name ?? '';
  await cluster.loseNode(pod);
  await ask(`jobs/${jobId}/cancel`);
  await expect.poll(async () => (await jobPods())[0]?.metadata.deletionTimestamp).toBeDefined();
  expect((await read()).state).toBe('in_progress');
  await cluster.request('PATCH', `/api/v1/namespaces/${cluster.namespace}/pods/${pod}`, {
    metadata: { finalizers: null },
  });
  expect((await end()).state).toBe('cancelled');
});
