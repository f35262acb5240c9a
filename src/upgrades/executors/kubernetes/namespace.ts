// Reads the state of a namespace before an upgrade: its workloads, which of the needed permissions Steward has there,
// and what blocks an upgrade.
import { type FoundDeployment, type FoundWorkload, containerLabel } from '../inventory/found.ts';
import type { JobEnd } from '../workloads.ts';
import { ClusterError, isTemporary } from './client.ts';
import { type ClusterConnection, type Rule, maxListed } from './cluster.ts';
import { type UpgradeLock, leaseName } from './lock.ts';
import { readMark } from './patch.ts';
import { describeIllness, findSick, isHealthy } from './rollout.ts';
import { noTemplates, selectTemplates, stepLabel } from './step-template.ts';
import { type ClusterPod, type ClusterWorkload, pathOf } from './workload.ts';

type Permission = {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Absent: all objects of the resource. */
  readonly name?: string;
};

const permissions = (group: string, resource: string, ...verbs: string[]): Permission[] =>
  verbs.map((verb) => ({ verb, group, resource }));

const workloadResources = ['deployments', 'statefulsets', 'daemonsets'];

/** A test compares the Role in deploy/ with these lists. */
export const neededPermissions: readonly Permission[] = [
  ...workloadResources.flatMap((resource) => permissions('apps', resource, 'get', 'list', 'patch')),
  // The executor deletes only pods that block the rollout of a StatefulSet.
  ...permissions('', 'pods', 'list', 'delete'),
  // Kubernetes does not limit `create` to a name.
  ...permissions('coordination.k8s.io', 'leases', 'create'),
  ...permissions('coordination.k8s.io', 'leases', 'get', 'update').map((one) => ({
    ...one,
    name: leaseName,
  })),
];

/** Needed with STEP_TEMPLATES=on: without `list`, Steward cannot know whether there is a backup to run. */
export const templatePermissions: readonly Permission[] = [
  ...permissions('batch', 'cronjobs', 'list'),
  ...permissions('batch', 'jobs', 'create', 'get', 'list', 'delete'),
];

/** Without these, Steward writes no Events. */
export const eventPermissions: readonly Permission[] = permissions('', 'events', 'create');

/** Short, because a caller waits for the response. */
const retryMs = 3_000;

/** The first version with CronJobs and PodDisruptionBudgets of version 1. */
const oldestMinorVersion = 21;

export type NamespaceOptions = {
  readonly connection: ClusterConnection;
  readonly lock: UpgradeLock;
  readonly findJobEnd: (jobId: string) => Promise<JobEnd>;
  /** False if jobs are stored in memory only. */
  readonly hasDatabase: boolean;
  readonly stepTemplates: boolean;
};

export async function readNamespace(options: NamespaceOptions): Promise<FoundDeployment> {
  const { connection, lock, stepTemplates } = options;
  const { namespace } = connection;
  const cluster = connection.withRetry({ retryMs });
  const unreadable = {
    namespace,
    workloads: undefined,
    notices: [],
    jobEnds: new Map(),
    templates: noTemplates,
  } as const;
  try {
    const version = await cluster.readVersion();
    if (parseMinorVersion(version) < oldestMinorVersion)
      return {
        ...unreadable,
        problems: [`the API server is ${version}; 1.${oldestMinorVersion} or newer is needed.`],
      };
    const needed = [...neededPermissions, ...(stepTemplates ? templatePermissions : [])];
    const { rules, isComplete: isReviewed } = await cluster.readRules();
    const missing = [...needed, ...eventPermissions].filter((one) => !isGranted(one, rules));
    const denied = isReviewed ? needed.filter((one) => missing.includes(one)) : [];
    const problems = formatDenied(denied, needed, namespace);
    if (denied.some(({ group, verb }) => group === 'apps' && verb === 'list'))
      return { ...unreadable, problems };
    const mayListTemplates = stepTemplates && !denied.some(({ resource }) => resource === 'cronjobs');
    const [{ workloads, isComplete }, conflict, templates] = await Promise.all([
      cluster.listWorkloads(),
      denied.some(({ resource }) => resource === 'leases') ? undefined : lock.findConflict(cluster),
      mayListTemplates ? cluster.listCronJobs(stepLabel).then(selectTemplates) : noTemplates,
    ]);
    if (!isComplete)
      return {
        ...unreadable,
        problems: [`the namespace ${namespace} has more than ${maxListed} workloads of a kind.`],
      };
    // Their pods say why workloads are not healthy.
    const pods = workloads.every(isHealthy) ? [] : await cluster.listPods();
    return {
      namespace,
      workloads: workloads.map((one) => toFound(one, pods)),
      templates,
      problems: conflict === undefined ? problems : [...problems, conflict],
      notices: [
        ...formatNotDenied(
          missing.filter((one) => !denied.includes(one)),
          namespace,
          isReviewed,
        ),
        ...(options.hasDatabase ? [] : [noDatabase]),
      ],
      jobEnds: await findJobEnds(workloads, options),
    };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { ...unreadable, problems: [error.message], isUnavailable: isTemporary(error) };
  }
}

