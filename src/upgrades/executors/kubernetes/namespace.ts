// Reads the state of a namespace before an upgrade: its workloads, what Steward may do there, and what blocks
// an upgrade.
import type { JobEnd } from '../../planning/workloads.ts';
import { ClusterError } from './client.ts';
import { type Cluster, type ClusterConnection, maxListed } from './cluster.ts';
import type { UpgradeLock } from './lock.ts';
import { annotations } from './patch.ts';
import {
  type Permission,
  eventPermissions,
  formatPermissions,
  isGranted,
  neededPermissions,
  templatePermissions,
} from './permissions.ts';
import { type FoundTemplates, noTemplates, selectTemplates, stepLabel } from './step-templates.ts';
import type { ClusterWorkload } from './workload.ts';

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

/** How each job that an annotation names has ended, by its id. */
export type JobEnds = ReadonlyMap<string, JobEnd>;

export type NamespaceState = {
  readonly workloads: readonly ClusterWorkload[] | undefined;
  readonly problems: readonly string[];
  readonly notices: readonly string[];
  readonly jobEnds: JobEnds;
  readonly templates: FoundTemplates;
};

export async function readNamespace(options: NamespaceOptions): Promise<NamespaceState> {
  const { connection, lock, stepTemplates } = options;
  const { namespace } = connection;
  const cluster = connection.withRetry({ retryMs });
  const unreadable = {
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
    const allDenied = await findDenied(cluster, [...needed, ...eventPermissions]);
    const denied = needed.filter((one) => allDenied.includes(one));
    const problems = formatDenied(denied, needed, namespace);
    const mayWriteEvents = !eventPermissions.some((one) => allDenied.includes(one));
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
    // A list of a namespace that does not exist is empty, without an error.
    if (workloads.length === 0 && !(await lock.hasNamespace(cluster)))
      return { ...unreadable, problems: [`the namespace ${namespace} does not exist.`] };
    return {
      workloads,
      templates,
      problems: conflict === undefined ? problems : [...problems, conflict],
      notices: [
        ...(mayWriteEvents ? [] : [formatWithoutEvents(namespace)]),
        ...(options.hasDatabase ? [] : [noDatabase]),
      ],
      jobEnds: await findJobEnds(workloads, options),
    };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { ...unreadable, problems: [error.message] };
  }
}

const noDatabase =
  'STORE_URL is not set: the job is stored in memory only. If this process ends during the upgrade, no other continues or reverts it.';

function formatWithoutEvents(namespace: string): string {
  return `not allowed in the namespace ${namespace}: ${formatPermissions(eventPermissions)}. Steward writes no Events.`;
}

/**
 * One request for all permissions. If the answer is incomplete, those that it does not contain are reviewed one by
 * one.
 */
async function findDenied(cluster: Cluster, permissions: readonly Permission[]): Promise<Permission[]> {
  const { rules, isComplete } = await cluster.readRules();
  const missing = permissions.filter((permission) => !isGranted(permission, rules));
  if (isComplete) return missing;
  const answers = await Promise.all(missing.map((permission) => cluster.isAllowed(permission)));
  return missing.filter((_permission, index) => answers[index] === false);
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

async function findJobEnds(
  workloads: readonly ClusterWorkload[],
  { findJobEnd }: NamespaceOptions,
): Promise<JobEnds> {
  const ends = new Map<string, JobEnd>();
  for (const job of new Set(workloads.flatMap((one) => one.annotations[annotations.job] ?? [])))
    // Other clients can write annotations, so not every value is the id of a job.
    ends.set(job, /^[\w-]{1,64}$/.test(job) ? await findJobEnd(job) : 'unknown');
  return ends;
}

/** Infinity for a major version after 1. */
function parseMinorVersion(version: string): number {
  const [, major = '1', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 ? Infinity : Number(minor);
}
