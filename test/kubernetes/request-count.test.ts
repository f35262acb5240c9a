// How many requests an upgrade sends to the API server.
import { afterEach, expect, it } from 'vitest';
import { startServer } from '../kit/server.ts';
import type { Cluster } from './cluster.ts';
import { createTestExecutor, fast } from './executor.ts';
import type { RecordedRequest } from './faults.ts';
import { contextOf, openDeployment, workload } from './single-deployment.ts';
import { openWorkloads } from './upgrade-kit.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const names = Array.from({ length: 12 }, (_, index) => `part-${index + 1}`);
const maxPerWorkload = 4;

const openNamespace = () => openWorkloads(names);

const isPreflight = ({ method, path }: RecordedRequest) =>
  path === '/version' ||
  path.endsWith('/selfsubjectrulesreviews') ||
  (method === 'GET' && /\?limit=\d+$/.test(path));

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

it('an upgrade at parallelism 1 sends at most four requests per workload, and those that look at it', async () => {
  const cluster = await openNamespace();
  const requests = await upgrade(cluster);
  const isLook = ({ method, path }: RecordedRequest) =>
    method === 'GET' && /\/deployments\/|\/pods\?/.test(path);
  const isRenewal = ({ method, path }: RecordedRequest) => path.includes('/leases') && method !== 'GET';
  const counted = requests.filter((one) => !isLook(one) && !isRenewal(one));
  // The plan reads the Lease and the templates; the job reads the Lease when it takes and releases it, and looks
  // for Jobs of earlier ones.
  const ofJob = 5;
  expect((counted.length - ofJob) / names.length).toBeLessThanOrEqual(maxPerWorkload);
  const patchesOf = (name: string) =>
    counted.filter(({ method, path }) => method === 'PATCH' && path.includes(`/deployments/${name}?`));
  for (const name of names) expect(patchesOf(name)).toHaveLength(1);
});

it('a rollout that takes longer takes at most two requests every two seconds', async () => {
  const { on, start } = await openDeployment();
  const options = fast();
  const { runtime } = options;
  const executor = start({ ...options, pollIntervalMs: 500 });
  const slow = { ...workload, parts: [{ container: 'a', image: 'a:2-stuck', formerImage: 'a:1' }] };
  await executor.apply(slow, contextOf());
  const startedAt = runtime.now();
  const verified = executor.verify(slow, contextOf());
  await runtime.sleep(60_000);
  const seconds = (runtime.now() - startedAt) / 1000;
  const counted = on.faults.requests.filter(({ method }) => method === 'GET');
  on.kubelet.heal('stuck');
  await verified;
  // Those of the first five seconds, and of `apply`.
  const ofStart = 10;
  expect(counted.length).toBeLessThanOrEqual(ofStart + seconds);
  expect(counted.filter(({ path }) => path.includes('/pods?')).length).toBeGreaterThan(0);
});
