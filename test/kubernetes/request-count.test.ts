// How many requests an upgrade sends to the API server: with watches, and without the permission to watch.
import { afterEach, expect, it } from 'vitest';
import { startServer } from '../kit/server.ts';
import type { Cluster } from './cluster.ts';
import { createTestExecutor } from './executor.ts';
import type { RecordedRequest } from './faults.ts';
import { contextOf, openDeployment, workload } from './single-deployment.ts';
import { openWorkloads } from './upgrade-kit.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const names = Array.from({ length: 12 }, (_, index) => `part-${index + 1}`);
const maxPerWorkload = 8;
const maxOfShortRollout = 7;

const openNamespace = () => openWorkloads(names);

const isPreflight = ({ method, path }: RecordedRequest) =>
  path === '/version' ||
  path.endsWith('/selfsubjectrulesreviews') ||
  (method === 'GET' && /\?limit=\d+$/.test(path));
const isEvent = ({ path }: RecordedRequest) => /\/events(\?|$)/.test(path);
const isWatch = ({ path }: RecordedRequest) => path.includes('watch=true');

/** Installs a patch of all workloads; returns the requests of its job without those of the preflight. */
async function upgrade(cluster: Cluster): Promise<RecordedRequest[]> {
  const server = await startServer({ executor: createTestExecutor(cluster, { pollIntervalMs: 100 }) });
  closing.push(() => server.close());
  const token = server.token('administrator');
  const patch = {
    id: 'pat',
    type: 'patch',
    version: '10.9.1',
    build: '1300',
    releaseBuild: '1234',
    previousBuild: '1234',
    containers: names.map((name) => ({ name, image: `${name}:2` })),
  };
  const content = JSON.stringify([patch]);
  await server.postParts(
    '/admin/system/upgrades/importManifest',
    { manifestFile: { name: 'm.json', content } },
    token,
  );
  const before = cluster.faults.requests.length;
  const versionManifest = '{"id":"pat"}';
  await server.post('/admin/system/upgrades/upgrade', { token, f: 'json', versionManifest });
  const state = async () =>
    (await server.get(`/admin/system/upgrades?token=${token}`)).json<{ status: { state: string } }>().status
      .state;
  await expect.poll(state, { interval: 50, timeout: 30_000 }).toBe('success');
  return cluster.faults.requests.slice(before).filter((one) => !isPreflight(one));
}

it('an upgrade at parallelism 1 sends at most seven requests per workload', async () => {
  const cluster = await openNamespace();
  const requests = await upgrade(cluster);
  expect(requests.filter(isWatch).length).toBeGreaterThanOrEqual(names.length);
  const counted = requests.filter(({ method, path }) => !(path.includes('/leases') && method !== 'GET'));
  // The plan reads the Lease and the templates; the job reads the Lease when it takes and releases it, and looks
  // for Jobs of earlier ones.
  const ofJob = 5;
  expect((counted.length - ofJob) / names.length).toBeLessThanOrEqual(maxOfShortRollout);
  const patchesOf = (name: string) =>
    counted.filter(({ method, path }) => method === 'PATCH' && path.includes(`/deployments/${name}?`));
  for (const name of names) expect(patchesOf(name)).toHaveLength(1);
});

it('a rollout that takes longer does not take more requests', async () => {
  const { on, start } = await openDeployment();
  const executor = start({ pollIntervalMs: 20 });
  const slow = { ...workload, parts: [{ container: 'a', image: 'a:2-stuck', formerImage: 'a:1' }] };
  await executor.perform('launch', contextOf());
  const before = on.faults.requests.length;
  await executor.apply(slow, contextOf());
  const verified = executor.verify(slow, contextOf());
  await new Promise((resolve) => setTimeout(resolve, 1500));
  on.kubelet.heal('stuck');
  await verified;
  const counted = on.faults.requests.slice(before);
  expect(counted.filter(isEvent)).toHaveLength(2);
  expect(counted.filter(isWatch)).toHaveLength(2);
  expect(counted.length).toBeLessThanOrEqual(maxPerWorkload);
});

it('without the permission to watch, the rollout is polled', async () => {
  const { on, start, image } = await openDeployment();
  on.faults.inject({ path: /watch=true/, times: Infinity, act: { status: 403 } });
  const executor = start();
  await executor.apply(workload, contextOf());
  await executor.verify(workload, contextOf());
  expect(await image()).toBe('a:2');
  expect(on.faults.requests.filter(isWatch).length).toBeGreaterThan(0);
  expect(on.faults.requests.filter(isWatch).every(({ status }) => status === 403)).toBe(true);
});
