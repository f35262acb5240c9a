// Plans which workloads of a namespace an upgrade moves, and finds what blocks that.
import { maxProblems, problemsOf } from '../../../lib/errors.ts';
import { formatList, formatNumber } from '../../../lib/format.ts';
import { truncate } from '../../../lib/text.ts';
import {
  type Inventory,
  type JobEnd,
  type Move,
  type MovePlan,
  type Workload,
  maxWorkloads,
} from '../../planning/workloads.ts';
import type { Container, Version } from '../../versions/manifest.ts';
import {
  type MatchResult,
  type PlannedImages,
  containerLabel,
  matchContainers,
  normalizeName,
} from './matching.ts';
import { type JobEnds, type NamespaceOptions, type NamespaceState, readNamespace } from './namespace.ts';
import { annotations, parseImages } from './patch.ts';
import { formatCounts, isHealthy } from './rollout.ts';
import { type ClusterWorkload, pathOf } from './workload.ts';

const maxNotices = 100;

const maxMessage = 2000;

export type InventoryOptions = NamespaceOptions & {
  readonly parallelism: number;
  readonly imageRegistry: string | undefined;
  readonly optionalContainers: readonly string[];
};

type VersionContainers = Pick<Version, 'containers' | 'newContainers'>;

export async function readInventory(options: InventoryOptions): Promise<Inventory> {
  const state = await readNamespace(options);
  return {
    parallelism: options.parallelism,
    performers: state.templates.performers,
    planMoves: (versions) => planContainers(versions, state, options),
    planReverts: (moves) => planReverts(moves, state, options),
  };
}

function planContainers(
  versions: readonly VersionContainers[],
  state: NamespaceState,
  options: InventoryOptions,
): MovePlan {
  const { workloads: cluster } = state;
  if (!cluster)
    return {
      workloads: versions.map(() => []),
      problems: clusterProblems(state.problems),
      notices: state.notices,
    };
  const planned: PlannedImages = new Map();
  const matches: MatchResult[] = [];
  let count = 0;
  for (const { containers, newContainers } of versions) {
    const match = matchContainers([...containers, ...newContainers], cluster, planned, options.imageRegistry);
    matches.push(match);
    count += match.workloads.length;
    // The preflight refuses such a plan.
    if (count > maxWorkloads) break;
  }
  const workloads = matches.map((match) => match.workloads);
  const { missing, optional, added } = groupUnmatched(versions, matches, options.optionalContainers);
  const { namespace } = options.connection;
  // A list of a namespace that does not exist is empty, without an error.
  const hint = cluster.length === 0 ? ' Check that the namespace exists.' : '';
  const hasNoWorkload =
    versions.some(({ containers }) => containers.length > 0) &&
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
              `${formatList(missing)}.${hint}`,
          ]
        : []),
      ...(hasNoWorkload
        ? [`no workload of the namespace ${namespace} has a container of the version.${hint}`]
        : []),
      ...new Set(matches.flatMap(({ problems }) => problems)),
      ...findUnfitWorkloads(state, workloads.flat()),
    ]),
    notices: [
      ...(optional.length > 0 ? [`Optional containers that no workload has: ${formatList(optional)}.`] : []),
      ...formatAdded(added),
      ...formatAbandoned(state),
      ...formatUnhealthyNotices(state, workloads.flat()),
      ...state.templates.notices.slice(0, maxNotices).map((notice) => truncate(notice, maxMessage)),
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

const endsOfAbandoned: Readonly<Partial<Record<JobEnd, string>>> = {
  unknown: 'which this Steward does not know',
  reverted: 'which did not put it back',
};

/** Workloads that a job has changed and left behind: its store is lost, or its reverting failed. */
function formatAbandoned({ workloads = [], jobEnds }: NamespaceState): string[] {
  const { job, state, formerImages } = annotations;
  return workloads
    .filter((found) => isAbandoned(found, jobEnds))
    .slice(0, maxNotices)
    .map((found) => {
      const { [job]: id = '', [state]: is = '', [formerImages]: former = '' } = found.annotations;
      const end = endsOfAbandoned[endOf(found, jobEnds)] ?? '';
      const text = `${pathOf(found)} was changed by the job ${id}, ${end} (${state}: ${is}; ${formerImages}: ${former}).`;
      return truncate(text, maxMessage);
    });
}

/** Not if another client has put back the images from before the job. */
function isAbandoned(found: ClusterWorkload, jobEnds: JobEnds): boolean {
  const former = parseImages(found.annotations[annotations.formerImages]);
  const isChanged = found.containers.some(({ name, image }) => (former.get(name) ?? image) !== image);
  return isChanged && endsOfAbandoned[endOf(found, jobEnds)] !== undefined;
}

/** An interrupted rollout may leave a workload unhealthy. This does not block the upgrade that repairs it. */
function mayBeUnhealthy(found: ClusterWorkload, jobEnds: JobEnds): boolean {
  return endOf(found, jobEnds) === 'unfinished' || isAbandoned(found, jobEnds);
}

function endOf({ annotations: found }: ClusterWorkload, jobEnds: JobEnds): JobEnd {
  return jobEnds.get(found[annotations.job] ?? '') ?? 'succeeded';
}

function groupUnmatched(
  versions: readonly VersionContainers[],
  matches: readonly MatchResult[],
  optionalContainers: readonly string[],
) {
  const optionalNames = new Set(optionalContainers.map(normalizeName));
  const isOptional = ({ name }: Container) =>
    optionalNames.has('*') || optionalNames.has(normalizeName(name));
  const present = new Set(versions.flatMap(({ containers }) => containers));
  const unmatched = matches.flatMap((match) => match.unmatched);
  const existing = unmatched.filter((one) => present.has(one));
  return {
    missing: uniqueNames(existing.filter((one) => !isOptional(one))),
    optional: uniqueNames(existing.filter(isOptional)),
    added: unmatched.filter((one) => !present.has(one)),
  };
}

function planReverts(moves: readonly Move[], state: NamespaceState, options: InventoryOptions): MovePlan {
  const containers = moves.flatMap(({ then }) => then ?? []);
  const plan = planContainers([{ containers, newContainers: [] }], state, options);
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

function findUnfitWorkloads(
  { workloads: cluster = [], jobEnds }: NamespaceState,
  workloads: readonly Workload[],
): string[] {
  const moved = new Set(workloads.map(({ name }) => name));
  return cluster
    .filter((found) => moved.has(pathOf(found)))
    .flatMap((found) => [
      ...found.obstacles.map((obstacle) => `${pathOf(found)}: ${obstacle}.`),
      ...(isHealthy(found) || mayBeUnhealthy(found, jobEnds) ? [] : [`${formatUnhealthy(found)}.`]),
    ]);
}

function formatUnhealthyNotices(
  { workloads: cluster = [], jobEnds }: NamespaceState,
  workloads: readonly Workload[],
): string[] {
  const moved = new Set(workloads.map(({ name }) => name));
  return cluster
    .filter((found) => moved.has(pathOf(found)) && !isHealthy(found) && mayBeUnhealthy(found, jobEnds))
    .slice(0, maxNotices)
    .map((found) =>
      truncate(
        `${formatUnhealthy(found)}. This does not block the upgrade, because a job that did not succeed has changed the workload.`,
        maxMessage,
      ),
    );
}

function formatUnhealthy(found: ClusterWorkload): string {
  return `${pathOf(found)}: is not healthy: ${[formatCounts(found), ...found.failures].join('; ')}`;
}
