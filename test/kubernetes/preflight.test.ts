// Everything that a namespace has against an upgrade is told before anything changes, all at once.
import { afterEach, expect, it } from 'vitest';
import type { KubernetesOptions } from '../../src/upgrades/executors/kubernetes/executor.ts';
import { neededPermissions, readQuotas } from '../../src/upgrades/executors/kubernetes/permissions.ts';
import { formatProblem } from '../../src/errors.ts';
import { freshRelease } from '../../src/upgrades/built-in-manifest.ts';
import type { Version } from '../../src/upgrades/manifest.ts';
import { type Cluster, type NewWorkload, openCluster } from './cluster.ts';
import { createHastyWorld, createTestExecutor } from './executor.ts';

let cluster: Cluster | undefined;
afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
});

const container = (name: string, tag = '2') => ({
  name,
  image: `${name.toLowerCase()}:${tag}`,
  checksum: 'N/A',
});

async function open(...workloads: (Partial<NewWorkload> & { name: string })[]) {
  const on = (cluster = await openCluster());
  for (const { name, kind = 'Deployment', ...others } of workloads)
    await on.createWorkload({ kind, name, containers: [{ name, image: `${name}:1` }], ...others });
  async function place(names: string[], added: string[] = [], options: Partial<KubernetesOptions> = {}) {
    const version: Version = {
      ...freshRelease,
      containers: names.map((name) => container(name)),
      newContainers: added.map((name) => container(name)),
    };
    const inventory = await createTestExecutor(on, options).inventory();
    const { problems, ...placed } = inventory.planMoves([version], { release: freshRelease, patches: [] });
    return { ...placed, problems: problems.map(formatProblem) };
  }
  return { on, place };
}

it('containers that are nowhere are problems unless they need not be there; new ones are only told', async () => {
  const { on, place } = await open({ name: 'apps' });
  await on.settled('Deployment', 'apps');
  const { workloads, problems, notices } = await place(['APPS', 'UPGRADER', 'BUSYBOX'], ['VIDEO']);
  expect(workloads.flat().map(({ name }) => name)).toEqual(['deployment/apps']);
  expect(problems).toEqual([
    `cluster: no workload of the namespace ${on.namespace} has the label steward/container, or a container, with the name of UPGRADER, BUSYBOX.`,
  ]);
  expect(notices).toEqual(['VIDEO (video:2) is new and nowhere in the namespace: it is not made.']);
  const tolerant = await place(['APPS', 'UPGRADER', 'BUSYBOX'], [], {
    optionalContainers: ['upgrader', 'BUSYBOX'],
  });
  expect(tolerant).toMatchObject({
    problems: [],
    notices: ['Nowhere in the namespace, and need not be: UPGRADER, BUSYBOX.'],
  });
  expect((await place(['APPS', 'GONE'], [], { optionalContainers: ['*'] })).problems).toEqual([]);
  expect((await place(['GONE'], [], { optionalContainers: ['*'] })).problems).toEqual([
    `cluster: nothing in the namespace ${on.namespace} is to be moved.`,
  ]);
});

it('what would not come through is told of every workload that a version means, and of no other', async () => {
  const { on, place } = await open(
    { name: 'paused', spec: { paused: true } },
    { name: 'ondelete', kind: 'StatefulSet', spec: { updateStrategy: { type: 'OnDelete' } } },
    { name: 'daemon', kind: 'DaemonSet', spec: { updateStrategy: { type: 'OnDelete' } } },
    {
      name: 'part',
      kind: 'StatefulSet',
      replicas: 2,
      spec: { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } },
    },
    { name: 'half', containers: [{ name: 'half', image: 'half:1-stuck' }] },
    { name: 'sick', containers: [{ name: 'sick', image: 'sick:1-stuck' }] },
    {
      name: 'there',
      containers: [
        { name: 'there', image: 'there:2' },
        { name: 'other', image: 'other:1-stuck' },
      ],
    },
    { name: 'other-sick', containers: [{ name: 'x', image: 'x:1-stuck' }] },
  );
  // What an upgrade has left half way may be mended by another.
  await on.patch('Deployment', 'half', { metadata: { annotations: { 'steward/state': 'updating' } } });
  for (const name of ['ondelete', 'part']) await on.settled('StatefulSet', name);
  await on.settled('DaemonSet', 'daemon');
  const names = ['HALF', 'PAUSED', 'ONDELETE', 'DAEMON', 'PART', 'SICK', 'THERE'];
  const wanted = [
    'cluster: deployment/paused: is paused.',
    expect.stringMatching(/^cluster: deployment\/there: is not healthy: /),
    expect.stringMatching(
      /^cluster: deployment\/sick: is not healthy: of 1 wanted pods 1 are updated and 0 available/,
    ),
    'cluster: statefulset/ondelete: has the update strategy OnDelete.',
    'cluster: statefulset/part: keeps pods below 1 back by a partition.',
    'cluster: daemonset/daemon: has the update strategy OnDelete.',
  ];
  await expect.poll(async () => (await place(names)).problems).toEqual(expect.arrayContaining(wanted));
  const others = (await place(names)).problems.filter(
    (problem) => !/paused|\/sick|there|ondelete|part|daemon/.test(problem),
  );
  expect(others).toEqual([]);
});

