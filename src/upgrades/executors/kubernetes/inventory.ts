// Plans which workloads of a namespace an upgrade moves, and finds what blocks that. The containers of a version match
// containers of workloads: by the name of a container, or by the label of a workload.
import { groupBy } from '../../../lib/collections.ts';
import { type Problem, maxProblems, problemsOf } from '../../../lib/errors.ts';
import { formatCount, formatList, formatNumber } from '../../../lib/format.ts';
import { truncate } from '../../../lib/text.ts';
import {
  componentOf,
  type Inventory,
  type JobEnd,
  maxWorkloads,
  type Move,
  type MovePlan,
  type RepairPlan,
  type Workload,
  type WorkloadContainer,
} from '../workloads.ts';
import { freshRelease } from '../../versions/built-in-manifest.ts';
import { type Deployment, installedContainers } from '../../versions/deployment.ts';
import type { Container, Version } from '../../versions/manifest.ts';
import { findImageProblem, locateImage, nameOfImage, pinImage } from '../images/image.ts';
import { type JobEnds, type NamespaceOptions, type NamespaceState, readNamespace } from './namespace.ts';
import { annotations, parseImages, states } from './patch.ts';
import { formatCounts, isHealthy } from './rollout.ts';
import { type ClusterContainer, type ClusterWorkload, pathOf } from './workload.ts';

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
    templates: state.templates.workloads,
    planMoves: (versions, present) => {
      const plan = planContainers(versions, state, options);
      const { drift } = planRepair(present, state, options);
      return drift === undefined ? plan : { ...plan, notices: [...plan.notices, drift] };
    },
    planRepair: (present) => planRepair(present, state, options),
    planReverts: (moves, to) => planReverts(moves, to, state, options),
  };
}

function planContainers(
  versions: readonly VersionContainers[],
  state: NamespaceState,
  options: InventoryOptions,
  isMoved: (workload: Workload) => boolean = () => true,
): MovePlan {
  const { workloads: cluster } = state;
  if (!cluster)
    return {
      workloads: versions.map(() => []),
      problems: clusterProblems(state.problems, state.isUnavailable),
      notices: state.notices,
    };
  const planned = new Map<string, string>();
  const matches: MatchResult[] = [];
  let count = 0;
  for (const { containers, newContainers } of versions) {
    const match = matchContainers([...containers, ...newContainers], cluster, planned, options.imageRegistry);
    matches.push(match);
    count += match.workloads.length;
    // The preflight refuses such a plan.
    if (count > maxWorkloads) break;
  }
  const workloads = matches.map((match) => match.workloads.filter(isMoved));
  const names = new Set(workloads.flat().map(({ name }) => name));
  const moved = cluster.filter((found) => names.has(pathOf(found)));
  const { missing, optional, added } = groupUnmatched(versions, matches, options.optionalContainers);
  const { namespace } = options.connection;
  // A list of a namespace that does not exist is empty, without an error.
  const hint = cluster.length === 0 ? ' Check that the namespace exists.' : '';
  const hasNoWorkload =
    versions.some(({ containers }) => containers.length > 0) && names.size === 0 && missing.length === 0;
  return {
    workloads,
    problems: [
      ...clusterProblems([
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
        ...moved.flatMap((found) => found.obstacles.map((obstacle) => `${pathOf(found)}: ${obstacle}.`)),
      ]),
      ...clusterProblems(findUnhealthy(moved, state.jobEnds, false), true),
    ],
    notices: [
      ...(optional.length > 0 ? [`Optional containers that no workload has: ${formatList(optional)}.`] : []),
      ...cutTexts(
        added.map(
          ({ name, image }) =>
            `${name} (${image}) is new and no workload has it: Steward does not create one.`,
        ),
      ),
      ...cutTexts(formatOthers(workloads.flat(), planned, state)),
      ...cutTexts(formatAbandoned(state)),
      ...cutTexts(findUnhealthy(moved, state.jobEnds, true).map((text) => `${text} ${toleratedText}`)),
      ...cutTexts(state.templates.notices),
      ...state.notices,
    ],
  };
}

