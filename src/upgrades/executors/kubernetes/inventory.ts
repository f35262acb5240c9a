// Reads the state of a namespace before an upgrade, and plans from it which workloads move and what blocks that.
import { maxProblems, problemsOf } from '../../../errors.ts';
import { formatList, formatNumber } from '../../../lib/format.ts';
import { truncate } from '../../../lib/text.ts';
import type { Container } from '../../manifest.ts';
import { type Inventory, type Move, type MovePlan, type Workload, maxWorkloads } from '../../workloads.ts';
import { ClusterError } from './client.ts';
import { type Cluster, type ClusterConnection, maxListed } from './cluster.ts';
import { formatForeignJob, jobOf } from './foreign-job.ts';
import type { UpgradeLock } from './lock.ts';
import {
  type MatchResult,
  type PlannedImages,
  containerLabel,
  matchContainers,
  normalizeName,
} from './matching.ts';
import { annotations, startStates } from './patch.ts';
import { type Permission, formatPermissions, neededPermissions, optionalPermissions } from './permissions.ts';
import { type ClusterQuota, findExceededQuotas } from './quota.ts';
import { formatCounts, isHealthy } from './rollout.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

/** Short, because a caller waits for the response. */
const retryMs = 3_000;

const oldestMinorVersion = 20;

const maxNotices = 100;

const maxMessage = 2000;

export type InventoryOptions = {
  readonly connection: ClusterConnection;
  readonly lock: UpgradeLock;
  readonly parallelism: number;
  readonly imageRegistry: string | undefined;
  readonly optionalContainers: readonly string[];
  readonly isKnownJob: (jobId: string) => Promise<boolean>;
  /** False if jobs are stored in memory only. */
  readonly hasDatabase: boolean;
};

type NamespaceState = {
  readonly workloads: readonly ClusterWorkload[] | undefined;
  readonly quotas: readonly ClusterQuota[];
  readonly problems: readonly string[];
  readonly notices: readonly string[];
  /** Jobs that have changed workloads and are not in the store. */
  readonly foreignJobs: ReadonlySet<string>;
};

type VersionContainers = { readonly existing: readonly Container[]; readonly added: readonly Container[] };

export async function readInventory(options: InventoryOptions): Promise<Inventory> {
  const state = await readNamespace(options);
  return {
    parallelism: options.parallelism,
    planMoves: (versions) =>
      planContainers(
        versions.map(({ containers: existing, newContainers: added }) => ({ existing, added })),
        state,
        options,
      ),
    planReverts: (moves) => planReverts(moves, state, options),
  };
}

function planContainers(
  versions: readonly VersionContainers[],
  state: NamespaceState,
  options: InventoryOptions,
): MovePlan {
  const { workloads: cluster, quotas } = state;
  if (!cluster)
    return {
      workloads: versions.map(() => []),
      problems: clusterProblems(state.problems),
      notices: state.notices,
    };
  const planned: PlannedImages = new Map();
  const matches: MatchResult[] = [];
  let count = 0;
  for (const { existing, added: extra } of versions) {
    const match = matchContainers(
      [...existing, ...extra],
      cluster,
      planned,
      options.imageRegistry,
      state.foreignJobs,
    );
    matches.push(match);
    count += match.workloads.length;
    // The preflight refuses such a plan.
    if (count > maxWorkloads) break;
  }
  const workloads = matches.map((match) => match.workloads);
  const { missing, optional, added } = groupUnmatched(versions, matches, options.optionalContainers);
  const { namespace } = options.connection;
  const hasNoWorkload =
    versions.some(({ existing }) => existing.length > 0) &&
    workloads.flat().length === 0 &&
    missing.length === 0;
  return {
    workloads,
    problems: clusterProblems([
      ...state.problems,
      ...(missing.length > 0
        ? [
            `no workload of the namespace ${namespace} has the label ${containerLabel}, or a container, with the name of ` +
              `${formatList(missing)}.`,
          ]
        : []),
      ...(hasNoWorkload ? [`no workload of the namespace ${namespace} has a container of the version.`] : []),
      ...new Set(matches.flatMap(({ problems }) => problems)),
      ...findUnfitWorkloads(cluster, workloads.flat(), quotas),
    ]),
    notices: [
      ...(optional.length > 0 ? [`Optional containers that no workload has: ${formatList(optional)}.`] : []),
      ...formatAdded(added),
      ...formatForeignJobs(state, workloads.flat()),
      ...state.notices,
    ],
  };
}

function formatAdded(added: readonly Container[]): string[] {
  const rest = added.length - maxNotices;
  return [
    ...added
      .slice(0, maxNotices)
      .map(
        ({ name, image }) => `${name} (${image}) is new and no workload has it: Steward does not create one.`,
      ),
    ...(rest > 0 ? [`No workload has ${formatNumber(rest)} more new containers.`] : []),
  ];
}

function formatForeignJobs(
  { workloads = [], foreignJobs }: NamespaceState,
  moved: readonly Workload[],
): string[] {
  const names = new Set(moved.map(({ name }) => name));
  return workloads
    .filter((found) => foreignJobs.has(jobOf(found) ?? ''))
    .slice(0, maxNotices)
    .map((found) => truncate(formatForeignJob(found, names.has(pathOf(found))), maxMessage));
}

function groupUnmatched(
  versions: readonly VersionContainers[],
  matches: readonly MatchResult[],
  optionalContainers: readonly string[],
) {
  const optionalNames = new Set(optionalContainers.map(normalizeName));
  const isOptional = ({ name }: Container) =>
    optionalNames.has('*') || optionalNames.has(normalizeName(name));
  const present = new Set(versions.flatMap((version) => version.existing));
  const unmatched = matches.flatMap((match) => match.unmatched);
  const existing = unmatched.filter((one) => present.has(one));
  return {
    missing: uniqueNames(existing.filter((one) => !isOptional(one))),
    optional: uniqueNames(existing.filter(isOptional)),
    added: unmatched.filter((one) => !present.has(one)),
  };
}

