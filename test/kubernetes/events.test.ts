// The Events that the executor writes for the workloads that it changes, and what happens when it cannot write them.
import { describe, expect, it } from 'vitest';
import type { Cluster } from './cluster.ts';
import type { Act } from './faults.ts';
import { fast } from './executor.ts';
import { contextOf, openDeployment, workload } from './single-deployment.ts';

type Event = {
  metadata: { resourceVersion: string };
  involvedObject: { apiVersion: string; kind: string; name: string; uid: string };
  type: string;
  reason: string;
  message: string;
  source: { component: string };
};

const path = /\/events\?/;

async function eventsOf(on: Cluster): Promise<Event[]> {
  const { items } = await on.request<{ items: Event[] }>('GET', `/api/v1/namespaces/${on.namespace}/events`);
  const ours = items.filter(({ source }) => source.component === 'steward');
  return ours.sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion));
}

const bad = { ...workload, parts: [{ container: 'a', image: 'a:2-missing', formerImage: 'a:1' }] };

describe('an updated workload', () => {
  it('gets an Event at the start and at the end, each once', async () => {
    const { on, start } = await openDeployment();
    const executor = start();
    for (let time = 0; time < 2; time += 1) {
      await executor.apply(workload, contextOf());
      await executor.verify(workload, contextOf());
    }
    const { metadata } = await on.read('Deployment', 'a');
    const involvedObject = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a', uid: metadata.uid };
    expect(await eventsOf(on)).toMatchObject([
      {
        involvedObject,
        type: 'Normal',
        reason: 'UpgradeStarted',
        message: 'Set the image a:2 (job job)',
      },
      {
        involvedObject,
        type: 'Normal',
        reason: 'UpgradeCompleted',
        message: 'All pods run the image a:2 (job job)',
      },
    ]);
  });

  it('gets an Event that names a former pod which has not ended', async () => {
    const { on, start } = await openDeployment();
    const [pod] = await on.pods('Deployment', 'a');
    const path = `/api/v1/namespaces/${on.namespace}/pods/${pod?.metadata.name}`;
    await on.request('PATCH', path, { metadata: { finalizers: ['example.com/hold'] } });
    const executor = start();
    await executor.apply(workload, contextOf());
    await executor.verify(workload, contextOf());
    const { message } = (await eventsOf(on)).at(-1) ?? {};
    expect(message).toBe(`All wanted pods run the image a:2; ${pod?.metadata.name} has not ended (job job)`);
  });

  it('without pods gets no Event that pods run its image', async () => {
    const { on, start } = await openDeployment();
    await on.patch('Deployment', 'a', { spec: { replicas: 0 } });
    await on.settled('Deployment', 'a');
    const executor = start();
    await executor.apply(workload, contextOf());
    await executor.verify(workload, contextOf());
    const { message } = (await eventsOf(on)).at(-1) ?? {};
    expect(message).toBe('No pods are wanted. The template has the image a:2 (job job)');
  });

  it('gets an Event if its rollout fails, and one when it is reverted', async () => {
    const { on, start } = await openDeployment();
    const executor = start();
    await executor.apply(bad, contextOf());
    await expect(executor.verify(bad, contextOf())).rejects.toThrow('cannot pull');
    await executor.rollback(bad, contextOf());
    const events = await eventsOf(on);
    expect(events.map(({ type, reason }) => [type, reason])).toEqual([
      ['Normal', 'UpgradeStarted'],
      ['Warning', 'UpgradeFailed'],
      ['Normal', 'UpgradeReverted'],
    ]);
    expect(events[1]?.message).toMatch(/^deployment\/a: the pod a-\S+ cannot pull the image a:2-missing/);
    expect(events[2]?.message).toBe('Put back to its former image a:1 (job job)');
  });

  it('gets no Event from a process that no longer owns the job', async () => {
    const { on, start } = await openDeployment();
    const assertOwnership = () => Promise.reject(new Error('another process has taken over the job.'));
    await expect(start().apply(workload, { ...contextOf(), assertOwnership })).rejects.toThrow('taken over');
    expect(await eventsOf(on)).toEqual([]);
  });
});

describe('an Event that cannot be written', () => {
  it.each<[string, Act]>([
    ['is not accepted', { status: 422 }],
    ['gets no answer', 'hang'],
  ])('because it %s does not fail the step', async (_why, act) => {
    const { on, start, image } = await openDeployment();
    on.faults.inject({ path, times: Infinity, act });
    const executor = start(fast());
    await executor.apply(workload, contextOf());
    await executor.verify(workload, contextOf());
    expect(await image()).toBe('a:2');
    expect(on.faults.requests.filter((one) => path.test(one.path))).toHaveLength(2);
  });

  it.each<[string, Act]>([
    ['finds the server closed', 'cut'],
    ['is refused just after a restart', { status: 403 }],
  ])('because it %s is written by the next try', async (_why, act) => {
    const { on, start } = await openDeployment();
    on.faults.inject({ path, times: 2, act });
    const executor = start(fast(2));
    await executor.apply(workload, contextOf());
    await executor.verify(workload, contextOf());
    expect((await eventsOf(on)).map(({ reason }) => reason)).toEqual(['UpgradeStarted', 'UpgradeCompleted']);
  });

  it('because of missing permissions is one Event of each job', async () => {
    const { on, start } = await openDeployment();
    on.faults.inject({ path, times: Infinity, act: { status: 403 } });
    const executor = start(fast());
    for (const jobId of ['job', 'next']) {
      await executor.apply(workload, contextOf(jobId));
      await executor.verify(workload, contextOf(jobId));
      await executor.rollback(workload, contextOf(jobId));
      await executor.release(jobId);
    }
    const tried = on.faults.requests.filter((one) => path.test(one.path)).map(({ body }) => body as Event);
    expect(new Set(tried.map(({ message }) => message))).toEqual(
      new Set(['Set the image a:2 (job job)', 'Set the image a:2 (job next)']),
    );
  });
});
