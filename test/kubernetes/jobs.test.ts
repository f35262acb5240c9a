// Upgrades of a cluster through the whole server: the messages of jobs, and the images in the cluster, also after
// failures.
import { expect, it, onTestFinished } from 'vitest';
import { freshRelease } from '../kit/sample-manifest.ts';
import { patchOf, releaseOf } from '../kit/versions.ts';
import { openCluster } from './cluster.ts';
import { fast } from './executor.ts';
import { openSteward } from './upgrade-kit.ts';

const names = ['MAP_SERVER', 'MAP_TILES', 'STORE_QUEUE'] as const;
const workloads = {
  MAP_SERVER: { kind: 'Deployment', name: 'map-server' },
  MAP_TILES: { kind: 'Deployment', name: 'map-tiles' },
  STORE_QUEUE: { kind: 'StatefulSet', name: 'store-queue' },
} as const;

const containers = (tag: string, of: readonly string[] = names) =>
  of.map((name) => ({ name, image: `${name.toLowerCase().replace('_', '-')}:${tag}` }));
const patch = (id: string, build: string, previousBuild: string, tag: string, of?: readonly string[]) => ({
  ...patchOf(id, build, previousBuild),
  containers: containers(tag, of),
});
const release = (tag: string) => ({
  ...releaseOf('rel'),
  containers: containers(tag),
  newContainers: [{ name: 'VIDEO_SERVER', image: 'video-server:1' }],
});
const patchOfRelease = {
  ...patch('pat_rel', '2001', '2000', '3', ['MAP_SERVER']),
  version: '10.9.2',
  releaseBuild: '2000',
};

async function open(versions: object[], options: Parameters<typeof openSteward>[2] = {}) {
  const cluster = await openCluster();
  onTestFinished(() => cluster.close());
  for (const workload of Object.values(workloads))
    await cluster.createWorkload({
      ...workload,
      replicas: 2,
      containers: [{ name: workload.name, image: `${workload.name}:1` }],
    });
  await Promise.all(Object.values(workloads).map(({ kind, name }) => cluster.settled(kind, name)));
  const images = async () => {
    const all = Object.values(workloads).map(({ kind, name }) => cluster.read(kind, name));
    return (await Promise.all(all)).map(({ spec }) => spec.template.spec.containers[0]?.image);
  };
  return { ...(await openSteward(cluster, versions, options)), images };
}

const textsOf = (messages: readonly { code: number; message: string }[], ...codes: number[]) =>
  messages
    .filter(({ code }) => codes.includes(code))
    .map(({ code, message }) => `${code} ${message.replace(/ Elapsed.*/, '')}`);

it('a patch updates one workload after another, with messages for each', async () => {
  const { start, end, images, ask } = await open([patch('pat', '1300', '1234', '2')]);
  expect(await start('upgrade', 'pat')).toMatchObject({ status: { state: 'in_progress' } });
  const { messages } = await end('success');
  expect(textsOf(messages, 2291, 2038, 2173)).toEqual([
    '2291 Patch update of the module deployment/map-server started.',
    '2038 The workload deployment/map-server was updated with the image map-server:2.',
    '2173 1 out of 3 deployments updated.',
    '2291 Patch update of the module deployment/map-tiles started.',
    '2038 The workload deployment/map-tiles was updated with the image map-tiles:2.',
    '2173 2 out of 3 deployments updated.',
    '2291 Patch update of the module statefulset/store-queue started.',
    '2038 The workload statefulset/store-queue was updated with the image store-queue:2.',
    '2173 3 out of 3 deployments updated.',
  ]);
  expect(await images()).toEqual(['map-server:2', 'map-tiles:2', 'store-queue:2']);
  expect(await ask('upgrades/currentVersion')).toMatchObject({ id: 'pat' });
});

