// Recognizing what a namespace runs: by the images of all workloads that the manifest knows, with reads only.
import { expect, it, onTestFinished } from 'vitest';
import type { BaseManifest } from '../../src/upgrades/versions/deployment.ts';
import { readManifest } from '../../src/upgrades/versions/manifest.ts';
import { startServer } from '../kit/server.ts';
import { type Cluster, openCluster } from './cluster.ts';
import { createTestExecutor } from './executor.ts';

const names = ['map-server', 'map-tiles', 'store-queue'];

const imagesOf = (containers: readonly string[], tag: string) =>
  containers.map((name) => ({ name: name.toUpperCase().replace('-', '_'), image: `${name}:${tag}` }));

const versions = [
  {
    id: 'rel',
    type: 'release',
    version: '1.0.0',
    build: '1',
    previousReleaseBuild: '0',
    containers: imagesOf(names, '1'),
  },
  {
    id: 'pat',
    type: 'patch',
    version: '1.0.0',
    build: '2',
    releaseBuild: '1',
    previousBuild: '1',
    containers: imagesOf(['map-server'], '2'),
  },
  {
    id: 'pat_all',
    type: 'patch',
    version: '1.0.0',
    build: '3',
    releaseBuild: '1',
    previousBuild: '2',
    containers: imagesOf(names, '3'),
  },
];

function manifest(): BaseManifest {
  const read = readManifest(Buffer.from(JSON.stringify(versions)), () => []);
  if ('problems' in read) throw new Error(read.problems.join(' '));
  return { source: 'file', versions: read.versions, digest: 'recognition' };
}

async function openNamespace(...images: string[]): Promise<Cluster> {
  const cluster = await openCluster();
  onTestFinished(() => cluster.close());
  for (const image of images) {
    const [name = ''] = image.split(':');
    await cluster.createWorkload({ kind: 'Deployment', name, replicas: 1, containers: [{ name, image }] });
    await cluster.settled('Deployment', name);
  }
  return cluster;
}

async function startOn(cluster: Cluster) {
  const server = await startServer({
    present: null,
    manifest: manifest(),
    executor: createTestExecutor(cluster),
    env: { UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG: cluster.kubeconfig },
  });
  onTestFinished(() => server.close());
  const token = server.token('administrator');
  const get = async <T>(path: string) => (await server.get(`/admin/${path}?token=${token}`)).json<T>();
  const page = async (path: string) => (await server.get(`/admin/${path}?f=html&token=${token}`)).body;
  const post = (path: string, fields: Record<string, string>) =>
    server.post(`/admin/system/upgrades/${path}`, { token, ...fields });
  /** Null while it is not known. */
  const version = async () => (await get<{ fullVersion: string | null }>('')).fullVersion;
  const looked = () =>
    expect.poll(() => server.logLines.filter((line) => line.includes('the installed version is')).length);
  return { server, get, page, post, version, looked };
}

const isWrite = ({ method, path }: { method: string; path: string }) =>
  method !== 'GET' && !path.includes('selfsubjectrulesreviews');

it('recognizes the newest version whose images all known workloads have, and writes nothing', async () => {
  const cluster = await openNamespace('map-server:2', 'map-tiles:1', 'store-queue:1', 'unknown:7');
  const { version, looked, get, page } = await startOn(cluster);
  await looked().toBe(1);
  expect(await version()).toBe('1.0.0.2');
  expect(await get('system/upgrades/installed')).toMatchObject({ updates: [{ id: 'rel' }, { id: 'pat' }] });
  expect(await page('system/upgrades')).toContain('the images of 3 workloads');
  expect(cluster.faults.requests.filter(isWrite)).toEqual([]);
});

it('finds a workload pinned by digest, and one that the namespace lacks does not matter', async () => {
  const cluster = await openNamespace(`map-tiles:3@sha256:${'0'.repeat(64)}`, 'store-queue:3');
  const { version, looked, page } = await startOn(cluster);
  await looked().toBe(1);
  expect(await version()).toBe('1.0.0.3');
  expect(await page('system/upgrades')).toContain('the images of 2 workloads, ');
});

it('takes the newest of several versions that have the same images, and names the others', async () => {
  const cluster = await openNamespace('map-tiles:1', 'store-queue:1');
  const { server, version, looked, page } = await startOn(cluster);
  await looked().toBe(1);
  expect(await version()).toBe('1.0.0.2');
  const from = 'the images of 2 workloads, which 1.0.0.1 has too';
  expect(await page('system/upgrades')).toContain(from);
  expect(server.logLines.join('')).toContain(from);
});

it('never guesses: a mixture of versions is unknown, and names the workloads', async () => {
  const cluster = await openNamespace('map-server:3', 'map-tiles:3', 'store-queue:1');
  const { version, looked, page, post } = await startOn(cluster);
  await looked().toBe(1);
  expect(await version()).toBeNull();
  const reason =
    '1 of 3 workloads do not have the images of 1.0.0.3, the version that fits best: deployment/store-queue.';
  const plan = await post('plan', { versionManifest: '{"id":"pat_all"}' });
  expect(plan.statusCode).toBe(409);
  expect(plan.json<{ error: { details: string[] } }>().error.details).toEqual([reason]);
  expect(await page('system/upgrades')).toContain(reason);
  const adopted = await post('adopt', { installedVersion: '1.0.0.3' });
  expect(adopted.json()).toMatchObject({ from: null, to: '1.0.0.3', drift: ['deployment/store-queue'] });
  expect(await version()).toBe('1.0.0.3');
  const drift = '1 of 3 workloads do not have the images of the installed version: deployment/store-queue.';
  expect(await page('system/upgrades')).toContain(drift);
  expect(cluster.faults.requests.filter(isWrite)).toEqual([]);
});

it('decides as soon as the namespace can be read', async () => {
  const cluster = await openNamespace('map-server:1', 'map-tiles:1', 'store-queue:1');
  const restore = cluster.faults.inject({ path: /./, act: { status: 403 }, times: Infinity });
  const { server, version, looked } = await startOn(cluster);
  await expect.poll(() => server.logLines.join(''), { timeout: 20_000 }).toContain('cannot be read');
  expect(await version()).toBeNull();
  expect((await server.get('/ready')).statusCode).toBe(200);
  restore();
  await server.runtime.advance(30_000);
  await looked().toBe(2);
  expect(await version()).toBe('1.0.0.1');
});

it('a namespace with nothing that the manifest names is unknown until a manifest that names something is imported', async () => {
  const cluster = await openNamespace('other:1');
  const { server, version, looked, page } = await startOn(cluster);
  await looked().toBe(1);
  expect(await version()).toBeNull();
  expect(await page('')).toContain('has a container that the manifest names');
  const release = { ...versions[0], containers: imagesOf(['other'], '1') };
  const imported = await server.postParts(
    '/admin/system/upgrades/importManifest',
    { manifestFile: { name: 'm.json', content: JSON.stringify([release]) } },
    server.token('administrator'),
  );
  expect(imported.json()).toMatchObject({ reachable: 0 });
  expect(await version()).toBe('1.0.0.1');
});