export function toFound(found: ClusterWorkload, pods: readonly ClusterPod[]): FoundWorkload {
  const { labels, containers, obstacles } = found;
  const path = pathOf(found);
  return {
    path,
    label: labels[containerLabel],
    containers,
    obstacles,
    illness: describeIllness(found, pods),
    sickContainers: findSick(path, pods),
    mark: readMark(found),
  };
}

const noDatabase =
  'STORE_URL is not set: the job is stored in memory only. If this process ends during the upgrade, no other continues or reverts it.';

/** Some authorizers of API servers cannot list the permissions that they grant. */
function formatNotDenied(missing: readonly Permission[], namespace: string, isReviewed: boolean): string[] {
  if (missing.length === 0) return [];
  const list = formatPermissions(missing);
  return isReviewed
    ? [`not allowed in the namespace ${namespace}: ${list}. Steward writes no Events.`]
    : [`The API server does not list all permissions. Not checked in the namespace ${namespace}: ${list}.`];
}

/** Without any permission the namespace may not exist: a Role belongs to its namespace. */
function formatDenied(
  denied: readonly Permission[],
  needed: readonly Permission[],
  namespace: string,
): string[] {
  if (denied.length === 0) return [];
  const hint = denied.length === needed.length ? ' Check that the namespace exists.' : '';
  return [`not allowed in the namespace ${namespace}: ${formatPermissions(denied)}.${hint}`];
}

function isGranted({ verb, group, resource, name }: Permission, rules: readonly Rule[]): boolean {
  const has = (values: readonly string[] = [], value: string) =>
    values.includes(value) || values.includes('*');
  const hasName = (names: readonly string[] = []) =>
    names.length === 0 || (name !== undefined && names.includes(name));
  return rules.some(
    ({ verbs, apiGroups, resources, resourceNames }) =>
      has(verbs, verb) && has(apiGroups, group) && has(resources, resource) && hasName(resourceNames),
  );
}

export function formatPermissions(missing: readonly Permission[]): string {
  const verbs = new Map<string, string[]>();
  for (const { verb, group, resource, name } of missing) {
    const title = group === '' ? resource : `${resource}.${group}`;
    const object = name === undefined ? title : `${title}/${name}`;
    verbs.set(object, [...(verbs.get(object) ?? []), verb]);
  }
  return [...verbs].map(([name, list]) => `${list.join(', ')} ${name}`).join('; ');
}

function jobsOf(found: ClusterWorkload): string[] {
  const mark = readMark(found);
  return mark ? [mark.jobId, ...mark.records.map(({ jobId }) => jobId)] : [];
}

async function findJobEnds(
  workloads: readonly ClusterWorkload[],
  { findJobEnd }: NamespaceOptions,
): Promise<FoundDeployment['jobEnds']> {
  const ends = new Map<string, JobEnd>();
  for (const job of new Set(workloads.flatMap(jobsOf)))
    // Other clients can write annotations, so not every value is the id of a job.
    ends.set(job, /^[\w-]{1,64}$/.test(job) ? await findJobEnd(job) : { state: 'unknown', from: '' });
  return ends;
}

/** Infinity for a major version after 1. */
function parseMinorVersion(version: string): number {
  const [, major = '1', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 ? Infinity : Number(minor);
}