it('workloads without the images of the installed version are shown, and an upgrade to that version repairs them', async () => {
  const { server, cluster, start, end, images, ask, setImage, resume } = await open([
    patch('pat', '1300', '1234', '2'),
    patch('pat_b', '1301', '1300', '3'),
  ]);
  await start('upgrade', 'pat');
  await end('success');
  const refusal = ['versionManifest: 10.9.1.1300 is installed already.'];
  expect((await start('plan', 'pat')).problems).toEqual(refusal);
  // Pinned by its digest, it has the image.
  await setImage('map-server', `map-server:2@sha256:${'0'.repeat(64)}`);
  await setImage('map-tiles', 'map-tiles:1');
  const drift = '1 of 3 workloads do not have the images of the installed version: deployment/map-tiles.';
  expect((await start('plan', 'pat_b')).notices).toContain(drift);
  const token = server.token('administrator');
  await server.runtime.advance(30_000);
  for (const path of ['/admin', '/admin/system/upgrades'])
    expect((await server.get(`${path}?f=html&token=${token}`)).body).toContain(drift);
  const planned = await start('plan', 'pat');
  expect([planned.problems, planned.notices[0]]).toEqual([[], drift]);
  const fields = { token, f: 'html', versionManifest: '{"id":"pat"}' };
  expect((await server.post('/admin/system/upgrades/plan', fields)).body).toContain(
    'It can be cancelled. It repairs the installed version, so there is no way back.',
  );
  const moved = planned.steps.filter(({ id }) => id === 'update').map(({ workload }) => workload);
  expect(moved).toEqual(['deployment/map-tiles']);
  // A repair that fails is reverted like a patch.
  const act = { status: 422 };
  cluster.faults.inject({ method: 'PATCH', path: /map-tiles/, act });
  await start('upgrade', 'pat');
  await end('failed');
  await resume();
  await end('success');
  expect((await images()).slice(1)).toEqual(['map-tiles:2', 'store-queue:2']);
  expect(await ask('upgrades/currentVersion')).toMatchObject({ id: 'pat' });
  expect((await start('plan', 'pat')).problems).toEqual(refusal);
});

it('workloads that only an unlisted release names may have any images', async () => {
  const release = { ...freshRelease, containers: [], isUnlisted: true } as const;
  const present = { release, patches: [] };
  const { start, end } = await open([patch('pat', '1300', '1234', '2', ['MAP_SERVER'])], { present });
  await start('upgrade', 'pat');
  await end('success');
  expect((await start('plan', 'pat')).problems).toEqual([
    'versionManifest: 10.9.1.1300 is installed already.',
  ]);
});

it('an upgrade with the digest of a plan is refused if another client has changed an image since', async () => {
  const { start, end, setImage } = await open([patch('pat', '1300', '1234', '2')]);
  const { digest: planDigest } = await start('plan', 'pat');
  expect(await start('plan', 'pat')).toMatchObject({ digest: planDigest });
  // The version has no registry, so its image comes from that of the present one.
  await setImage('map-server', 'other.example.com/map-server:1');
  expect(await start('upgrade', 'pat', { planDigest })).toMatchObject({ error: { code: 409 } });
  await setImage('map-server', 'map-server:1');
  expect(await start('upgrade', 'pat', { planDigest })).toMatchObject({ status: { state: 'in_progress' } });
  await end('success');
});

it('an upgrade request reads the inventory of the cluster once', async () => {
  const { cluster, start, end } = await open([patch('pat', '1300', '1234', '2')]);
  const { requests } = cluster.faults;
  const before = requests.length;
  expect(await start('upgrade', 'pat')).toMatchObject({ status: { state: 'in_progress' } });
  await end('success');
  const firstPatch = requests.findIndex(({ method }, index) => index >= before && method === 'PATCH');
  expect(firstPatch).toBeGreaterThan(before);
  const count = (method: string, path: RegExp) =>
    requests.slice(before, firstPatch).filter((one) => one.method === method && path.test(one.path)).length;
  expect({
    versions: count('GET', /^\/version/),
    reviews: count('POST', /\/selfsubject\w+reviews$/),
    deployments: count('GET', /\/deployments\?limit=/),
    statefulSets: count('GET', /\/statefulsets\?limit=/),
    daemonSets: count('GET', /\/daemonsets\?limit=/),
  }).toEqual({
    versions: 1,
    reviews: 1,
    deployments: 1,
    statefulSets: 1,
    daemonSets: 1,
  });
});

it('a release is installed by component and then its patches, and the plan names new containers without a workload', async () => {
  const { start, end, images } = await open([release('2'), patchOfRelease]);
  const fields = { upgradeSettings: '{"userInputs":[{"id":"updateToLatestPatch","value":true}]}' };
  const planned = await start('plan', 'rel', fields);
  expect(planned).toMatchObject({
    problems: [],
    notices: [
      'VIDEO_SERVER (video-server:1) is new and no workload has it: Steward does not create one.',
      expect.stringMatching(/^These steps have no step template and are skipped: /),
    ],
  });
  await start('upgrade', 'rel', fields);
  const { messages } = await end('success');
  const codes = messages
    .map(({ code }) => code)
    .filter((code) => [2134, 2101, 2038, 2103, 2175, 2132, 2291, 2173].includes(code));
  const each = [2101, 2038, 2103, 2175];
  expect(codes).toEqual([2134, ...each, ...each, 2132, 2134, ...each, 2132, 2291, 2038, 2173]);
  expect(textsOf(messages, 2173)).toEqual(['2173 4 out of 4 deployments updated.']);
  expect(await images()).toEqual(['map-server:3', 'map-tiles:2', 'store-queue:2']);
});

