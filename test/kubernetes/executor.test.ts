// How the executor changes workloads of a cluster: the fake one, or the real one of STEWARD_TEST_KUBECONFIG.
import { afterEach, describe, expect, it } from 'vitest';
import { type Executor, RefusedError, type RepairedWorkload } from '../../src/upgrades/executors/executor.ts';
import type { KubernetesOptions } from '../../src/upgrades/executors/kubernetes/kubernetes-executor.ts';
import type { WorkloadContainer, Workload } from '../../src/upgrades/executors/workloads.ts';
import { type Cluster, type Kind, type NewWorkload, openCluster } from './cluster.ts';
import { createTestExecutor, fast } from './executor.ts';
import type { RecordedRequest } from './faults.ts';
import { contextOf } from './single-deployment.ts';
import { imageOf } from './workloads.ts';

const isReal = process.env.STEWARD_TEST_KUBECONFIG !== undefined;

let cluster: Cluster | undefined;
afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
});

/** A namespace with one healthy workload `a` that runs the image a:1, and an executor. */
async function open(given: Partial<NewWorkload> = {}, options: Partial<KubernetesOptions> = {}) {
  const on = (cluster = await openCluster());
  const { kind = 'Deployment' } = given;
  await on.createWorkload({
    kind,
    name: 'a',
    replicas: 2,
    containers: [{ name: 'a', image: 'a:1' }],
    ...given,
  });
  await on.settled(kind, 'a');
  return {
    on,
    executor: createTestExecutor(on, options),
    images: async () => (await on.read(kind, 'a')).spec.template.spec.containers.map(({ image }) => image),
    patches: () => on.faults.requests.filter(({ method }) => method === 'PATCH'),
  };
}

const context = contextOf();

const moving = (kind: Kind, ...parts: WorkloadContainer[]): Workload => ({
  name: `${kind.toLowerCase()}/a`,
  component: 'A',
  parts,
});
const toImage = (image: string, kind: Kind = 'Deployment') =>
  moving(kind, { container: 'a', image, formerImage: 'a:1' });

async function move(executor: Executor, workload: Workload): Promise<void> {
  await executor.apply(workload, context);
  await executor.verify(workload, context);
}

const path = /\/deployments\/a/;

/** A rollout without progress fails soon. */
const hasty = () => (isReal ? { rolloutTimeoutMs: 3000 } : { ...fast(), rolloutTimeoutMs: 10_000 });

const deadlineSeconds = 10;

/** Waits until the first of two pods is replaced, and then for the time that its controller gives it. */
async function exceedDeadline(on: Cluster): Promise<void> {
  const status = async () => (await on.read('Deployment', 'a')).status;
  await expect.poll(status).toMatchObject({ replicas: 3, updatedReplicas: 1, unavailableReplicas: 1 });
  await on.passTime(deadlineSeconds * 1000);
}

