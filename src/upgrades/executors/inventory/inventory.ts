// Plans which workloads an upgrade moves, and finds what blocks that. Every executor gives what it has found, and the
// rules are the same for all.
import { type Problem, maxProblems, problemsOf } from '../../../lib/errors.ts';
import { formatCount, formatList, formatNumber } from '../../../lib/format.ts';
import { truncate } from '../../../lib/text.ts';
import { type Deployment, installedContainers, installedVersions } from '../../versions/deployment.ts';
import { type Container, type Version, formatVersion } from '../../versions/manifest.ts';
import type { Move } from '../../versions/moves.ts';
import {
  type Inventory,
  type JobEnd,
  type MovePlan,
  type RepairPlan,
  type Workload,
  formatImages,
  maxWorkloads,
} from '../workloads.ts';
import { type FoundDeployment, type FoundWorkload, type ImageRecord, containerLabel } from './found.ts';
import { type MatchResult, hasImages, keyOf, matchContainers, normalizeName } from './matching.ts';
import { recognizeVersion } from './recognition.ts';

const maxNotices = 100;

const maxMessage = 2000;

export type InventoryOptions = {
  readonly parallelism: number;
  readonly imageRegistry: string | undefined;
  readonly optionalContainers: readonly string[];
};

type VersionContainers = Pick<Version, 'containers' | 'newContainers'>;

export function createInventory(state: FoundDeployment, options: InventoryOptions): Inventory {
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
    planReverts: (moves, to, present) => planReverts(moves, to, present, state, options),
    recognize: (manifest) => recognizeVersion(manifest, state, options.imageRegistry),
  };
}

type PlanOptions = {
  readonly isMoved?: (workload: Workload) => boolean;
  /** Whether the plan may heal this workload, which is not healthy. Then that does not block the plan. */
  readonly heals?: (found: FoundWorkload, moves: readonly Workload[]) => boolean;
};

/** Whether the plan gives another image to all containers that keep the workload from being healthy. */
function healsSick({ path, sickContainers }: FoundWorkload, moves: readonly Workload[]): boolean {
  const parts = moves.flatMap(({ name, parts }) => (name === path ? parts : []));
  const isReplaced = (sick: string) =>
    parts.some(({ container, image, formerImage }) => container === sick && image !== formerImage);
  return sickContainers.length > 0 && sickContainers.every(isReplaced);
}

function planContainers(
  versions: readonly VersionContainers[],
  state: FoundDeployment,
  options: InventoryOptions,
  { isMoved = () => true, heals = healsSick }: PlanOptions = {},
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
  const moved = cluster.filter((found) => names.has(found.path));
  const unhealthy = moved.filter(({ illness }) => illness !== undefined);
  const left = unhealthy.filter((found) => mayBeUnhealthy(found, state.jobEnds));
  const healed = unhealthy.filter((found) => !left.includes(found) && heals(found, workloads.flat()));
  const blocking = unhealthy.filter((found) => !left.includes(found) && !healed.includes(found));
  const { missing, optional, added } = groupUnmatched(versions, matches, options.optionalContainers);
  const { namespace } = state;
  // A list of a namespace that does not exist is empty, without an error.
  const hint = cluster.length === 0 ? ' Check that the namespace exists.' : '';
  const hasNoWorkload =
    versions.some(({ containers }) => containers.length > 0) &&
    matches.every((match) => match.workloads.length === 0) &&
    missing.length === 0;
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
        ...moved.flatMap((found) => found.obstacles.map((obstacle) => `${found.path}: ${obstacle}.`)),
      ]),
      ...clusterProblems(blocking.map(formatIllness), true),
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
      ...cutTexts(left.map((found) => `${formatIllness(found)} ${toleratedText}`)),
      ...cutTexts(healed.map((found) => `${formatIllness(found)} ${healedText}`)),
      ...cutTexts(state.templates.notices),
      ...state.notices,
    ],
  };
}

function planRepair(present: Deployment, state: FoundDeployment, options: InventoryOptions): RepairPlan {
  const { workloads: cluster = [] } = state;
  const containers = [...installedContainers(present).values()];
  const { workloads } = matchContainers(containers, cluster, new Map(), options.imageRegistry);
  const putBack = findPutBack(state);
  const differing = workloads.filter((workload) => !hasImages(workload, putBack.get(workload.name)));
  const names = differing.map(({ name }) => name);
  const tolerant = { ...options, optionalContainers: ['*'] };
  const plan = planContainers([{ containers, newContainers: [] }], state, tolerant, {
    isMoved: ({ name }) => names.includes(name),
    heals: () => true,
  });
  const count = `${formatNumber(names.length)} of ${formatCount(workloads.length, 'workload')}`;
  const drift = `${count} do not have the images of the installed version: ${formatList(names)}.`;
  return { ...plan, drift: names.length > 0 ? drift : undefined, isKnown: state.workloads !== undefined };
}

/** What rollbacks have put back, if they have succeeded, by the names of the workloads. */
function findPutBack({ workloads = [], jobEnds }: FoundDeployment) {
  const records = workloads.flatMap((found) => {
    const { path, mark } = found;
    const isKnown = mark?.direction === 'formerImage' && endOf(found, jobEnds).state === 'succeeded';
    return isKnown ? [[path, mark.formerImages] as const] : [];
  });
  return new Map(records);
}

