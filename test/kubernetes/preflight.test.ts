// The problems of a namespace that a plan lists before an upgrade changes anything.
import { afterEach, expect, it } from 'vitest';
import { formatProblem } from '../../src/lib/errors.ts';
import { realRuntime } from '../../src/lib/runtime.ts';
import {
  type KubernetesOptions,
  connectCluster,
} from '../../src/upgrades/executors/kubernetes/kubernetes-executor.ts';
import {
  eventPermissions,
  neededPermissions,
  templatePermissions,
} from '../../src/upgrades/executors/kubernetes/namespace.ts';
import type { JobEnd } from '../../src/upgrades/executors/workloads.ts';
import { freshRelease } from '../kit/sample-manifest.ts';
import type { Version } from '../../src/upgrades/versions/manifest.ts';
import { type Cluster, type NewWorkload, openCluster } from './cluster.ts';
import { createTestExecutor, fast } from './executor.ts';
import { contextOf } from './single-deployment.ts';
import { createTemplate, rulesFor } from './upgrade-kit.ts';

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
  async function plan(names: string[], added: string[] = [], options: Partial<KubernetesOptions> = {}) {
    const version: Version = {
      ...freshRelease,
      containers: names.map((name) => container(name)),
      newContainers: added.map((name) => container(name)),
    };
    const inventory = await createTestExecutor(on, options).inventory();
    const { problems, ...others } = inventory.planMoves([version], { release: freshRelease, patches: [] });
    const transient = problems.filter(({ isTransient }) => isTransient).map(formatProblem);
    return { ...others, problems: problems.map(formatProblem), transient };
  }
  return { on, plan };
}

it('a container that no workload has is a problem, unless it is optional or new', async () => {
  const { on, plan } = await open({ name: 'apps' });
  await on.settled('Deployment', 'apps');
  const { workloads, problems, notices } = await plan(['APPS', 'UPGRADER', 'BUSYBOX'], ['VIDEO']);
  expect(workloads.flat().map(({ name }) => name)).toEqual(['deployment/apps']);
  expect(problems).toEqual([
    `cluster: no workload of the namespace ${on.namespace} has the label steward/container, or a container, with the name of UPGRADER, BUSYBOX.`,
  ]);
  expect(notices).toEqual(['VIDEO (video:2) is new and no workload has it: Steward does not create one.']);
  const tolerant = await plan(['APPS', 'UPGRADER', 'BUSYBOX'], [], {
    optionalContainers: ['upgrader', 'BUSYBOX'],
  });
  expect(tolerant).toMatchObject({
    problems: [],
    notices: ['Optional containers that no workload has: UPGRADER, BUSYBOX.'],
  });
  expect((await plan(['APPS', 'GONE'], [], { optionalContainers: ['*'] })).problems).toEqual([]);
  expect((await plan(['GONE'], [], { optionalContainers: ['*'] })).problems).toEqual([
    `cluster: no workload of the namespace ${on.namespace} has a container of the version.`,
  ]);
});