function planReverts(moves: readonly Move[], state: NamespaceState, options: InventoryOptions): MovePlan {
  const existing = moves.flatMap(({ then }) => then ?? []);
  const plan = planContainers([{ existing, added: [] }], state, options);
  const unknown = moves.filter(({ then, isNew }) => !then && !isNew).map(({ now }) => now.name);
  const problems =
    unknown.length > 0 ? [`the target version does not name the images of ${formatList(unknown)}.`] : [];
  return {
    ...plan,
    workloads: plan.workloads.map((list) => list.map(swapImages)),
    problems: [...plan.problems, ...clusterProblems(problems)],
  };
}

function uniqueNames(containers: readonly Container[]): string[] {
  return [...new Set(containers.map(({ name }) => name))];
}

/** The texts contain names and messages from the cluster, which may be long. */
function clusterProblems(messages: readonly string[]) {
  return problemsOf(
    'cluster',
    messages.slice(0, maxProblems).map((message) => truncate(message, maxMessage)),
  );
}

function swapImages({ parts, ...workload }: Workload): Workload {
  return {
    ...workload,
    parts: parts.map(({ container, image, formerImage, presentImage }) => ({
      container,
      image: presentImage ?? formerImage ?? image,
      formerImage: image,
    })),
  };
}

/** An interrupted rollout may leave a workload unhealthy. This does not block the upgrade that repairs it. */
function findUnfitWorkloads(
  cluster: readonly ClusterWorkload[],
  workloads: readonly Workload[],
  quotas: readonly ClusterQuota[],
): string[] {
  const moved = new Set(workloads.map(({ name }) => name));
  const interrupted = Object.values(startStates);
  return cluster
    .filter((found) => moved.has(pathOf(found)))
    .flatMap((found) => [
      ...found.obstacles.map((obstacle) => `${pathOf(found)}: ${obstacle}.`),
      ...(isHealthy(found) || interrupted.includes(found.annotations[annotations.state] ?? '')
        ? []
        : [`${pathOf(found)}: is not healthy: ${[formatCounts(found), ...found.failures].join('; ')}.`]),
      ...findExceededQuotas(found, quotas),
    ]);
}

async function readNamespace(options: InventoryOptions): Promise<NamespaceState> {
  const { connection, lock } = options;
  const { namespace } = connection;
  const cluster = connection.withRetry({ retryMs });
  const unreadable = { workloads: undefined, quotas: [], notices: [], foreignJobs: new Set<string>() };
  try {
    const version = await cluster.readVersion();
    if (isTooOld(version))
      return {
        ...unreadable,
        problems: [`the API server is ${version}; 1.${oldestMinorVersion} or newer is needed.`],
      };
    const denied = await findDenied(cluster, neededPermissions);
    const problems = formatDenied(denied, namespace);
    if (denied.some(({ group, verb }) => group === 'apps' && verb === 'list'))
      return { ...unreadable, problems };
    const deniedOptional = await findDenied(cluster, allOptional);
    const mayReadQuotas = !deniedOptional.some(({ resource }) => resource === 'resourcequotas');
    const [{ workloads, isComplete }, quotas, conflict] = await Promise.all([
      cluster.listWorkloads(),
      mayReadQuotas ? cluster.listQuotas() : [],
      denied.some(({ resource }) => resource === 'leases') ? undefined : lock.findConflict(cluster),
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
      quotas,
      problems: conflict === undefined ? problems : [...problems, conflict],
      notices: [
        ...formatDeniedOptional(deniedOptional, namespace),
        ...(options.hasDatabase ? [] : [noDatabase]),
      ],
      foreignJobs: await findForeignJobs(workloads, options),
    };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { ...unreadable, problems: [error.message] };
  }
}

const noDatabase =
  'STORE_URL is not set: the job is stored in memory only. If this process ends during the upgrade, no other continues or reverts it.';

const allOptional = optionalPermissions.flatMap(({ permissions }) => permissions);

async function findDenied(cluster: Cluster, permissions: readonly Permission[]): Promise<Permission[]> {
  const answers = await Promise.all(permissions.map((permission) => cluster.isAllowed(permission)));
  return permissions.filter((_permission, index) => answers[index] === false);
}

/** Without any permission the namespace may not exist: a Role belongs to its namespace. */
function formatDenied(denied: readonly Permission[], namespace: string): string[] {
  if (denied.length === 0) return [];
  const hint = denied.length === neededPermissions.length ? ' Check that the namespace exists.' : '';
  return [`not allowed in the namespace ${namespace}: ${formatPermissions(denied)}.${hint}`];
}

function formatDeniedOptional(denied: readonly Permission[], namespace: string): string[] {
  return optionalPermissions.flatMap(({ permissions, without }) => {
    const missing = permissions.filter((one) => denied.includes(one));
    return missing.length === 0
      ? []
      : [`not allowed in the namespace ${namespace}: ${formatPermissions(missing)}. ${without}.`];
  });
}

async function findForeignJobs(
  workloads: readonly ClusterWorkload[],
  { isKnownJob }: InventoryOptions,
): Promise<ReadonlySet<string>> {
  const jobs = new Set(workloads.flatMap((found) => jobOf(found) ?? []));
  const known = await Promise.all([...jobs].map(isKnownJob));
  return new Set([...jobs].filter((_job, index) => known[index] === false));
}

function isTooOld(version: string): boolean {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) === 1 && Number(minor) < oldestMinorVersion;
}
