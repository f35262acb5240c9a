// An upgrade over several versions on a cluster: every hop moves the workloads on, and its step templates get the
// versions of the hop.
import { expect, it, onTestFinished } from 'vitest';
import { startServer } from '../kit/server.ts';
import { createTestExecutor } from './executor.ts';
import type { Job } from './objects.ts';
import { createTemplate, names, openWorkloads, release } from './upgrade-kit.ts';

const containersOf = (tag: string) =>
  release.containers.map((one) => ({ ...one, image: one.image.replace(/:.*/, `:${tag}`) }));

const mandatory = {
  id: 'pat_mandatory',
  type: 'patch',
  version: '10.9.2',
  build: '2001',
  releaseBuild: '2000',
  previousBuild: '2000',
  isMandatoryUpdate: true,
  containers: containersOf('3').slice(0, 1),
};

const last = {
  ...release,
  id: 'rel_last',
  version: '10.9.3',
  build: '3000',
  previousReleaseBuild: '2000',
  containers: containersOf('4'),
};

it('moves each workload once per version, and runs the hooks once per hop', async () => {
  const cluster = await openWorkloads();
  await createTemplate(cluster, { step: 'before' });
  const server = await startServer({ executor: createTestExecutor(cluster) });
  onTestFinished(() => server.close());
  const token = server.token('administrator');
  const content = JSON.stringify([release, mandatory, last]);
  await server.postParts(
    '/admin/system/upgrades/importManifest',
    { manifestFile: { name: 'm.json', content } },
    token,
  );
  const started = await server.post('/admin/system/upgrades/upgrade', {
    token,
    f: 'json',
    versionManifest: '{"id":"rel_last"}',
  });
  expect(started.statusCode, started.body).toBe(200);
  const read = async () =>
    (await server.get(`/admin/system/upgrades?token=${token}`)).json<{
      status: { state: string; messages: { code: number; message: string }[] };
    }>().status;
  await expect.poll(async () => (await read()).state, { interval: 50, timeout: 30_000 }).toBe('success');
  const { messages } = await read();
  expect(messages.filter(({ code }) => code === 2038).map(({ message }) => message)).toEqual([
    'The workload deployment/map-server was updated with the image map-server:2.',
    'The workload deployment/map-tiles was updated with the image map-tiles:2.',
    'The workload deployment/map-server was updated with the image map-server:3.',
    'The workload deployment/map-server was updated with the image map-server:4.',
    'The workload deployment/map-tiles was updated with the image map-tiles:4.',
  ]);
  const images = await Promise.all(
    names.map(async (name) => {
      const { spec } = await cluster.read('Deployment', name);
      return spec.template.spec.containers[0]?.image;
    }),
  );
  expect(images).toEqual(['map-server:4', 'map-tiles:4']);
  const { items } = await cluster.request<{ items: Job[] }>(
    'GET',
    `/apis/batch/v1/namespaces/${cluster.namespace}/jobs`,
  );
  const versions = items
    .map(({ spec }) => {
      const env = spec.template.spec.containers[0]?.env ?? [];
      const valueOf = (wanted: string) => env.find(({ name }) => name === wanted)?.value;
      return `${valueOf('STEWARD_FROM_VERSION')} ${valueOf('STEWARD_TO_VERSION')}`;
    })
    .sort();
  expect(versions).toEqual(['10.9.1.1234 10.9.2.2001', '10.9.2.2001 10.9.3.3000']);
});