describe('a patch', () => {
  it('contains the images of all containers and the annotations, and is a strategic merge with a resource version', async () => {
    const { on, executor, patches } = await open({
      containers: ['a', 'b', 'c'].map((name) => ({ name, image: `${name}:1` })),
      initContainers: [{ name: 'i', image: 'i:1' }],
    });
    const before = await on.read('Deployment', 'a');
    const part = (name: string) => ({ container: name, image: `${name}:2`, formerImage: `${name}:1` });
    await move(executor, moving('Deployment', part('b'), part('i'), part('a')));
    expect(patches()).toMatchObject([
      {
        contentType: 'application/strategic-merge-patch+json',
        body: {
          metadata: {
            resourceVersion: before.metadata.resourceVersion,
            annotations: {
              'steward/job': 'job',
              'steward/state': 'updated',
              'steward/change': 'change',
              'steward/former-images': '{"b":"b:1","i":"i:1","a":"a:1"}',
            },
          },
        },
      },
    ]);
    const { spec } = await on.read('Deployment', 'a');
    const { containers, initContainers = [] } = spec.template.spec;
    expect([...containers, ...initContainers].map(({ image }) => image)).toEqual([
      'a:2',
      'b:2',
      'c:1',
      'i:2',
    ]);
  });

  it('is built again if the workload changed after the read', async () => {
    const { on, executor, images, patches } = await open();
    const touch = async () => {
      await on.patch('Deployment', 'a', { metadata: { labels: { touched: 'yes' } } });
    };
    on.faults.inject({ method: 'PATCH', path, act: touch });
    await move(executor, toImage('a:2'));
    expect(await images()).toEqual(['a:2']);
    expect(patches().map(({ status }) => status)).toEqual([409, 200]);
  });

  it('is recognised by the final check of the same step, and not by that of another', async () => {
    const { executor } = await open();
    await move(executor, toImage('a:2'));
    const all = [toImage('a:2')];
    const repaired: RepairedWorkload[] = [];
    await executor.check(all, 'image', context, repaired);
    expect(repaired).toEqual([{ workload: toImage('a:2'), isPatched: true }]);
    const byOther: RepairedWorkload[] = [];
    await executor.check(all, 'image', { ...context, change: 'other' }, byOther);
    expect(byOther).toEqual([]);
  });

  it('is not applied twice if the response to it is lost', async () => {
    const { on, executor, patches } = await open();
    on.faults.inject({ method: 'PATCH', path, act: 'swallow' });
    await move(executor, toImage('a:2'));
    expect(patches().map(({ status }) => status)).toEqual([undefined, 409]);
  });
});

describe('a policy that changes images', () => {
  const rewrite =
    (from: string, to: string) =>
    ({ body }: RecordedRequest) =>
      Promise.resolve(JSON.stringify(body).replaceAll(`"image":"${from}"`, `"image":"${to}"`));

  it('fails the step and is named, and the images of before are set again', async () => {
    const { on, executor, images, patches } = await open();
    on.faults.inject({ method: 'PATCH', path, times: Infinity, act: rewrite('a:2', 'mirror/a:2') });
    await expect(executor.apply(toImage('a:2'), context)).rejects.toThrow(
      'the API server has set the image mirror/a:2 in the container a of deployment/a instead of a:2: a policy of the cluster changes images.',
    );
    expect(await images()).toEqual(['a:1']);
    // The controller may write its status between the two.
    expect(patches().filter(({ status }) => status === 200)).toHaveLength(2);
    const revert = { ...context, change: 'revert' };
    expect(await executor.rollback(toImage('a:2'), revert)).toEqual({ isPatched: false });
  });

  it('fails a revert too, which leaves its image', async () => {
    const { on, executor, images } = await open();
    await move(executor, toImage('a:2'));
    on.faults.inject({ method: 'PATCH', path, times: Infinity, act: rewrite('a:1', 'mirror/a:1') });
    await expect(executor.rollback(toImage('a:2'), context)).rejects.toThrow(
      'the API server has set the image mirror/a:1 in the container a of deployment/a instead of a:1',
    );
    expect(await images()).toEqual(['mirror/a:1']);
  });
});

describe('a workload whose settings keep a rollout from all pods since the plan', () => {
  it.each<[Kind, object, string]>([
    ['Deployment', { paused: true }, 'is paused'],
    [
      'StatefulSet',
      { updateStrategy: { type: 'OnDelete', rollingUpdate: null } },
      'has the update strategy OnDelete',
    ],
  ])('%s %j is neither patched nor put back', async (kind, spec, obstacle) => {
    const { on, executor, images, patches } = await open({ kind });
    await on.patch(kind, 'a', { spec });
    const cause = `${kind.toLowerCase()}/a: ${obstacle}.`;
    await expect(executor.apply(toImage('a:2', kind), context)).rejects.toThrow(cause);
    expect(await executor.rollback(toImage('a:2', kind), context)).toEqual({ isPatched: false });
    const back = moving(kind, { container: 'a', image: 'a:1', formerImage: 'a:0' });
    await expect(executor.rollback(back, context)).rejects.toThrow(new RefusedError(cause));
    expect(await images()).toEqual(['a:1']);
    expect(patches()).toEqual([]);
  });
});

