// Shared by the tests of steps on a cluster: a namespace with two workloads, step templates, and a server that
// upgrades them.
import { expect, onTestFinished } from 'vitest';
import type { KubernetesOptions } from '../../src/upgrades/executors/kubernetes/kubernetes-executor.ts';
import type { neededPermissions } from '../../src/upgrades/executors/kubernetes/namespace.ts';
import { findJobEnd } from '../../src/upgrades/jobs/job-service.ts';
import type { Deployment } from '../../src/upgrades/versions/deployment.ts';
import type { Container } from '../../src/upgrades/versions/manifest.ts';
import { freshRelease } from '../kit/sample-manifest.ts';
import { type Server, startServer } from '../kit/server.ts';
import type { TestStore } from '../kit/store.ts';
import { patchOf, releaseOf } from '../kit/versions.ts';
import { type Cluster, type Rule, openCluster } from './cluster.ts';
import { createTestExecutor } from './executor.ts';
import type { Fields, Job, Pod } from './objects.ts';
import { imageOf } from './workloads.ts';

export const names = ['map-server', 'map-tiles'];

const containers = (tag: string) =>
  names.map((name) => ({ name: name.toUpperCase().replace('-', '_'), image: `${name}:${tag}` }));

export const patch = {
  ...patchOf('pat'),
  containers: containers('2'),
};

export const nextPatch = {
  ...patch,
  id: 'pat_next',
  build: '1301',
  previousBuild: '1300',
  containers: containers('3'),
};

export const release = {
  ...releaseOf('rel'),
  containers: containers('2'),
};

export type TemplateOptions = {
  step: string;
  name?: string;
  image?: string;
  /** The fake kubelet makes them the termination message, one on each line. */
  args?: string[];
  suspend?: boolean;
  graceSeconds?: number;
  jobSpec?: Fields;
  container?: Fields;
};

export function templateObject({
  step,
  name = step,
  image = 'task:1',
  args,
  suspend = true,
  graceSeconds = 0,
  jobSpec = {},
  container = {},
}: TemplateOptions): Fields {
  const task = { name: 'task', image, ...(args && { args }), ...container };
  const podSpec = {
    // No scheduler has this name, so no real scheduler or kubelet takes the pods.
    schedulerName: 'steward-test',
    terminationGracePeriodSeconds: graceSeconds,
    restartPolicy: 'Never',
    containers: [task],
  };
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name, labels: { 'steward/step': step } },
    spec: {
      schedule: '0 0 1 1 *',
      suspend,
      jobTemplate: { spec: { backoffLimit: 0, template: { spec: podSpec }, ...jobSpec } },
    },
  };
}

export async function createTemplate(cluster: Cluster, options: TemplateOptions): Promise<void> {
  const path = `/apis/batch/v1/namespaces/${cluster.namespace}/cronjobs`;
  await cluster.request('POST', path, templateObject(options));
}

/** A namespace with a Deployment for each name. It is closed after the test. */
export async function openWorkloads(deployments: readonly string[] = names, tag = '1'): Promise<Cluster> {
  const cluster = await openCluster();
  onTestFinished(() => cluster.close());
  for (const name of deployments)
    await cluster.createWorkload({
      kind: 'Deployment',
      name,
      replicas: 1,
      containers: [{ name, image: `${name}:${tag}` }],
    });
  for (const name of deployments) await cluster.settled('Deployment', name);
  return cluster;
}

type Message = { code: number; message: string };
type Answer = {
  status: { state: string; messages: Message[] };
  jobId: string;
  progress?: { waitingFor: { object: string; reason: string; since: number; isLate: boolean } | null };
  steps: { seqNum: number; id: string; performedBy: string; template?: string; workload?: string }[];
  problems: string[];
  notices: string[];
  digest: string;
  error?: { code: number; details: string[] };
};

type StewardOptions = Partial<Omit<KubernetesOptions, 'cluster'>> & {
  store?: TestStore | undefined;
  present?: Deployment | null;
};

/** The images of a fresh cluster have the tag 1. */
const withFirstImages = (containers: readonly Container[]) =>
  containers.map((container) => ({ ...container, image: container.image.replace(/:.*/, ':1') }));

const runningRelease: Deployment = {
  release: { ...freshRelease, containers: withFirstImages(freshRelease.containers) },
  patches: [],
};

export type Steward = Awaited<ReturnType<typeof openSteward>>;

/**
 * A server that upgrades the cluster to these versions. Steps take no time on its clock, so a step exceeds its time only
 * if a test advances that clock.
 */