it('every matching workload whose rollout could not complete is a problem, and no other workload', async () => {
  const { on, plan } = await open(
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
  // An upgrade may repair a workload that an interrupted upgrade left unhealthy.
  await on.patch('Deployment', 'half', { metadata: { annotations: { 'steward/job': 'interrupted' } } });
  await on.patch('Deployment', 'sick', { metadata: { annotations: { 'steward/job': 'finished' } } });
  const findJobEnd = (job: string) =>
    Promise.resolve<JobEnd>({ state: job === 'finished' ? 'succeeded' : 'unfinished', from: '' });
  for (const name of ['ondelete', 'part']) await on.settled('StatefulSet', name);
  await on.settled('DaemonSet', 'daemon');
  const names = ['HALF', 'PAUSED', 'ONDELETE', 'DAEMON', 'PART', 'SICK', 'THERE'];
  const wanted = [
    'cluster: deployment/paused: is paused.',
    expect.stringMatching(/^cluster: deployment\/there: is not healthy: /),
    'cluster: statefulset/ondelete: has the update strategy OnDelete.',
    'cluster: statefulset/part: has the partition 1, which excludes pods with lower ordinals.',
    'cluster: daemonset/daemon: has the update strategy OnDelete.',
  ];
  const planned = () => plan(names, [], { findJobEnd });
  await expect.poll(async () => (await planned()).problems).toEqual(expect.arrayContaining(wanted));
  const { problems, notices, transient } = await planned();
  expect(transient).toEqual(problems.filter((problem) => problem.includes('is not healthy')));
  const others = problems.filter((problem) => !/paused|\/sick|there|ondelete|part|daemon/.test(problem));
  expect(others).toEqual([]);
  const illness = 'is not healthy: of 1 wanted pods 1 are updated and 0 available, 1 exist';
  expect(notices.map((notice) => notice.replaceAll(/-[^-]+-[^- ]+(?= is not ready)/g, '-pod'))).toEqual([
    `deployment/half: ${illness}; half-pod is not ready. ` +
      'This does not block the upgrade, because a job that did not succeed has changed the workload.',
    `deployment/sick: ${illness}; sick-pod is not ready. ` +
      'This does not block the job, because it gives the workload other images.',
  ]);
});

it('a DaemonSet with a pod on a lost node is a problem that names the node', async () => {
  const { on, plan } = await open({ name: 'apps', kind: 'DaemonSet' });
  await on.settled('DaemonSet', 'apps');
  const [pod] = await on.pods('DaemonSet', 'apps');
  await on.loseNode(pod?.metadata.name ?? '');
  const text = `${pod?.metadata.name} is not ready (its node ${pod?.spec.nodeName} does not report).`;
  await expect.poll(async () => (await plan(['APPS'])).problems.join('')).toContain(text);
});

it('a workload that an autoscaler has just scaled down has pods that are to end', async () => {
  const { on, plan } = await open({ name: 'apps', replicas: 3 });
  const { spec, ...apps } = await on.settled('Deployment', 'apps');
  const body = { items: [{ ...apps, spec: { ...spec, replicas: 1 } }] };
  on.faults.inject({ path: /\/deployments\?/, act: { status: 200, body } });
  const text =
    'cluster: deployment/apps: has pods that are to end: of 1 wanted pods 3 are updated and 3 available, 3 exist.';
  expect((await plan(['APPS'])).transient).toEqual([text]);
});

it('containers that keep an image which the plan replaces elsewhere are notices', async () => {
  const image = 'apps:1';
  const { on, plan } = await open(
    {
      name: 'apps',
      containers: [
        { name: 'apps', image },
        { name: 'metrics', image },
      ],
      initContainers: [{ name: 'migrate', image }],
    },
    { name: 'portal', containers: [{ name: 'web', image }] },
    { name: 'queue' },
  );
  await createTemplate(on, { step: 'logging', image });
  for (const name of ['apps', 'portal', 'queue']) await on.settled('Deployment', name);
  const { notices } = await plan(['APPS', 'QUEUE']);
  const others = ['deployment/apps: its container migrate', 'deployment/apps: its container metrics'];
  others.push('deployment/portal: its container web', 'cronjob/logging: its container task');
  expect(notices).toEqual(others.map((other) => `${other} also uses the image apps:1, and keeps it.`));
  expect((await plan(['QUEUE'])).notices).toEqual([]);
});

it('an API server that cannot be reached is the only problem', async () => {
  const { on, plan } = await open();
  await on.faults.down();
  const { problems } = await plan(['APPS'], [], fast());
  expect(problems).toEqual([
    expect.stringMatching(/^cluster: the API server cannot be reached: .*ECONNREFUSED/),
  ]);
  await on.faults.up();
});

it('a namespace with more workloads than one list may have is the only problem', async () => {
  const { on, plan } = await open();
  on.faults.inject({
    path: /\/deployments\?limit=5000$/,
    act: {
      status: 200,
      body: { apiVersion: 'apps/v1', kind: 'DeploymentList', metadata: { continue: 'next' }, items: [] },
    },
  });
  expect((await plan(['APPS'])).problems).toEqual([
    `cluster: the namespace ${on.namespace} has more than 5000 workloads of a kind.`,
  ]);
});

it('a long message of the API server is cut', async () => {
  const { on, plan } = await open();
  on.faults.inject({ path: /^\/version/, act: { status: 400, body: { message: 'x'.repeat(1_000_000) } } });
  const { problems } = await plan(['APPS']);
  expect(problems).toEqual([expect.stringMatching(/^cluster: the API server refuses \(400\): x{1000}\.$/)]);
});

it('thousands of missing or new containers are not all listed', async () => {
  const { plan } = await open();
  const names = (prefix: string, length: number) =>
    Array.from({ length }, (_, index) => `${prefix}_${index}`);
  const { problems, notices } = await plan(names('OLD', 4000), names('NEW', 1000));
  expect(problems).toEqual([
    expect.stringMatching(
      / with the name of OLD_0, .*, OLD_19 and 3,980 more\. Check that the namespace exists\.$/,
    ),
  ]);
  expect(notices).toHaveLength(100);
});

it('an API server that is too old is the only problem', async () => {
  const { on, plan } = await open();
  on.faults.inject({
    path: /^\/version/,
    act: { status: 200, body: { major: '1', minor: '20', gitVersion: 'v1.20.2' } },
  });
  expect((await plan(['APPS'])).problems).toEqual([
    'cluster: the API server is v1.20.2; 1.21 or newer is needed.',
  ]);
});

it('missing permissions are one problem, beside those that can be found without them', async () => {
  const { on, plan } = await open({ name: 'apps' });
  await on.settled('Deployment', 'apps');
  await on.allow(rulesFor(neededPermissions.filter(({ verb }) => verb === 'list' || verb === 'create')));
  const withoutTemplates = { stepTemplates: false };
  expect((await plan(['APPS', 'GONE'], [], withoutTemplates)).problems).toEqual([
    `cluster: not allowed in the namespace ${on.namespace}: get, patch deployments.apps; get, patch statefulsets.apps; get, patch daemonsets.apps; delete pods; get, update leases.coordination.k8s.io/upgrade-lock.`,
    expect.stringContaining('with the name of GONE.'),
  ]);
  await on.allow([{ apiGroups: ['apps'], resources: ['deployments'], verbs: ['get'] }]);
  expect((await plan(['APPS'])).problems).toEqual([
    expect.stringContaining('get, list, patch statefulsets.apps'),
  ]);
});

it('the needed permissions are enough to update a workload and to roll back a stuck one', async () => {
  const { on, plan } = await open({ name: 'store', kind: 'StatefulSet', replicas: 2 });
  await on.settled('StatefulSet', 'store');
  await on.allow(rulesFor(neededPermissions));
  const { workloads, problems, notices } = await plan(['STORE'], [], { stepTemplates: false });
  expect(problems).toEqual([]);
  expect(notices).toEqual([
    `not allowed in the namespace ${on.namespace}: create events. Steward writes no Events.`,
  ]);
  // An Event that is refused is repeated for seconds.
  const executor = createTestExecutor(on, fast());
  const context = contextOf();
  for (const workload of workloads.flat()) {
    await executor.apply(workload, context);
    await executor.verify(workload, context);
    const stuck = {
      ...workload,
      parts: workload.parts.map((part) => ({ ...part, formerImage: part.image, image: 'store:3-missing' })),
    };
    await executor.apply(stuck, context);
    await expect(executor.verify(stuck, context)).rejects.toThrow('cannot pull the image');
    await executor.rollback(stuck, context);
  }
  await executor.release('job');
  const { items } = await on.request<{ items: { source?: { component?: string } }[] }>(
    'GET',
    `/api/v1/namespaces/${on.namespace}/events`,
  );
  expect(items.filter(({ source }) => source?.component === 'steward')).toEqual([]);
});

it('permissions that a review of the rules does not list are a notice, if the review is incomplete', async () => {
  const { on, plan } = await open({ name: 'apps' });
  await on.settled('Deployment', 'apps');
  const all = [...neededPermissions, ...templatePermissions, ...eventPermissions];
  const listed = all.filter(({ resource }) => resource !== 'pods' && resource !== 'events');
  const status = { resourceRules: rulesFor(listed), nonResourceRules: [], incomplete: true };
  on.faults.inject({ path: /rulesreviews/, act: { status: 201, body: { spec: {}, status } } });
  expect(await plan(['APPS'])).toMatchObject({
    problems: [],
    notices: [
      `The API server does not list all permissions. Not checked in the namespace ${on.namespace}: list, delete pods; create events.`,
    ],
  });
});

it('with all permissions of the Role there is no notice', async () => {
  const { on, plan } = await open({ name: 'apps' });
  await on.settled('Deployment', 'apps');
  await on.allow(rulesFor([...neededPermissions, ...templatePermissions, ...eventPermissions]));
  expect(await plan(['APPS'])).toMatchObject({ problems: [], notices: [] });
});

it('the problem of a namespace without workloads asks whether the namespace exists', async () => {
  const { on } = await open();
  const version: Version = { ...freshRelease, containers: [container('APPS')], newContainers: [] };
  const problemsIn = async (namespace: string) => {
    const cluster = connectCluster({ runtime: realRuntime, kubeconfig: on.kubeconfig, namespace });
    const inventory = await createTestExecutor(on, { cluster }).inventory();
    return inventory.planMoves([version], { release: freshRelease, patches: [] }).problems.map(formatProblem);
  };
  for (const namespace of ['nope', on.namespace])
    expect(await problemsIn(namespace)).toEqual([
      expect.stringMatching(/with the name of APPS\. Check that the namespace exists\.$/),
    ]);
  await on.createWorkload({
    kind: 'Deployment',
    name: 'other',
    containers: [{ name: 'other', image: 'other:1' }],
  });
  expect(await problemsIn(on.namespace)).toEqual([expect.stringMatching(/with the name of APPS\.$/)]);
  // The Role of another namespace does not tell whether this one exists.
  await on.allow(rulesFor(neededPermissions));
  expect(await problemsIn('nope')).toEqual([
    expect.stringMatching(
      /^cluster: not allowed in the namespace nope: .* Check that the namespace exists\.$/,
    ),
  ]);
});

it('without a database the plan says that the job does not survive the process', async () => {
  const { on, plan } = await open({ name: 'apps' });
  await on.settled('Deployment', 'apps');
  expect((await plan(['APPS'], [], { hasDatabase: false })).notices).toEqual([
    'STORE_URL is not set: the job is stored in memory only. If this process ends during the upgrade, no other continues or reverts it.',
  ]);
});