it('an upgrade with problems is refused, and changes nothing', async () => {
  const { cluster, start, images, ask } = await open([patch('pat', '1300', '1234', '2', [...names, 'GONE'])]);
  await cluster.patch('Deployment', 'map-tiles', { spec: { paused: true } });
  const { error } = await start('upgrade', 'pat');
  expect(error?.code).toBe(400);
  expect(error?.details).toEqual(
    expect.arrayContaining([
      'cluster: deployment/map-tiles: is paused.',
      expect.stringMatching(/^cluster: no workload .* with the name of GONE\.$/),
    ]),
  );
  expect((await start('plan', 'pat')).problems).toEqual(error?.details);
  expect((await ask('upgrades')).status.state).toBe('no_upgrade');
  expect(await images()).toEqual(['map-server:1', 'map-tiles:1', 'store-queue:1']);
});

it('a failed patch is reverted, and can be repeated when its cause is gone', async () => {
  const { cluster, start, end, images } = await open([
    {
      ...patch('pat', '1300', '1234', '2'),
      containers: [
        ...containers('2', ['MAP_SERVER']),
        ...containers('2-missing', ['STORE_QUEUE', 'MAP_TILES']),
      ],
    },
  ]);
  await start('upgrade', 'pat');
  const { messages } = await end('failed');
  expect(textsOf(messages, 2901, 2904)).toEqual([
    expect.stringMatching(
      /^2901 The job failed at the step "Verify module statefulset\/store-queue": statefulset\/store-queue: the pod store-queue-1 cannot pull the image store-queue:2-missing/,
    ),
    '2904 The workload statefulset/store-queue was put back to its former image store-queue:1.',
    '2904 The workload deployment/map-server was put back to its former image map-server:1.',
  ]);
  expect(await images()).toEqual(['map-server:1', 'map-tiles:1', 'store-queue:1']);
  cluster.kubelet.heal('missing');
  await start('upgrade', 'pat');
  await end('success');
});

it('a failed release is not reverted, and continues when it is resumed', async () => {
  const { cluster, start, end, resume, images } = await open([
    {
      ...release('2'),
      containers: [
        ...containers('2-missing', ['MAP_SERVER']),
        ...containers('2', ['MAP_TILES', 'STORE_QUEUE']),
      ],
    },
  ]);
  await start('upgrade', 'rel');
  await end('failed');
  expect(await images()).toEqual(['map-server:2-missing', 'map-tiles:1', 'store-queue:1']);
  cluster.kubelet.heal('missing');
  await resume();
  const { codes } = await end('success');
  expect(codes.filter((code) => code === 2038)).toHaveLength(3);
});

it('a rollback restores what was there before the version that it undoes, also after other jobs', async () => {
  const { start, end, images, setImage } = await open([
    patch('pat_a', '1300', '1234', '2'),
    patch('pat_b', '1301', '1300', '3'),
    patch('pat_c', '1302', '1301', '4', ['MAP_SERVER']),
  ]);
  const run = async (operation: string, id: string) => {
    await start(operation, id);
    const { messages } = await end('success');
    return textsOf(messages, 2904);
  };
  const pinned = `map-server@sha256:${'a'.repeat(64)}`;
  await run('upgrade', 'pat_a');
  await setImage('map-server', pinned);
  // This job sets its images twice.
  await run('upgrade', 'pat_c');
  expect(await run('rollback', 'pat_a')).toEqual([
    '2904 The workload statefulset/store-queue was put back to its former image store-queue:2.',
    '2904 The workload deployment/map-tiles was put back to its former image map-tiles:2.',
    `2904 The workload deployment/map-server was put back to its former image ${pinned}.`,
  ]);
  expect(await images()).toEqual([pinned, 'map-tiles:2', 'store-queue:2']);
  expect((await start('plan', 'pat_a')).problems).toEqual([
    'versionManifest: 10.9.1.1300 is installed already.',
  ]);
  // Also after two jobs.
  await run('upgrade', 'pat_b');
  await run('upgrade', 'pat_c');
  expect((await run('rollback', 'pat_a')).at(-1)).toBe(
    `2904 The workload deployment/map-server was put back to its former image ${pinned}.`,
  );
  // A repair replaces images that belong to no version.
  await run('upgrade', 'pat_b');
  await setImage('map-server', 'map-server:hotfix');
  await run('upgrade', 'pat_b');
  expect((await run('rollback', 'pat_a')).at(-1)).toContain(`to its former image ${pinned}.`);
  // Another image than the one that was put back is drift.
  await setImage('map-tiles', 'map-tiles:1');
  expect((await start('plan', 'pat_a')).notices[0]).toMatch(/^1 of 3 .*: deployment\/map-tiles\.$/);
});

