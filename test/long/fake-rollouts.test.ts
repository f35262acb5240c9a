// How rollouts proceed and fail in a cluster: the fake one, or the real one of STEWARD_TEST_KUBECONFIG.
import { describe, expect, it } from 'vitest';
import { useClient } from '../kubernetes/client.ts';

const client = useClient();

const progressOf = async (name: string) =>
  (await client.cluster.read('Deployment', name)).status.conditions?.find(
    ({ type }) => type === 'Progressing',
  );

describe.each(['Deployment', 'StatefulSet', 'DaemonSet'] as const)('a %s', (kind) => {
  const count = kind === 'DaemonSet' ? 1 : 2;

  it('rolls to a good image', async () => {
    const { cluster } = client;
    const name = await client.settle(kind);
    await client.roll(kind, name, 'web:2');
    const { metadata, status } = await cluster.settled(kind, name);
    expect(status.observedGeneration).toBe(metadata.generation);
    await expect
      .poll(() => client.imagesOf(kind, name))
      .toEqual(Array.from({ length: count }, () => 'web:2'));
  });

  it('completes when a bad image becomes good', async () => {
    const { cluster } = client;
    const name = await client.settle(kind);
    const image = `web:stuck-${name}`;
    await client.roll(kind, name, image);
    await expect.poll(() => client.imagesOf(kind, name)).toContain(image);
    cluster.kubelet.heal(`stuck-${name}`);
    await cluster.settled(kind, name);
  });

  it.each([
    ['missing', 'Pending', 'ImagePullBackOff'],
    ['crash', 'Running', 'CrashLoopBackOff'],
  ])('shows why a pod with the tag %s does not start', async (tag, phase, reason) => {
    const { cluster } = client;
    const name = await client.settle(kind);
    await client.roll(kind, name, `web:${tag}`);
    const state = async () => {
      const all = await cluster.pods(kind, name);
      const pod = all.find(({ spec }) => spec.containers[0]?.image === `web:${tag}`);
      return { phase: pod?.status.phase, reason: pod?.status.containerStatuses?.[0]?.state.waiting?.reason };
    };
    await expect.poll(state).toEqual({ phase, reason });
  });
});

