// What a namespace shows of itself before anything is changed: whether the server can be reached, what is allowed, which workloads
// there are, and what stands against moving them.
import { problemsOf } from '../../../errors.ts';
import type { Runtime } from '../../../runtime.ts';
import type { Container } from '../../manifest.ts';
import type { MovePlan, Inventory, Workload } from '../../workloads.ts';
import { ClusterError } from './client.ts';
import type { Cluster, OpenCluster } from './cluster.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';
import { type LockOptions, formatHolder, lockName } from './lock.ts';
import { type Images, containerLabel, fold, matchContainers } from './matching.ts';
import { type ClusterQuota, findLackOfRoom } from './quota.ts';
import { formatMissing, neededPermissions, readQuotas } from './permissions.ts';
import { annotations, starts } from './patch.ts';
import { formatCounts, isHealthy } from './rollout.ts';

/** Whoever asks for a plan waits for it. */
const patienceMs = 3_000;

const oldestMinor = 20;

export type InventoryOptions = {
  readonly open: OpenCluster;
  readonly runtime: Pick<Runtime, 'now'>;
  readonly hasEnded: LockOptions['hasEnded'];
  readonly namespace: string;
  readonly parallelism: number;
  readonly imageRegistry: string | undefined;
  /** Containers of versions that need not be anywhere; `*` for all. */
  readonly optionalContainers: readonly string[];
};

/** No workloads where they cannot be seen. */
type Seen = {
  readonly workloads: readonly ClusterWorkload[] | undefined;
  readonly quotas: readonly ClusterQuota[];
  readonly problems: readonly string[];
};

/** Containers that a version knows to be there, and those that come with it. */
type Wanted = { readonly known: readonly Container[]; readonly added: readonly Container[] };

export async function readInventory(options: InventoryOptions): Promise<Inventory> {
  const { namespace, parallelism, imageRegistry } = options;
  const seen = await look(options);
  const optional = new Set(options.optionalContainers.map(fold));
  const isNeeded = ({ name }: Container) => !optional.has('*') && !optional.has(fold(name));

  function place(wanted: readonly Wanted[]): MovePlan {
    const { workloads: cluster, quotas } = seen;
    if (!cluster) return { workloads: wanted.map(() => []), problems: inCluster(seen.problems), notices: [] };
    const images: Images = new Map();
    const matches = wanted.map(({ known, added }) => {
      const { unmatched, ...matched } = matchContainers([...known, ...added], cluster, images, imageRegistry);
      const isKnown = (one: Container) => known.includes(one);
      return {
        ...matched,
        lost: unmatched.filter((one) => isKnown(one) && isNeeded(one)),
        left: unmatched.filter((one) => isKnown(one) && !isNeeded(one)),
        nowhere: unmatched.filter((one) => !isKnown(one)),
      };
    });
    const workloads = matches.map((match) => match.workloads);
    const lost = namesOf(matches.flatMap((match) => match.lost));
    const left = namesOf(matches.flatMap((match) => match.left));
    const isNothing = wanted.some(({ known }) => known.length > 0) && workloads.flat().length === 0;
    return {
      workloads,
      problems: inCluster([
        ...seen.problems,
        ...(lost.length > 0 ? [nothingFor(lost)] : []),
        ...(isNothing && lost.length === 0 ? [`nothing in the namespace ${namespace} is to be moved.`] : []),
        ...new Set(matches.flatMap(({ problems }) => problems)),
        ...findUnfit(cluster, workloads.flat(), quotas),
      ]),
      notices: [
        ...(left.length > 0 ? [`Nowhere in the namespace, and need not be: ${left.join(', ')}.`] : []),
        ...matches
          .flatMap(({ nowhere }) => nowhere)
          .map(
            ({ name, image }) => `${name} (${image}) is new and nowhere in the namespace: it is not made.`,
          ),
      ],
    };
  }

  const nothingFor = (names: readonly string[]) =>
    `no workload of the namespace ${namespace} has the label ${containerLabel}, or a container, with the name of ` +
    `${names.join(', ')}.`;

  return {
    parallelism,
    planMoves: (versions) =>
      place(versions.map(({ containers: known, newContainers: added }) => ({ known, added }))),
    planReverts(moves) {
      const placed = place([{ known: moves.flatMap(({ then }) => then ?? []), added: [] }]);
      const lost = moves.filter(({ then, isNew }) => !then && !isNew).map(({ now }) => now.name);
      const unknown =
        lost.length > 0 ? [`the version gone back to does not tell the images of ${lost.join(', ')}.`] : [];
      return {
        ...placed,
        workloads: placed.workloads.map((list) => list.map(turnBack)),
        problems: [...placed.problems, ...inCluster(unknown)],
      };
    },
  };
}