describe('a change by another client', () => {
  it('of the image fails the step, and is not overwritten', async () => {
    const { on, executor, images, patches } = await open();
    on.faults.inject({
      method: 'PATCH',
      path,
      act: async () => {
        await on.patch('Deployment', 'a', imageOf('a:hotfix', 'a'));
      },
    });
    await expect(executor.apply(toImage('a:2'), context)).rejects.toThrow(
      'deployment/a has the image a:hotfix in its container a, neither a:1 nor a:2: another client or a policy has changed it.',
    );
    await expect(executor.verify(toImage('a:2'), context)).rejects.toThrow('another client');
    await expect(executor.rollback(toImage('a:2'), context)).rejects.toThrow('another client');
    expect(await images()).toEqual(['a:hotfix']);
    expect(patches()).toHaveLength(1);
  });

  it('during a rollout fails the step', async () => {
    const { on, executor } = await open();
    await executor.apply(toImage('a:2-stuck'), context);
    const verified = executor.verify(toImage('a:2-stuck'), context);
    verified.catch(() => undefined);
    await expect.poll(() => on.faults.requests.some((one) => one.path.includes('/pods?'))).toBe(true);
    await on.patch('Deployment', 'a', imageOf('a:1', 'a'));
    await expect(verified).rejects.toThrow(
      'another client changed the images of deployment/a during the rollout.',
    );
  });

  it('that deletes the workload fails the step', async () => {
    const { on, executor } = await open();
    await executor.apply(toImage('a:2-stuck'), context);
    const verified = executor.verify(toImage('a:2-stuck'), context);
    verified.catch(() => undefined);
    await expect.poll(() => on.faults.requests.some((one) => one.path.includes('/pods?'))).toBe(true);
    await on.request('DELETE', `/apis/apps/v1/namespaces/${on.namespace}/deployments/a`);
    await expect(verified).rejects.toThrow('deployment/a no longer exists.');
    await expect(executor.apply(toImage('a:2'), context)).rejects.toThrow('deployment/a no longer exists.');
  });
});

