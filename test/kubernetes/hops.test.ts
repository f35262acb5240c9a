// An upgrade over several versions on a cluster: every hop moves the workloads on, and its step templates get the
// versions of the hop.
import { expect, it } from 'vitest';
import { createTemplate, imagesIn, openSteward, openWorkloads, release, textsOf } from './upgrade-kit.ts';

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
  const { start, end, jobs } = await openSteward(cluster, [release, mandatory, last]);
  await start('upgrade', 'rel_last');
  const { messages } = await end('success');
  expect(textsOf(messages, 2038)).toEqual([
    'The workload deployment/map-server was updated with the image map-server:2.',
    'The workload deployment/map-tiles was updated with the image map-tiles:2.',
    'The workload deployment/map-server was updated with the image map-server:3.',
    'The workload deployment/map-server was updated with the image map-server:4.',
    'The workload deployment/map-tiles was updated with the image map-tiles:4.',
  ]);
  expect(await imagesIn(cluster)).toEqual(['map-server:4', 'map-tiles:4']);
  const versions = (await jobs())
    .map(({ spec }) => {
      const env = spec.template.spec.containers[0]?.env ?? [];
      const valueOf = (wanted: string) => env.find(({ name }) => name === wanted)?.value;
      return `${valueOf('STEWARD_FROM_VERSION')} ${valueOf('STEWARD_TO_VERSION')}`;
    })
    .sort();
  expect(versions).toEqual(['10.9.1.1234 10.9.2.2001', '10.9.2.2001 10.9.3.3000']);
});
