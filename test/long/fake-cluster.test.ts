// The behaviour of a cluster that no test of the executor would miss: of the fake one, or the real one of
// STEWARD_TEST_KUBECONFIG.
import { expect, it, onTestFinished } from 'vitest';
import { type Kind, openCluster } from '../kubernetes/cluster.ts';
import { imageOf, pathOf } from '../kubernetes/workloads.ts';

/** A cluster with one workload that is rolled out. */
async function open(kind: Kind, replicas = 1, spec: Record<string, unknown> = {}) {
  const cluster = await openCluster();
  onTestFinished(() => cluster.close());
  const containers = [{ name: 'web', image: 'web:1' }];
  await cluster.createWorkload({ kind, name: 'web', replicas, containers, spec });
  await cluster.settled(kind, 'web');
  return {
    cluster,
    path: pathOf(cluster.namespace, kind, 'web'),
    patch: (body: object) => cluster.patch(kind, 'web', body),
    roll: (image: string) => cluster.patch(kind, 'web', imageOf(image)),
    settled: () => cluster.settled(kind, 'web'),
    status: async () => (await cluster.read(kind, 'web')).status,
    images: async () => (await cluster.pods(kind, 'web')).map(({ spec }) => spec.containers[0]?.image),
  };
}

it('annotations of a Deployment increment its generation, labels do not', async () => {
  const { patch } = await open('Deployment');
  expect((await patch({ metadata: { labels: { by: 'another' } } })).metadata.generation).toBe(1);
  expect((await patch({ metadata: { annotations: { by: 'another' } } })).metadata.generation).toBe(2);
});

it('through the proxy, a user has only the permissions that allow() lists; a cut request does not arrive', async () => {
  const { cluster, path } = await open('Deployment');
  const send = (method: string) =>
    fetch(cluster.faults.url + path, {
      method,
      ...(method === 'PATCH' && {
        headers: { 'content-type': 'application/strategic-merge-patch+json' },
        body: '{"metadata":{"labels":{"by":"me"}}}',
      }),
    });
  await cluster.allow([{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }]);
  expect([(await send('GET')).status, (await send('PATCH')).status]).toEqual([200, 403]);
  cluster.faults.user = undefined;
  cluster.faults.inject({ method: 'PATCH', act: 'cut' });
  await expect(send('PATCH')).rejects.toThrow('fetch failed');
  expect((await cluster.read('Deployment', 'web')).metadata.labels?.by).toBeUndefined();
  expect((await send('PATCH')).status).toBe(200);
});

it('a Deployment reports an exceeded deadline, also for a moment after it is rolled back', async () => {
  const { roll, patch, settled, status } = await open('Deployment', 1, { progressDeadlineSeconds: 1 });
  const progress = async () => (await status()).conditions?.find(({ type }) => type === 'Progressing');
  await roll('web:missing');
  await expect.poll(progress).toMatchObject({ status: 'False', reason: 'ProgressDeadlineExceeded' });
  expect(await status()).toMatchObject({ replicas: 2, updatedReplicas: 1, availableReplicas: 1 });
  const late = await progress();
  const { generation } = (await patch({ metadata: { annotations: { note: 'new' } } })).metadata;
  await expect.poll(async () => (await status()).observedGeneration).toBe(generation);
  expect(await progress()).toEqual(late);
  expect((await roll('web:1')).status.conditions).toContainEqual(late);
  await settled();
  await expect.poll(progress).toMatchObject({ reason: 'NewReplicaSetAvailable' });
});

it('a paused Deployment starts no rollout', async () => {
  const { patch, roll, settled, status, images } = await open('Deployment');
  await patch({ spec: { paused: true } });
  const { generation } = (await roll('web:2')).metadata;
  await expect.poll(async () => (await status()).observedGeneration).toBe(generation);
  expect(await images()).toEqual(['web:1']);
  await patch({ spec: { paused: null } });
  await settled();
  expect(await images()).toEqual(['web:2']);
});

it('a StatefulSet does not replace a stuck pod until it is deleted', async () => {
  const { cluster, roll, settled, status, images } = await open('StatefulSet', 2);
  const { updateRevision } = await status();
  await roll('web:stuck');
  await expect.poll(images).toEqual(['web:1', 'web:stuck']);
  const observedGeneration = (await roll('web:1')).metadata.generation;
  await expect.poll(status).toMatchObject({ observedGeneration, updateRevision, readyReplicas: 1 });
  expect(await images()).toEqual(['web:1', 'web:stuck']);
  await cluster.request('DELETE', `/api/v1/namespaces/${cluster.namespace}/pods/web-1`);
  await settled();
  expect(await images()).toEqual(['web:1', 'web:1']);
});