describe('a workload that is being deleted', () => {
  it('fails every step at once, and no resume is asked for', async () => {
    const { on, executor, patches } = await open();
    await executor.apply(toImage('a:2-stuck'), context);
    const { metadata, ...rest } = await on.read('Deployment', 'a');
    const body = { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T12:00:00Z' } };
    on.faults.inject({ method: 'GET', path, times: Infinity, act: { status: 200, body } });
    const gone = new Error('deployment/a is being deleted.');
    await expect(executor.verify(toImage('a:2-stuck'), context)).rejects.toThrow(gone);
    await expect(executor.apply(toImage('a:2'), context)).rejects.toThrow(gone);
    await expect(executor.rollback(toImage('a:2-stuck'), context)).rejects.not.toBeInstanceOf(RefusedError);
    expect(patches()).toHaveLength(1);
  });
});

describe('a rollout', () => {
  it.each(['Deployment', 'StatefulSet', 'DaemonSet'] as const)(
    'of a %s fails early if its images cannot be pulled, and can be rolled back',
    async (kind) => {
      const { executor, images } = await open({ kind });
      await executor.apply(toImage('a:2-missing', kind), context);
      await expect(executor.verify(toImage('a:2-missing', kind), context)).rejects.toThrow(
        /a: the pod a-\S+ cannot pull the image a:2-missing \((ErrImagePull|ImagePullBackOff)/,
      );
      await executor.rollback(toImage('a:2-missing', kind), context);
      expect(await images()).toEqual(['a:1']);
    },
  );

  it.each(['Deployment', 'StatefulSet', 'DaemonSet'] as const)(
    'of a %s without progress fails after the timeout of the executor, and can be rolled back',
    async (kind) => {
      const spec = kind === 'Deployment' ? { progressDeadlineSeconds: 2 ** 31 - 1 } : {};
      const { executor, images } = await open({ kind, spec }, hasty());
      await executor.apply(toImage('a:2-stuck', kind), context);
      await expect(executor.verify(toImage('a:2-stuck', kind), context)).rejects.toThrow(
        /a: no progress for \d+ seconds: of \d wanted pods \d are updated and \d available/,
      );
      await executor.rollback(toImage('a:2-stuck', kind), context);
      expect(await images()).toEqual(['a:1']);
    },
  );

  it('of a Deployment fails after its own deadline; a report of its controller on the template before is ignored', async () => {
    const { on, executor, images } = await open(
      { spec: { progressDeadlineSeconds: deadlineSeconds } },
      { ...(isReal ? {} : fast()), imageTimeoutMs: Infinity },
    );
    // In the second round the controller may keep its first report.
    for (let round = 1; round <= 2; round += 1) {
      await executor.apply(toImage('a:2-missing'), context);
      await exceedDeadline(on);
      await expect(executor.verify(toImage('a:2-missing'), context)).rejects.toThrow(
        /no progress for 1\d seconds/,
      );
      await executor.rollback(toImage('a:2-missing'), context);
      expect(await images()).toEqual(['a:1']);
    }
  });

  it('that failed in an earlier run may complete in this one', async () => {
    const { on, executor } = await open(
      { spec: { progressDeadlineSeconds: deadlineSeconds } },
      { ...(isReal ? {} : fast()), imageTimeoutMs: Infinity },
    );
    await executor.apply(toImage('a:2-missing'), context);
    await exceedDeadline(on);
    await expect(executor.verify(toImage('a:2-missing'), context)).rejects.toThrow('no progress');
    const resumed = executor.verify(toImage('a:2-missing'), {
      ...context,
      runStartedAt: Date.now() + 60_000,
    });
    on.kubelet.heal('missing');
    await resumed;
  });

  it('does not fail because of pods of the template before', async () => {
    const on = (cluster = await openCluster());
    await on.createWorkload({
      kind: 'Deployment',
      name: 'a',
      replicas: 2,
      containers: [{ name: 'a', image: 'a:1-missing' }],
    });
    await expect
      .poll(async () => JSON.stringify(await on.pods('Deployment', 'a')))
      .toContain('ImagePullBackOff');
    const workload = moving('Deployment', { container: 'a', image: 'a:2', formerImage: 'a:1-missing' });
    await move(createTestExecutor(on, { imageTimeoutMs: 0 }), workload);
  });

  it('of a paused Deployment fails with that reason', async () => {
    const { on, executor } = await open({ spec: { progressDeadlineSeconds: 2 ** 31 - 1 } }, hasty());
    await executor.apply(toImage('a:2-stuck'), context);
    await on.patch('Deployment', 'a', { spec: { paused: true } });
    await expect(executor.verify(toImage('a:2-stuck'), context)).rejects.toThrow(
      /no progress .*; it is paused/,
    );
  });

  it('of a StatefulSet replaces a stuck pod', async () => {
    const { executor, images } = await open({ kind: 'StatefulSet' });
    await executor.apply(toImage('a:2-missing', 'StatefulSet'), context);
    await expect(executor.verify(toImage('a:2-missing', 'StatefulSet'), context)).rejects.toThrow(
      'cannot pull',
    );
    const mended = moving('StatefulSet', { container: 'a', image: 'a:3', formerImage: 'a:2-missing' });
    await move(executor, mended);
    expect(await images()).toEqual(['a:3']);
  });

  it('of a workload with no pods is complete at once', async () => {
    const { executor, images } = await open({ replicas: 0 });
    await move(executor, toImage('a:2-missing'));
    expect(await images()).toEqual(['a:2-missing']);
  });
});