it('quotas that leave no room for a rollout are told', async () => {
  const { on, place } = await open({ name: 'full', replicas: 1 });
  await on.settled('Deployment', 'full');
  await on.request('POST', `/api/v1/namespaces/${on.namespace}/resourcequotas`, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'small' },
    spec: { hard: { pods: '1' } },
  });
  await expect
    .poll(async () => (await place(['FULL'])).problems)
    .toEqual([
      'cluster: deployment/full: needs one more pod while it is rolled out, for which the quota small has no room: pods is at 1 of 1.',
    ]);
});

it('an API server that cannot be reached is told, and nothing else', async () => {
  const { on, place } = await open();
  await on.faults.down();
  const { problems } = await place(['APPS'], [], { runtime: createHastyWorld(20) });
  expect(problems).toEqual([
    expect.stringMatching(/^cluster: the API server cannot be reached: .*ECONNREFUSED/),
  ]);
  await on.faults.up();
});

it('an API server that is too old is told', async () => {
  const { on, place } = await open();
  on.faults.inject({
    path: /^\/version/,
    act: { status: 200, body: { major: '1', minor: '18', gitVersion: 'v1.18.9' } },
  });
  expect((await place(['APPS'])).problems).toEqual([
    'cluster: the API server is v1.18.9; 1.20 or newer is needed.',
  ]);
});

type Rules = Parameters<Cluster['allow']>[0];
const rulesFor = (rights: readonly { verb: string; group: string; resource: string }[]): Rules =>
  rights.map(({ verb, group, resource }) => ({ apiGroups: [group], resources: [resource], verbs: [verb] }));

it('rights that are missing are told together, with what could be seen without them', async () => {
  const { on, place } = await open({ name: 'apps' });
  await on.settled('Deployment', 'apps');
  await on.allow(rulesFor(neededPermissions.filter(({ verb }) => verb === 'list' || verb === 'create')));
  expect((await place(['APPS', 'GONE'])).problems).toEqual([
    `cluster: not allowed in the namespace ${on.namespace}: get, patch deployments.apps; get, patch statefulsets.apps; get, patch daemonsets.apps; delete pods; get, update leases.coordination.k8s.io.`,
    expect.stringContaining('with the name of GONE.'),
  ]);
  await on.allow([{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }]);
  expect((await place(['APPS'])).problems).toEqual([
    expect.stringContaining('get, list, patch statefulsets.apps'),
  ]);
});

it('the rights that are asked for are enough to move a workload and to put a stuck one back', async () => {
  const { on, place } = await open({ name: 'store', kind: 'StatefulSet', replicas: 2 });
  await on.settled('StatefulSet', 'store');
  await on.allow(rulesFor([...neededPermissions, readQuotas]));
  const { workloads, problems } = await place(['STORE']);
  expect(problems).toEqual([]);
  const executor = createTestExecutor(on);
  const errand = {
    jobId: 'job',
    fence: 1,
    runStartedAt: Date.now(),
    signal: new AbortController().signal,
    assertOwnership: () => Promise.resolve(),
  };
  for (const workload of workloads.flat()) {
    await executor.apply(workload, errand);
    await executor.verify(workload, errand);
    const stuck = {
      ...workload,
      parts: workload.parts.map((part) => ({ ...part, formerImage: part.image, image: 'store:3-missing' })),
    };
    await executor.apply(stuck, errand);
    await expect(executor.verify(stuck, errand)).rejects.toThrow('cannot have the image');
    await executor.rollback(stuck, errand);
  }
  await executor.release('job');
});