/** The images of the first release may be others: it was there before Steward. */
function planRepair(present: Deployment, state: NamespaceState, options: InventoryOptions): RepairPlan {
  const { workloads: cluster = [] } = state;
  const isAssumed = present.release.id === freshRelease.id;
  const release = isAssumed ? { ...freshRelease, containers: [], newContainers: [] } : present.release;
  const containers = [...installedContainers({ ...present, release }).values()];
  const { workloads } = matchContainers(containers, cluster, new Map(), options.imageRegistry);
  const putBack = findRecords(state, states.formerImage);
  const differing = workloads.filter((workload) => !hasImages(workload, putBack.get(workload.name)));
  const names = differing.map(({ name }) => name);
  const tolerant = { ...options, optionalContainers: ['*'] };
  const plan = planContainers([{ containers, newContainers: [] }], state, tolerant, ({ name }) =>
    names.includes(name),
  );
  const count = `${formatNumber(names.length)} of ${formatCount(workloads.length, 'workload')}`;
  const drift = `${count} do not have the images of the installed version: ${formatList(names)}.`;
  return { ...plan, drift: names.length > 0 ? drift : undefined, isKnown: state.workloads !== undefined };
}

/** An image that is also pinned by its digest is the same. So is one that a rollback has put back. */
function hasImages({ parts }: Workload, putBack?: ReadonlyMap<string, string>): boolean {
  return parts.every(
    ({ container, image, formerImage: present }) =>
      present === image || present?.startsWith(`${image}@`) || present === putBack?.get(container),
  );
}

/** The former images that jobs have recorded, if they have succeeded, by the names of the workloads. */
function findRecords({ workloads = [], jobEnds }: NamespaceState, wanted: string, from?: string) {
  const records = workloads.flatMap((found) => {
    const { [annotations.state]: is, [annotations.formerImages]: images } = found.annotations;
    const end = endOf(found, jobEnds);
    const isKnown = is === wanted && end.state === 'succeeded' && end.from === (from ?? end.from);
    return isKnown ? [[pathOf(found), parseImages(images)] as const] : [];
  });
  return new Map(records);
}

/** Containers whose names are not in the plan, with an image that it replaces elsewhere. */
function formatOthers(
  moved: readonly Workload[],
  planned: ReadonlyMap<string, string>,
  { workloads = [], templates }: NamespaceState,
): string[] {
  const changes = moved.flatMap(({ parts }) => parts.filter((part) => part.image !== part.formerImage));
  const replaced = new Set(changes.map(({ formerImage }) => formerImage));
  const containers = [
    ...workloads.flatMap((found) => found.containers.map((one) => ({ ...one, path: pathOf(found) }))),
    ...templates.workloads.flatMap(({ name: path, parts }) =>
      parts.map(({ container: name, image }) => ({ name, image, path })),
    ),
  ];
  return containers
    .filter(({ path, name, image }) => replaced.has(image) && !planned.has(keyOf(path, name)))
    .map(
      ({ path, name, image }) => `${path}: its container ${name} also uses the image ${image}, and keeps it.`,
    );
}

const endsOfAbandoned: Readonly<Partial<Record<JobEnd['state'], string>>> = {
  unknown: 'which this Steward does not know',
  reverted: 'which did not put it back',
};

/** Workloads that a job has changed and left behind: its store is lost, or its reverting failed. */
function formatAbandoned({ workloads = [], jobEnds }: NamespaceState): string[] {
  const { job, state, formerImages } = annotations;
  return workloads
    .filter((found) => isAbandoned(found, jobEnds))
    .map((found) => {
      const { [job]: id = '', [state]: is = '', [formerImages]: former = '' } = found.annotations;
      const end = endsOfAbandoned[endOf(found, jobEnds).state] ?? '';
      return `${pathOf(found)} was changed by the job ${id}, ${end} (${state}: ${is}; ${formerImages}: ${former}).`;
    });
}