export async function openSteward(
  cluster: Cluster,
  versions: readonly object[],
  { store, present = runningRelease, ...options }: StewardOptions = {},
) {
  const server: Server = await startServer({
    present,
    executor: createTestExecutor(cluster, { findJobEnd: (id) => findJobEnd(server.store, id), ...options }),
    ...(store && { store }),
  });
  onTestFinished(() => server.close());
  const token = server.token('administrator');
  const ask = async (path: string, fields: Record<string, string> = {}) =>
    (await server.post(`/admin/system/${path}`, { token, f: 'json', ...fields })).json<Answer>();
  const content = JSON.stringify(versions);
  if (!store)
    await server.postParts(
      '/admin/system/upgrades/importManifest',
      { manifestFile: { name: 'm.json', content } },
      token,
    );
  const read = async () => (await ask('upgrades')).status;
  const readCodes = async () => (await read()).messages.map(({ code }) => code);

  return {
    cluster,
    server,
    ask,
    read,
    start: (operation: string, id: string, fields: Record<string, string> = {}) =>
      ask(`upgrades/${operation}`, {
        versionManifest: JSON.stringify({ id }),
        ...(operation !== 'rollback' && { upgradeSettings: '{}' }),
        ...fields,
      }),
    /** The state and the messages of the job, when it has ended: in the expected state, if one is given. */
    end: async (expected?: 'success' | 'failed' | 'cancelled') => {
      await expect.poll(async () => (await read()).state, { interval: 20 }).not.toBe('in_progress');
      const { state, messages } = await read();
      if (expected !== undefined) expect(state).toBe(expected);
      return { state, messages, codes: messages.map(({ code }) => code) };
    },
    waitForCode: (code: number, times = 1) =>
      expect
        .poll(async () => (await readCodes()).filter((one) => one === code).length, { interval: 10 })
        .toBeGreaterThanOrEqual(times),
    /** What the step waits for, when its reason is this. */
    waitForReason: async (pattern: RegExp) => {
      const waitingFor = async () => (await ask('upgrades')).progress?.waitingFor ?? undefined;
      await expect.poll(async () => (await waitingFor())?.reason, { interval: 10 }).toMatch(pattern);
      return waitingFor();
    },
    resume: async () => {
      const { jobId } = await ask('upgrades');
      return ask(`jobs/${jobId}/resume`);
    },
    jobs: async (): Promise<Job[]> => {
      const path = `/apis/batch/v1/namespaces/${cluster.namespace}/jobs`;
      return (await cluster.request<{ items: Job[] }>('GET', path)).items;
    },
    setImage: async (name: string, image: string) => {
      await cluster.patch('Deployment', name, imageOf(image, name));
      await cluster.settled('Deployment', name);
    },
  };
}

export type Upgrade = Awaited<ReturnType<typeof openUpgrade>>;

/** Upgrades two Deployments with step templates. */
export async function openUpgrade(
  templates: TemplateOptions[],
  { cluster: given, ...options }: StewardOptions & { cluster?: Cluster } = {},
) {
  const cluster = given ?? (await openWorkloads());
  for (const template of templates) await createTemplate(cluster, template);
  return {
    ...(await openSteward(cluster, [patch, nextPatch, release], options)),
    jobPods: async (): Promise<Pod[]> => {
      const path = `/api/v1/namespaces/${cluster.namespace}/pods?labelSelector=job-name`;
      return (await cluster.request<{ items: Pod[] }>('GET', path)).items;
    },
    images: () => imagesIn(cluster),
  };
}

export async function imagesIn(cluster: Cluster, deployments: readonly string[] = names) {
  const found = await Promise.all(deployments.map((name) => cluster.read('Deployment', name)));
  return found.map(({ spec }) => spec.template.spec.containers[0]?.image);
}

export const textsOf = (messages: readonly Message[], ...codes: number[]) =>
  messages.filter(({ code }) => codes.includes(code)).map(({ message }) => message);

/** The names of the Jobs without the part that differs between upgrade jobs, such as `5-1`. */
export const attemptsOf = (jobs: readonly Job[]) =>
  jobs.map(({ metadata }) => metadata.name.split('-').slice(-2).join('-')).sort();

/** The rules of a Role with exactly these permissions. */
export const rulesFor = (permissions: typeof neededPermissions): Rule[] =>
  permissions.map(({ verb, group, resource, name }) => ({
    apiGroups: [group],
    resources: [resource],
    verbs: [verb],
    ...(name !== undefined && { resourceNames: [name] }),
  }));