describe('a Deployment', () => {
  it('reports an exceeded deadline, also for a moment after it is rolled back', async () => {
    const { cluster } = client;
    const name = await client.settle('Deployment', 1, { progressDeadlineSeconds: 1 });
    await client.roll('Deployment', name, 'web:missing');
    await expect
      .poll(() => progressOf(name))
      .toMatchObject({ status: 'False', reason: 'ProgressDeadlineExceeded' });
    const { status } = await cluster.read('Deployment', name);
    expect(status).toMatchObject({ replicas: 2, updatedReplicas: 1, availableReplicas: 1 });
    const late = await progressOf(name);
    const noted = await cluster.patch('Deployment', name, { metadata: { annotations: { note: 'new' } } });
    await expect
      .poll(async () => (await cluster.read('Deployment', name)).status.observedGeneration)
      .toBe(noted.metadata.generation);
    expect(await progressOf(name)).toEqual(late);
    const back = await client.roll('Deployment', name, 'web:1');
    expect(back.status.conditions).toContainEqual(late);
    await cluster.settled('Deployment', name);
    await expect.poll(() => progressOf(name)).toMatchObject({ reason: 'NewReplicaSetAvailable' });
    expect(await client.imagesOf('Deployment', name)).toEqual(['web:1']);
  });

  it('keeps enough available pods during a rollout', async () => {
    const { cluster } = client;
    const strategy = { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
    const name = await client.settle('Deployment', 3, { strategy });
    await client.roll('Deployment', name, 'web:stuck');
    await expect
      .poll(async () => (await cluster.read('Deployment', name)).status)
      .toMatchObject({ replicas: 4, updatedReplicas: 1, availableReplicas: 3, unavailableReplicas: 1 });
  });

  it('with the strategy Recreate never runs both images', async () => {
    const { cluster } = client;
    const name = await client.settle('Deployment', 2, { strategy: { type: 'Recreate' } });
    await client.roll('Deployment', name, 'web:stuck');
    await expect.poll(() => client.imagesOf('Deployment', name)).toEqual(['web:stuck', 'web:stuck']);
    await client.roll('Deployment', name, 'web:2');
    await cluster.settled('Deployment', name);
  });

  it('starts no rollout while it is paused', async () => {
    const { cluster } = client;
    const name = await client.settle('Deployment', 1);
    await cluster.patch('Deployment', name, { spec: { paused: true } });
    const { metadata } = await client.roll('Deployment', name, 'web:2');
    await expect
      .poll(async () => (await cluster.read('Deployment', name)).status.observedGeneration)
      .toBe(metadata.generation);
    expect(await client.imagesOf('Deployment', name)).toEqual(['web:1']);
    await cluster.patch('Deployment', name, { spec: { paused: null } });
    await cluster.settled('Deployment', name);
    expect(await client.imagesOf('Deployment', name)).toEqual(['web:2']);
  });

  it('follows the number of replicas', async () => {
    const { cluster } = client;
    const name = await client.settle('Deployment', 1);
    for (const replicas of [4, 0, 2]) {
      await cluster.patch('Deployment', name, { spec: { replicas } });
      await cluster.settled('Deployment', name);
      await expect.poll(() => client.imagesOf('Deployment', name)).toHaveLength(replicas);
    }
  });

  it('reports that a quota forbids new pods, and continues without the quota', async () => {
    const { cluster } = client;
    const quotas = `/api/v1/namespaces/${cluster.namespace}/resourcequotas`;
    const name = await client.settle('Deployment', 1);
    await cluster.request('POST', quotas, { metadata: { name: 'few' }, spec: { hard: { pods: '1' } } });
    await expect
      .poll(() => cluster.request('GET', `${quotas}/few`))
      .toMatchObject({
        status: { hard: { pods: '1' }, used: { pods: expect.stringMatching(/[1-9]/) as string } },
      });
    await client.roll('Deployment', name, 'web:2');
    await expect
      .poll(async () => (await cluster.read('Deployment', name)).status.conditions)
      .toContainEqual(
        expect.objectContaining({
          type: 'ReplicaFailure',
          status: 'True',
          reason: 'FailedCreate',
          message: expect.stringContaining('exceeded quota: few') as string,
        }),
      );
    await cluster.request('DELETE', `${quotas}/few`);
    await cluster.settled('Deployment', name);
  });
});

describe('a StatefulSet', () => {
  it('does not replace a stuck pod until it is deleted', async () => {
    const { cluster } = client;
    const name = await client.settle('StatefulSet', 2);
    const before = await cluster.read('StatefulSet', name);
    await client.roll('StatefulSet', name, 'web:stuck');
    const stuck = async () =>
      (await cluster.pods('StatefulSet', name)).find(({ spec }) => spec.containers[0]?.image === 'web:stuck');
    await expect.poll(stuck).toMatchObject({ metadata: { name: `${name}-1` }, status: { phase: 'Running' } });
    const { metadata } = await client.roll('StatefulSet', name, 'web:1');
    await expect
      .poll(async () => (await cluster.read('StatefulSet', name)).status)
      .toMatchObject({
        observedGeneration: metadata.generation,
        updateRevision: before.status.updateRevision,
        readyReplicas: 1,
      });
    expect(await stuck()).toBeDefined();
    await client.core.deleteNamespacedPod({ name: `${name}-1`, namespace: cluster.namespace });
    await cluster.settled('StatefulSet', name);
    expect(await client.imagesOf('StatefulSet', name)).toEqual(['web:1', 'web:1']);
  });

  it('updates only its partition, or with OnDelete only deleted pods', async () => {
    const { cluster } = client;
    const partition = { updateStrategy: { rollingUpdate: { partition: 1 } } };
    const name = await client.settle('StatefulSet', 2, partition);
    await client.roll('StatefulSet', name, 'web:2');
    await cluster.settled('StatefulSet', name);
    expect(await client.imagesOf('StatefulSet', name)).toEqual(['web:1', 'web:2']);
    const manual = await client.settle('StatefulSet', 2, { updateStrategy: { type: 'OnDelete' } });
    await client.roll('StatefulSet', manual, 'web:2');
    await client.core.deleteNamespacedPod({ name: `${manual}-0`, namespace: cluster.namespace });
    await expect.poll(() => client.imagesOf('StatefulSet', manual)).toEqual(['web:2', 'web:1']);
  });
});

it('a DaemonSet replaces a stuck pod', async () => {
  const { cluster } = client;
  const name = await client.settle('DaemonSet');
  await client.roll('DaemonSet', name, 'web:stuck');
  await expect.poll(() => client.imagesOf('DaemonSet', name)).toEqual(['web:stuck']);
  await client.roll('DaemonSet', name, 'web:1');
  await cluster.settled('DaemonSet', name);
  expect(await client.imagesOf('DaemonSet', name)).toEqual(['web:1']);
});

it('a pod does not start while the image of an init container is missing', async () => {
  const { cluster } = client;
  await cluster.createWorkload({
    kind: 'Deployment',
    name: 'prepared',
    containers: [{ name: 'web', image: 'web:1' }],
    initContainers: [{ name: 'prepare', image: 'prepare:missing-first' }],
  });
  await expect
    .poll(async () => (await cluster.pods('Deployment', 'prepared'))[0]?.status)
    .toMatchObject({
      phase: 'Pending',
      initContainerStatuses: [{ name: 'prepare', state: { waiting: { reason: 'ImagePullBackOff' } } }],
    });
  cluster.kubelet.heal('missing-first');
  await cluster.settled('Deployment', 'prepared');
});
