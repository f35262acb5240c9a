// How many requests an upgrade sends to the API server.
import { expect, it } from 'vitest';
import type { Cluster } from './cluster.ts';
import { fast } from './executor.ts';
import type { RecordedRequest } from './faults.ts';
import { contextOf, openDeployment, workload } from './single-deployment.ts';
import { openSteward, openWorkloads } from './upgrade-kit.ts';
import { patchOf } from '../kit/versions.ts';

const names = Array.from({ length: 12 }, (_, index) => `part-${index + 1}`);
const maxPerWorkload = 4;

const isPreflight = ({ method, path }: RecordedRequest) =>
  path === '/version' ||
  path.endsWith('/selfsubjectrulesreviews') ||
  (method === 'GET' && /\?limit=\d+$/.test(path));

/** Installs a patch of all workloads; returns the requests of its job without those of the preflight. */
async function upgrade(cluster: Cluster): Promise<RecordedRequest[]> {
  const patch = {
    ...patchOf('pat'),
    containers: names.map((name) => ({ name, image: `${name}:2` })),
  };
  const { start, end } = await openSteward(cluster, [patch], { pollIntervalMs: 100 });
  const before = cluster.faults.requests.length;
  await start('upgrade', 'pat');
  await end('success');
  return cluster.faults.requests.slice(before).filter((one) => !isPreflight(one));
}

it('an upgrade at parallelism 1 sends at most four requests per workload, and those that look at it', async () => {
  const cluster = await openWorkloads(names);
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
