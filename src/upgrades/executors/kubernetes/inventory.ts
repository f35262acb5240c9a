// Reads the state of a namespace before an upgrade, and plans from it which workloads move and what blocks that.
import { maxProblems, problemsOf } from '../../../errors.ts';
import { formatList, formatNumber } from '../../../lib/format.ts';
import { truncate } from '../../../lib/text.ts';
import type { Container } from '../../manifest.ts';
import { type Inventory, type Move, type MovePlan, type Workload, maxWorkloads } from '../../workloads.ts';
import { ClusterError } from './client.ts';
import { type Cluster, type ClusterConnection, maxListed } from './cluster.ts';
import type { UpgradeLock } from './lock.ts';
import {
  type MatchResult,
  type PlannedImages,
  containerLabel,
  matchContainers,
  normalizeName,
} from './matching.ts';
import { annotations, startStates } from './patch.ts';
import {
  type Permission,
  formatPermissions,
  neededPermissions,
  readQuotas,
  templatePermissions,
} from './permissions.ts';
import { type ClusterQuota, findExceededQuotas } from './quota.ts';
import { formatCounts, isHealthy } from './rollout.ts';
import {
  type FoundTemplates,
  noTemplates,
  oldestMinorForTemplates,
  selectTemplates,
  stepLabel,
} from './step-templates.ts';
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
  readonly stepTemplates: boolean;
};

type NamespaceState = {
  readonly workloads: readonly ClusterWorkload[] | undefined;
  readonly quotas: readonly ClusterQuota[];
  readonly problems: readonly string[];
  readonly templates: FoundTemplates;
};

type VersionContainers = { readonly existing: readonly Container[]; readonly added: readonly Container[] };

export async function readInventory(options: InventoryOptions): Promise<Inventory> {
  const state = await readNamespace(options);
  return {
    parallelism: options.parallelism,
    performers: state.templates.performers,
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
    return { workloads: versions.map(() => []), problems: clusterProblems(state.problems), notices: [] };
  const planned: PlannedImages = new Map();
  const matches: MatchResult[] = [];
  let count = 0;
  for (const { existing, added: extra } of versions) {
    const match = matchContainers([...existing, ...extra], cluster, planned, options.imageRegistry);
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
      ...state.templates.problems,
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
      ...state.templates.notices.slice(0, maxNotices).map((notice) => truncate(notice, maxMessage)),
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
    parts: parts.map(({ container, image, formerImage }) => ({
      container,
      image: formerImage ?? image,
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
  const { connection, lock, stepTemplates } = options;
  const cluster = connection.withRetry({ retryMs });
  const unreadable = { workloads: undefined, quotas: [], templates: noTemplates };
  try {
    const version = await cluster.readVersion();
    const minor = parseMinorVersion(version);
    if (minor < oldestMinorVersion)
      return {
        ...unreadable,
        problems: [`the API server is ${version}; 1.${oldestMinorVersion} or newer is needed.`],
      };
    const hasTemplates = stepTemplates && minor >= oldestMinorForTemplates;
    const needed = [...neededPermissions, ...(hasTemplates ? templatePermissions : [])];
    const denied = await findDeniedPermissions(cluster, needed);
    const problems = [
      ...(denied.length > 0
        ? [`not allowed in the namespace ${connection.namespace}: ${formatPermissions(denied)}.`]
        : []),
      ...(stepTemplates && !hasTemplates
        ? [
            `the API server is ${version}; step templates need 1.${oldestMinorForTemplates}: set STEP_TEMPLATES=off.`,
          ]
        : []),
    ];
    if (denied.some(({ group, verb }) => group === 'apps' && verb === 'list'))
      return { ...unreadable, problems };
    const mayReadQuotas = await cluster.isAllowed(readQuotas);
    const mayListTemplates = hasTemplates && !denied.some(({ resource }) => resource === 'cronjobs');
    const [{ workloads, isComplete }, quotas, conflict, templates] = await Promise.all([
      cluster.listWorkloads(),
      mayReadQuotas ? cluster.listQuotas() : [],
      denied.some(({ resource }) => resource === 'leases') ? undefined : lock.findConflict(cluster),
      mayListTemplates ? cluster.listCronJobs(stepLabel).then(selectTemplates) : noTemplates,
    ]);
    if (!isComplete)
      return {
        ...unreadable,
        problems: [`the namespace ${connection.namespace} has more than ${maxListed} workloads of a kind.`],
      };
    return {
      workloads,
      quotas,
      templates,
      problems: conflict === undefined ? problems : [...problems, conflict],
    };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { ...unreadable, problems: [error.message] };
  }
}

async function findDeniedPermissions(cluster: Cluster, needed: readonly Permission[]): Promise<Permission[]> {
  const answers = await Promise.all(needed.map((permission) => cluster.isAllowed(permission)));
  return needed.filter((_permission, index) => answers[index] === false);
}

/** Infinity for a major version after 1. */
function parseMinorVersion(version: string): number {
  const [, major = '1', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) > 1 ? Infinity : Number(minor);
}
