// Kills the process of an upgrade again and again during its requests to the API server. The next process continues
// from the state of the cluster, repeats no change, and the job ends with the messages of an uninterrupted one.
import { expect, it, onTestFinished } from 'vitest';
import { openCluster } from '../kubernetes/cluster.ts';
import { patchWithKills } from './kill-at-request.ts';
import { codesOfPatch, expectOneRun } from '../upgrades/message-codes.ts';
import { patchOf } from '../kit/versions.ts';

const names = ['map-server', 'map-tiles', 'map-cache', 'store-queue'];
const kindOf = (name: string) => (name === 'store-queue' ? 'StatefulSet' : 'Deployment');

const patch = {
  ...patchOf('pat'),
  containers: names.map((name) => ({ name: name.toUpperCase().replace('-', '_'), image: `${name}:2` })),
};

it('every workload is updated exactly once', async () => {
  const cluster = await openCluster();
  onTestFinished(() => cluster.close());
  for (const name of names)
    await cluster.createWorkload({
      kind: kindOf(name),
      name,
      replicas: 2,
      containers: [{ name, image: `${name}:1` }],
    });
  for (const name of names) await cluster.settled(kindOf(name), name);

  // The answer to the Lease is lost; a change is lost, and the answer to it; a process dies when it looks at the next
  // workload; the answer to a later change is lost.
  const messages = await patchWithKills(cluster, patch, [
    { method: 'POST', path: /\/leases/, isForwarded: true },
    { method: 'PATCH', path: /\/map-server/, isForwarded: false },
    { method: 'PATCH', path: /\/map-server/, isForwarded: true },
    { method: 'GET', path: /\/map-tiles/, isForwarded: true },
    { method: 'PATCH', path: /\/map-cache/, isForwarded: true },
  ]);
  expectOneRun(messages, codesOfPatch(names.length));
  // A process that takes over claims the change of the one that was killed after it.
  expect(messages.filter(({ code }) => code === 2038).map(({ message }) => message)).toEqual(
    names.map(
      (name) => `The workload ${kindOf(name).toLowerCase()}/${name} was updated with the image ${name}:2.`,
    ),
  );
  for (const name of names) {
    const { metadata, spec } = await cluster.read(kindOf(name), name);
    expect(spec.template.spec.containers[0]?.image).toBe(`${name}:2`);
    // One rollout after the one of its creation.
    if (kindOf(name) === 'StatefulSet') expect(metadata.generation).toBe(2);
    else expect(metadata.annotations?.['deployment.kubernetes.io/revision']).toBe('2');
  }
});