/**
 * What the workload had before the oldest of these versions that a job has changed it from. A record counts only if its
 * job has succeeded.
 */
function findRecord(
  { mark }: FoundWorkload,
  versions: readonly string[],
  jobEnds: FoundDeployment['jobEnds'],
): ImageRecord | undefined {
  const { records = [], jobId = '', formerImages = new Map<string, string>(), direction } = mark ?? {};
  const end = jobEnds.get(jobId);
  // Before there were records, only the last job said what it had found.
  const isLegacy = records.length === 0 && direction === 'image' && end !== undefined;
  const all = isLegacy ? [{ version: end.from, jobId, images: formerImages }] : records;
  const known = all.filter((one) => jobEnds.get(one.jobId)?.state === 'succeeded');
  return versions.flatMap((version) => known.find((one) => one.version === version) ?? [])[0];
}

/** Containers whose names are not in the plan, with an image that it replaces elsewhere. */
function formatOthers(
  moved: readonly Workload[],
  planned: ReadonlyMap<string, string>,
  { workloads = [], templates }: FoundDeployment,
): string[] {
  const changes = moved.flatMap(({ parts }) => parts.filter((part) => part.image !== part.formerImage));
  const replaced = new Set(changes.map(({ formerImage }) => formerImage));
  const containers = [
    ...workloads.flatMap((found) => found.containers.map((one) => ({ ...one, path: found.path }))),
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

const changedSinceText = 'which put it back; a policy or another client has set other images';

/** Workloads that a job has changed and left behind: its store is lost, or its reverting failed. */
function formatAbandoned({ workloads = [], jobEnds }: FoundDeployment): string[] {
  return workloads
    .filter((found) => isAbandoned(found, jobEnds))
    .map((found) => {
      const { state } = endOf(found, jobEnds);
      const isChangedSince = state === 'reverted' && found.mark?.direction === 'formerImage';
      const end = isChangedSince ? changedSinceText : (endsOfAbandoned[state] ?? '');
      return `${found.path} was changed by the job ${found.mark?.jobId ?? ''}, ${end} (${found.mark?.text ?? ''}).`;
    });
}

/** Not if another client has put back the images from before the job. */
function isAbandoned(found: FoundWorkload, jobEnds: FoundDeployment['jobEnds']): boolean {
  const former = found.mark?.formerImages;
  const isChanged = found.containers.some(({ name, image }) => (former?.get(name) ?? image) !== image);
  return isChanged && endsOfAbandoned[endOf(found, jobEnds).state] !== undefined;
}

/** An interrupted rollout may leave a workload unhealthy. This does not block the upgrade that repairs it. */
function mayBeUnhealthy(found: FoundWorkload, jobEnds: FoundDeployment['jobEnds']): boolean {
  return endOf(found, jobEnds).state === 'unfinished' || isAbandoned(found, jobEnds);
}

function endOf({ mark }: FoundWorkload, jobEnds: FoundDeployment['jobEnds']): JobEnd {
  return jobEnds.get(mark?.jobId ?? '') ?? { state: 'succeeded', from: '' };
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
  present: Deployment,
  state: FoundDeployment,
  options: InventoryOptions,
): MovePlan {
  const installed = installedVersions(present).map(formatVersion);
  const undone = installed.slice(installed.indexOf(to));
  const containers = moves.flatMap(({ then }) => then ?? []);
  const plan = planContainers([{ containers, newContainers: [] }], state, options, { heals: () => true });
  const unknown = moves.filter(({ then, isNew }) => !then && !isNew).map(({ now }) => now.name);
  const problems =
    unknown.length > 0 ? [`the target version does not name the images of ${formatList(unknown)}.`] : [];
  const found = new Map(state.workloads?.map((one) => [one.path, one]));
  const workloads = plan.workloads.map((list) =>
    list.map((one) => {
      const workload = found.get(one.name);
      return swapImages(one, workload && findRecord(workload, undone, state.jobEnds));
    }),
  );
  const unrecorded = workloads.flat().filter(({ isOfVersion }) => isOfVersion);
  const { drift } = planRepair(present, state, options);
  return {
    ...plan,
    workloads,
    problems: [...plan.problems, ...clusterProblems(problems)],
    notices: [
      ...plan.notices,
      ...(drift === undefined ? [] : [drift]),
      ...cutTexts(
        unrecorded.map(
          (one) => `${one.name} gets ${formatImages(one, 'formerImage')} ${to}: ${unrecordedText}`,
        ),
      ),
    ],
  };
}

const unrecordedText = 'what it had before is not recorded.';

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

function swapImages({ parts, ...workload }: Workload, record: ImageRecord | undefined): Workload {
  const isRecorded = record !== undefined && parts.every(({ container }) => record.images.has(container));
  return {
    ...workload,
    isOfVersion: !isRecorded,
    ...(isRecorded && { record: record.version }),
    parts: parts.map(({ container, image, formerImage }) => ({
      container,
      image: formerImage ?? image,
      formerImage: (isRecorded ? record.images.get(container) : undefined) ?? image,
    })),
  };
}

const toleratedText =
  'This does not block the upgrade, because a job that did not succeed has changed the workload.';

const healedText = 'This does not block the job, because it gives the workload other images.';

function formatIllness({ path, illness = '' }: FoundWorkload): string {
  return `${path}: ${illness}.`;
}