/** Not if another client has put back the images from before the job. */
function isAbandoned(found: ClusterWorkload, jobEnds: JobEnds): boolean {
  const former = parseImages(found.annotations[annotations.formerImages]);
  const isChanged = found.containers.some(({ name, image }) => (former.get(name) ?? image) !== image);
  return isChanged && endsOfAbandoned[endOf(found, jobEnds).state] !== undefined;
}

/** An interrupted rollout may leave a workload unhealthy. This does not block the upgrade that repairs it. */
function mayBeUnhealthy(found: ClusterWorkload, jobEnds: JobEnds): boolean {
  return endOf(found, jobEnds).state === 'unfinished' || isAbandoned(found, jobEnds);
}

function endOf({ annotations: found }: ClusterWorkload, jobEnds: JobEnds): JobEnd {
  return jobEnds.get(found[annotations.job] ?? '') ?? { state: 'succeeded', from: '' };
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

function planReverts(
  moves: readonly Move[],
  to: string,
  state: NamespaceState,
  options: InventoryOptions,
): MovePlan {
  // A newer job may have recorded the images of a version in between.
  const recorded = findRecords(state, states.image, to);
  const containers = moves.flatMap(({ then }) => then ?? []);
  const plan = planContainers([{ containers, newContainers: [] }], state, options);
  const unknown = moves.filter(({ then, isNew }) => !then && !isNew).map(({ now }) => now.name);
  const problems =
    unknown.length > 0 ? [`the target version does not name the images of ${formatList(unknown)}.`] : [];
  return {
    ...plan,
    workloads: plan.workloads.map((list) => list.map((one) => swapImages(one, recorded.get(one.name)))),
    problems: [...plan.problems, ...clusterProblems(problems)],
  };
}

function uniqueNames(containers: readonly Container[]): string[] {
  return [...new Set(containers.map(({ name }) => name))];
}

/** The texts contain names and messages from the cluster, which may be long. */
function cutTexts(texts: readonly string[], max = maxNotices): string[] {
  return texts.slice(0, max).map((text) => truncate(text, maxMessage));
}

function clusterProblems(messages: readonly string[], isTransient = false): Problem[] {
  const texts = cutTexts(messages, maxProblems);
  return problemsOf('cluster', texts).map((problem) => (isTransient ? { ...problem, isTransient } : problem));
}

function swapImages({ parts, ...workload }: Workload, recorded?: ReadonlyMap<string, string>): Workload {
  const isOfVersion = !parts.every(({ container }) => recorded?.has(container));
  return {
    ...workload,
    isOfVersion,
    parts: parts.map(({ container, image, formerImage }) => ({
      container,
      image: formerImage ?? image,
      formerImage: (isOfVersion ? undefined : recorded?.get(container)) ?? image,
    })),
  };
}

const toleratedText =
  'This does not block the upgrade, because a job that did not succeed has changed the workload.';

function findUnhealthy(moved: readonly ClusterWorkload[], jobEnds: JobEnds, isTolerated: boolean): string[] {
  return moved
    .filter((found) => !isHealthy(found) && mayBeUnhealthy(found, jobEnds) === isTolerated)
    .map((found) => {
      const { wanted, updated, available, failures } = found;
      const what = Math.min(updated, available) > wanted ? 'has pods that are to end' : 'is not healthy';
      return `${pathOf(found)}: ${what}: ${[formatCounts(found), ...failures].join('; ')}.`;
    });
}

const containerLabel = 'steward/container';

type MatchResult = {
  readonly workloads: readonly Workload[];
  readonly unmatched: readonly Container[];
  readonly problems: readonly string[];
};

/** Adds the images of the version to `planned`, so that the next version starts from them. */
export function matchContainers(
  wanted: readonly Container[],
  cluster: readonly ClusterWorkload[],
  planned: Map<string, string>,
  registry: string | undefined,
): MatchResult {
  const workloads = new Map<string, { component: string; parts: Map<string, WorkloadContainer> }>();
  const matchedBy = new Map<string, string>();
  const unmatched: Container[] = [];
  const problems: string[] = [];

  function addPart(found: ClusterWorkload, target: ClusterContainer, container: Container): void {
    const path = pathOf(found);
    const key = keyOf(path, target.name);
    const formerImage = planned.get(key) ?? target.image;
    const image = pinImage(locateImage(container.image, formerImage, registry), container.checksum);
    const workload = workloads.get(path) ?? {
      component: componentOf(container.name),
      parts: new Map<string, WorkloadContainer>(),
    };
    workloads.set(path, workload);
    const earlier = workload.parts.get(target.name);
    if (earlier && earlier.image !== image) {
      problems.push(
        `${path}: ${matchedBy.get(key) ?? ''} and ${container.name} both match the container ${target.name}.`,
      );
      return;
    }
    matchedBy.set(key, container.name);
    workload.parts.set(target.name, { container: target.name, image, formerImage });
  }

  const byName = indexByName(cluster);
  for (const container of withoutRepeats(wanted)) {
    if (problems.length >= maxProblems) break;
    const imageProblem = findImageProblem(container.image, container.checksum);
    if (imageProblem !== undefined) problems.push(`${container.name}: ${imageProblem}`);
    const candidates = [...(byName.get(normalizeName(container.name)) ?? [])];
    for (const found of candidates) {
      const targets = selectContainers(found, container);
      for (const target of targets) addPart(found, target, container);
      if (targets.length === 0)
        problems.push(
          `${pathOf(found)}: has the label ${containerLabel}=${container.name}, but several containers, none of that name.`,
        );
    }
    if (candidates.length === 0) unmatched.push(container);
  }
  for (const [path, { parts }] of workloads)
    for (const { container, image } of parts.values()) planned.set(keyOf(path, container), image);
  return {
    workloads: [...workloads].map(([name, { component, parts }]) => ({
      name,
      component,
      parts: [...parts.values()],
    })),
    unmatched,
    problems,
  };
}

/** A manifest may repeat a container any number of times, and each may match every workload. */
function withoutRepeats(wanted: readonly Container[]): Container[] {
  const groups = groupBy(wanted, ({ name, image, checksum }) =>
    JSON.stringify([normalizeName(name), image, checksum]),
  );
  return [...groups.values()].flatMap(([first]) => first ?? []);
}

const keyOf = (path: string, container: string) => `${path} ${container}`;

/** Kubernetes allows neither capitals nor underscores in the name of a container, but manifests have both. */
function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

function indexByName(cluster: readonly ClusterWorkload[]): ReadonlyMap<string, ReadonlySet<ClusterWorkload>> {
  const index = new Map<string, Set<ClusterWorkload>>();
  for (const found of cluster) {
    const label = found.labels[containerLabel];
    const names = [...found.containers.map(({ name }) => name), ...(label === undefined ? [] : [label])];
    for (const name of names.map(normalizeName)) index.set(name, (index.get(name) ?? new Set()).add(found));
  }
  return index;
}

/**
 * A label selects a workload, not a container. If no container has that name, those with the same image match, and
 * so does the only container that is not an init container. The result is empty if the choice is ambiguous.
 */
function selectContainers({ containers }: ClusterWorkload, wanted: Container): readonly ClusterContainer[] {
  const named = containers.filter(({ name }) => normalizeName(name) === normalizeName(wanted.name));
  if (named.length > 0) return named;
  const isOnly = containers.filter(({ isInit }) => !isInit).length === 1;
  const hasImage = ({ image }: ClusterContainer) => nameOfImage(image) === nameOfImage(wanted.image);
  return containers.filter((one) => hasImage(one) || (isOnly && !one.isInit));
}