const namesOf = (containers: readonly Container[]) => [...new Set(containers.map(({ name }) => name))];

const inCluster = (messages: readonly string[]) => problemsOf('cluster', messages);

function turnBack({ parts, ...workload }: Workload): Workload {
  return {
    ...workload,
    parts: parts.map(({ container, image, formerImage }) => ({
      container,
      image: formerImage ?? image,
      formerImage: image,
    })),
  };
}

/** Workloads that would not come through. One that an upgrade has left half way is not the worse for another. */
function findUnfit(
  cluster: readonly ClusterWorkload[],
  workloads: readonly Workload[],
  quotas: readonly ClusterQuota[],
): string[] {
  const placed = new Set(workloads.map(({ name }) => name));
  const halfWay = Object.values(starts);
  return cluster
    .filter((found) => placed.has(pathOf(found)))
    .flatMap((found) => [
      ...found.obstacles.map((obstacle) => `${pathOf(found)}: ${obstacle}.`),
      ...(isHealthy(found) || halfWay.includes(found.annotations[annotations.state] ?? '')
        ? []
        : [`${pathOf(found)}: is not healthy: ${[formatCounts(found), ...found.failures].join('; ')}.`]),
      ...findLackOfRoom(found, quotas),
    ]);
}

async function look({ open, runtime, hasEnded, namespace }: InventoryOptions): Promise<Seen> {
  const cluster = open({ ms: patienceMs, signal: new AbortController().signal });
  const nothing = { workloads: undefined, quotas: [] };
  try {
    const version = await cluster.version();
    if (isTooOld(version))
      return { ...nothing, problems: [`the API server is ${version}; 1.${oldestMinor} or newer is needed.`] };
    const denied = await findDenied(cluster);
    const problems =
      denied.length > 0 ? [`not allowed in the namespace ${namespace}: ${formatMissing(denied)}.`] : [];
    if (denied.some(({ group, verb }) => group === 'apps' && verb === 'list'))
      return { ...nothing, problems };
    const mayReadQuotas = await cluster.isAllowed(readQuotas);
    const [workloads, quotas, holder] = await Promise.all([
      cluster.list(),
      mayReadQuotas ? cluster.quotas() : [],
      denied.some(({ resource }) => resource === 'leases')
        ? undefined
        : findHolder(cluster, runtime.now(), hasEnded),
    ]);
    return { workloads, quotas, problems: holder === undefined ? problems : [...problems, holder] };
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    return { ...nothing, problems: [error.message] };
  }
}

async function findDenied(cluster: Cluster) {
  const answers = await Promise.all(neededPermissions.map((right) => cluster.isAllowed(right)));
  return neededPermissions.filter((_right, index) => answers[index] === false);
}

async function findHolder(
  cluster: Cluster,
  at: number,
  hasEnded: LockOptions['hasEnded'],
): Promise<string | undefined> {
  try {
    return formatHolder(await cluster.readLease(lockName), at, hasEnded);
  } catch (error) {
    if (error instanceof ClusterError && error.code === 404) return undefined;
    throw error;
  }
}

function isTooOld(version: string): boolean {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(major) === 1 && Number(minor) < oldestMinor;
}
