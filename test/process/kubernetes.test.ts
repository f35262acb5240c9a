// Kills the process of an upgrade again and again during its requests to the API server. The next process continues
// from the state of the cluster, repeats no change, and the job ends with the messages of an uninterrupted one.
import { expect, it, onTestFinished } from 'vitest';
import { openCluster } from '../kubernetes/cluster.ts';
import { type RequestToKillAt, killAtRequest } from './kill-at-request.ts';
import { type Message, codesOfPatch, expectOneRun, timesResumed } from '../upgrades/message-codes.ts';
import { patchOf } from '../kit/versions.ts';
import { connect, createRandom, createSeededDatabase, startSteward } from './steward.ts';

const upgrades = '/admin/system/upgrades';
const names = ['map-server', 'map-tiles', 'map-cache', 'store-queue'];
const kindOf = (name: string) => (name === 'store-queue' ? 'StatefulSet' : 'Deployment');

const manifest = JSON.stringify([
  {
    ...patchOf('pat'),
    containers: names.map((name) => ({ name: name.toUpperCase().replace('-', '_'), image: `${name}:2` })),
  },
]);

const changedPaths = /\/(leases|deployments|statefulsets)/;

it('every workload is updated exactly once', async () => {
  const random = createRandom();
  const { url } = await createSeededDatabase();
  const query = await connect(url);
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

  const start = () => startSteward(url, { UPGRADE_EXECUTOR: 'kubernetes', KUBECONFIG: cluster.kubeconfig });
  let steward = await start();
  const token = await steward.signIn();
  await steward.post(
    `${upgrades}/importManifest`,
    { manifestFile: new Blob([manifest]), installedVersion: '10.9.1.1234' },
    token,
  );

  const kills: Omit<RequestToKillAt, 'path'>[] = [
    { method: 'POST', nth: 1, isForwarded: true },
    { method: 'PATCH', nth: 1, isForwarded: false },
    { method: 'PATCH', nth: 1, isForwarded: true },
    { method: 'GET', nth: 2 + Math.floor(random() * 4), isForwarded: true },
    { method: 'PATCH', nth: 1, isForwarded: true },
  ];

  let cancelKill: () => void = () => undefined;

  type Status = { readonly state: string; readonly messages: readonly Message[] };
  /** Repeats a request that a busy database refuses. */
  const readStatus = async (): Promise<Status> => {
    const { status, body } = await steward.get(upgrades, token);
    return status === 503 ? readStatus() : (body as { status: Status }).status;
  };
  let isStarted = false;
  const hasEnded = async () => {
    // A killed process does not answer.
    const status = isStarted ? await readStatus().catch(() => undefined) : undefined;
    return status !== undefined && status.state !== 'in_progress';
  };
  const ended = expect
    .poll(hasEnded, { timeout: 290_000, interval: 50 })
    .toBe(true)
    .then(() => 'ended');
  let killed = 0;
  for (const kill of kills) {
    const { dead, cancel } = killAtRequest(cluster, { ...kill, path: changedPaths }, () => steward.kill());
    cancelKill = cancel;
    if (!isStarted)
      expect(
        await steward.post(`${upgrades}/upgrade`, { versionManifest: '{"id":"pat"}' }, token),
      ).toMatchObject({ status: 200 });
    isStarted = true;
    if ((await Promise.race([dead, ended])) === 'ended') break;
    // Without this, the next process waits until the lease of the killed one expires.
    await query('delete from processes');
    steward = await start();
    // A job that has ended is not resumed.
    const { state, messages } = await readStatus();
    if (state === 'in_progress' || timesResumed(messages) > killed) killed += 1;
  }

  // The last process may have been killed while the job ended.
  cancelKill();
  steward = await start();

  await expect.poll(async () => (await readStatus()).state, { timeout: 60_000 }).toBe('success');
  const { messages } = await readStatus();
  expect(killed).toBeGreaterThan(4);
  expect(timesResumed(messages)).toBe(killed);
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
