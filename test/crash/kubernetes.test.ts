// An upgrade of a cluster whose process is killed in the middle of what it asks of the API server, again and again: whoever comes next
// reads the cluster, does nothing twice, and the job says what it would have said by itself.
import { expect, it, onTestFinished } from 'vitest';
import { createDatabase } from '../kit/postgres.ts';
import { openCluster } from '../kubernetes/cluster.ts';
import { type Message, codesOfPatch, expectOneRun, timesResumed } from './messages.ts';
import { connect, createRandom, startSteward } from './steward.ts';

const upgrades = '/admin/system/upgrades';
const names = ['map-server', 'map-tiles', 'store-queue'];
const kindOf = (name: string) => (name === 'store-queue' ? 'StatefulSet' : 'Deployment');

const manifest = JSON.stringify([
  {
    id: 'pat',
    type: 'patch',
    version: '10.9.1',
    build: '1300',
    releaseBuild: '1234',
    previousBuild: '1234',
    containers: names.map((name) => ({ name: name.toUpperCase().replace('-', '_'), image: `${name}:2` })),
  },
]);

/** With the nth of such requests on its lips, which the server hears of or not. */
type Death = { method: string; nth: number; isHeard: boolean };

it('no workload is moved twice, and none is forgotten', { timeout: 120_000 }, async () => {
  const chance = createRandom();
  const { url } = await createDatabase();
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
  await steward.post(`${upgrades}/importManifest`, { manifestFile: new Blob([manifest]) }, token);

  const deaths: Death[] = [
    { method: 'POST', nth: 1, isHeard: true },
    ...[1, 2].flatMap((nth) => [
      { method: 'PATCH', nth, isHeard: false },
      { method: 'PATCH', nth, isHeard: true },
    ]),
    ...[1, 2, 3].map(() => ({ method: 'GET', nth: 3 + Math.floor(chance() * 12), isHeard: true })),
  ];

  let spare: () => void = () => undefined;
  const dies = ({ method, nth, isHeard }: Death) =>
    new Promise<void>((resolve) => {
      let count = 0;
      const forget = cluster.faults.inject({
        method,
        path: /\/(leases|deployments|statefulsets)/,
        times: Infinity,
        act: async () => {
          count += 1;
          if (count !== nth) return;
          forget();
          await steward.kill();
          resolve();
          if (!isHeard) throw new Error('nobody asks any more');
        },
      });
      spare = forget;
    });

  const isOver = async () => {
    const [job] = await query<{ state: string }>('select state from jobs');
    return job !== undefined && job.state !== 'in_progress';
  };
  const over = expect
    .poll(isOver, { timeout: 60_000, interval: 50 })
    .toBe(true)
    .then(() => 'over');
  let died = 0;
  for (const death of deaths) {
    const dead = dies(death);
    if (died === 0)
      expect(
        await steward.post(`${upgrades}/upgrade`, { versionManifest: '{"id":"pat"}' }, token),
      ).toMatchObject({ status: 200 });
    if ((await Promise.race([dead, over])) === 'over') break;
    // When all is done there is nothing left to be resumed.
    if (!(await isOver())) died += 1;
    // Its lease need not be waited for.
    await query('delete from processes');
    steward = await start();
  }

  // The last one was to die, and may have while the job came to its end.
  spare();
  steward = await start();

  const status = async () =>
    ((await steward.get(upgrades, token)).body as { status: { state: string; messages: Message[] } }).status;
  await expect.poll(async () => (await status()).state, { timeout: 30_000 }).toBe('success');
  const { messages } = await status();
  expect(died).toBeGreaterThan(4);
  expect(timesResumed(messages)).toBe(died);
  expectOneRun(messages, codesOfPatch(names.length));
  for (const name of names) {
    const { metadata, spec } = await cluster.read(kindOf(name), name);
    expect(spec.template.spec.containers[0]?.image).toBe(`${name}:2`);
    // One rollout after that of its creation.
    if (kindOf(name) === 'StatefulSet') expect(metadata.generation).toBe(2);
    else expect(metadata.annotations?.['deployment.kubernetes.io/revision']).toBe('2');
  }
});