it('as many workloads are updated, and put back, at once as parallelism allows', async () => {
  const { cluster, start, end, waitForCode } = await open([patch('pat', '1300', '1234', '2-stuck')], {
    parallelism: 2,
  });
  await start('upgrade', 'pat');
  await waitForCode(2038, 2);
  cluster.kubelet.heal('stuck');
  const { codes } = await end('success');
  const moduleCodes = codes.filter((code) => [2291, 2038, 2173].includes(code));
  expect(moduleCodes).toEqual([2291, 2038, 2291, 2038, 2173, 2291, 2038, 2173, 2173]);
  await cluster.kubelet.pause();
  const patches = () => cluster.faults.requests.filter(({ method }) => method === 'PATCH').length;
  const before = patches();
  await start('rollback', freshRelease.id);
  await expect.poll(patches, { interval: 10 }).toBe(before + 2);
  cluster.kubelet.resume();
  const { messages } = await end('success');
  expect(textsOf(messages, 2904, 2173)).toEqual([
    '2904 The workload statefulset/store-queue was put back to its former image store-queue:1.',
    '2173 1 out of 3 deployments updated.',
    '2904 The workload deployment/map-tiles was put back to its former image map-tiles:1.',
    '2173 2 out of 3 deployments updated.',
    '2904 The workload deployment/map-server was put back to its former image map-server:1.',
    '2173 3 out of 3 deployments updated.',
  ]);
});

it.each([
  ['a missing permission, and repeats for ten seconds once', 403],
  ['a policy', 422],
])('a revert that the API server refuses because of %s is continued by a resume', async (_why, status) => {
  const { cluster, start, end, resume, images, ask } = await open(
    [
      {
        ...patch('pat', '1300', '1234', '2'),
        containers: [
          ...containers('2', ['MAP_SERVER', 'MAP_TILES']),
          ...containers('2-missing', ['STORE_QUEUE']),
        ],
      },
    ],
    fast(),
  );
  // After the patch of the last workload no patch is allowed.
  let allow: () => void = () => undefined;
  cluster.faults.inject({
    method: 'PATCH',
    path: /store-queue/,
    act: () => {
      allow = cluster.faults.inject({ method: 'PATCH', times: Infinity, act: { status } });
      return Promise.resolve();
    },
  });
  await start('upgrade', 'pat');
  const { messages } = await end('failed');
  const failures = textsOf(messages, 2901);
  expect(failures).toHaveLength(5);
  expect(failures[4]).toBe(
    '2901 The job failed at the step "Put back the workloads": some of them could not be put back; the messages before this one say why. ' +
      'Not put back: statefulset/store-queue, deployment/map-tiles, deployment/map-server. Resume the job to put them back.',
  );
  for (const failure of failures.slice(1, 4))
    expect(failure).toMatch(/^2901 The job failed at the step "Put back \S+": the API server refuses/);
  const refused = cluster.faults.requests.filter((one) => one.method === 'PATCH' && one.status === status);
  const isRepeated = (name: string) => refused.filter(({ path }) => path.includes(name)).length > 1;
  expect(['store-queue', 'map-tiles', 'map-server'].map(isRepeated)).toEqual([status === 403, false, false]);
  const { jobId } = await ask('upgrades');
  const other = `The job ${jobId} to 10.9.1.1300 has not reverted all of its workloads: resume it.`;
  expect((await start('plan', 'pat')).problems).toContain(other);
  allow();
  await resume();
  const resumed = await end();
  expect(resumed.codes.slice(messages.length)).toEqual([2902, 2165, 2904, 2904, 2904, 2166]);
  expect(await images()).toEqual(['map-server:1', 'map-tiles:1', 'store-queue:1']);
});
