// Checks an upgrade or a rollback before anything changes, and builds its plan. Finds every problem at once.
import { type Problem, maxProblems, problemsOf } from '../../lib/errors.ts';
import { formatList } from '../../lib/format.ts';
import type { Runtime } from '../../lib/runtime.ts';
import { truncate } from '../../lib/text.ts';
import type { Reader } from '../../store/state.ts';
import type { NewJob } from '../jobs/job.ts';
import {
  afterRollback,
  deployment,
  findVersion,
  currentManifest,
  importedManifest,
  installCheck,
  newestInstalled,
  rollbackTargets,
} from '../versions/deployment.ts';
import { type Hop, pathTo, planHops } from '../versions/hops.ts';
import { type Version, formatVersion, maxLengths } from '../versions/manifest.ts';
import { type PlannedSteps, planRollback, planSteps } from './plan.ts';
import { type SubmittedSettings, type SettingProblem, readSettings } from './settings.ts';
import { type Inventory, type MovePlan, maxWorkloads, movesBetween } from './workloads.ts';

export type PreparedJob = Omit<NewJob, 'id' | 'startedBy' | 'runner' | 'to' | 'ignoresWindows'> & {
  readonly to: string | null;
  readonly problems: readonly SettingProblem[];
  readonly notices: readonly string[];
  /** The state from which the job was prepared. The job may start only if it is still the same. */
  readonly basis: ReturnType<typeof readBasis>;
};

function readBasis(reader: Reader) {
  return { present: reader.read(deployment), imported: reader.read(importedManifest) };
}

export function hasSameBasis(reader: Reader, { basis }: PreparedJob): boolean {
  const { present, imported } = readBasis(reader);
  return isSame(present, basis.present) && isSame(imported, basis.imported);
}

/** A release cannot be rolled back. */
export function hasRelease({ plan: { hops } }: Pick<PreparedJob, 'plan'>): boolean {
  return hops.some(({ isRelease }) => isRelease);
}

/** A value that nobody has written is the same object, unless the store has read everything again meanwhile. */
function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** Whether the same preparation may succeed later: an autoscaler may start or end a pod at any time. */
export function mayPass({ problems }: PreparedJob): boolean {
  return problems.length > 0 && problems.every(({ isTransient }) => isTransient === true);
}

/** Repeats a preparation for a few seconds, because a caller waits. */
export async function prepareWithPatience(
  { now, sleep }: Pick<Runtime, 'now' | 'sleep'>,
  prepare: () => Promise<PreparedJob>,
): Promise<PreparedJob> {
  for (const until = now() + 5_000; ; await sleep(1_000)) {
    const prepared = await prepare();
    if (!mayPass(prepared) || now() >= until) return prepared;
  }
}

const noSteps: PlannedSteps = { steps: [], workloads: 0 };
const noPlan = { plan: { ...noSteps, hops: [] }, notices: [] } as const;

function jobFrom(reader: Reader, targetId: string) {
  const from = formatVersion(newestInstalled(reader.read(deployment)));
  return { targetId, from, uploads: [], basis: readBasis(reader) };
}

export function prepareUpgrade(
  reader: Reader,
  id: string,
  submitted: SubmittedSettings,
  requestManifest: readonly Version[] | undefined,
  inventory: Inventory,
): PreparedJob {
  const manifest = requestManifest ?? currentManifest(reader);
  const present = reader.read(deployment);
  const base = { ...jobFrom(reader, id), operation: 'upgrade', kind: 'release' } as const;
  const target = findVersion(manifest, present, id);
  if (!target) {
    return {
      ...base,
      ...noPlan,
      to: null,
      problems: [{ field: 'versionManifest', message: noSuchVersion(id) }],
    };
  }
  const repair = id === newestInstalled(present).id && inventory.planRepair(present);
  if (repair && repair.drift !== undefined) {
    const { from } = base;
    const move = { isRelease: false, workloads: repair.workloads };
    const hop = { from, to: from, installs: [], isRelease: false, after: present };
    const movePlan = { ...repair, notices: [repair.drift, ...repair.notices] };
    const build = () => planSteps([move], inventory.parallelism, inventory.performers);
    return { ...base, kind: 'patch', to: from, ...planJob(movePlan, [hop], build) };
  }
  const path = pathTo(manifest, present, target);
  const { uploads, updateToLatestPatch, problems } = readSettings(path ?? [target], submitted);
  const known = { ...base, kind: path && path.length > 1 ? ('release' as const) : target.type, uploads };
  if (!path) {
    const reasons = problemsOf('versionManifest', installCheck(manifest, present)(target));
    return {
      ...known,
      ...noPlan,
      to: formatVersion(target),
      problems: [...reasons, ...problems].slice(0, maxProblems),
    };
  }

  const { hops, versions } = planHops(path, manifest, present, updateToLatestPatch);
  const movePlan = inventory.planMoves(versions, present);
  const build = () => planAllHops(hops, movePlan, inventory);
  return {
    ...known,
    to: hops.at(-1)?.to ?? formatVersion(target),
    ...planJob(movePlan, hops, build, problems),
  };
}

/** The plan, and what blocks it. A plan with too many workloads has no steps. */
function planJob(
  movePlan: MovePlan,
  hops: readonly Hop[],
  build: () => PlannedSteps,
  problems: readonly SettingProblem[] = [],
): Pick<PreparedJob, 'plan' | 'problems' | 'notices'> {
  const tooMany = findTooManyWorkloads(movePlan);
  const steps = tooMany.length > 0 ? noSteps : build();
  return {
    plan: { ...steps, hops },
    problems: [...tooMany, ...problems, ...movePlan.problems].slice(0, maxProblems),
    notices: listNotices(movePlan, steps),
  };
}

function planAllHops(hops: readonly Hop[], { workloads }: MovePlan, inventory: Inventory): PlannedSteps {
  let index = 0;
  const moves = hops.map(({ isRelease, installs }) => {
    const ofHop = workloads.slice(index, index + installs.length);
    index += installs.length;
    return { isRelease, workloads: ofHop };
  });
  return planSteps(moves, inventory.parallelism, inventory.performers);
}

function listNotices({ notices }: MovePlan, { steps }: PlannedSteps): string[] {
  const skipped = [...new Set(steps.flatMap(({ performedBy, id }) => (performedBy === 'nobody' ? id : [])))];
  const notice = `These steps have no step template and are skipped: ${formatList(skipped)}.`;
  return [...notices.slice(0, maxProblems), ...(skipped.length > 0 ? [notice] : [])];
}

function findTooManyWorkloads({ workloads }: MovePlan): Problem[] {
  const count = workloads.reduce((sum, { length }) => sum + length, 0);
  const message = `needs more than ${maxWorkloads} updates of workloads, which is the limit of one job.`;
  return count > maxWorkloads ? [{ field: 'versionManifest', message }] : [];
}

export function noSuchVersion(id: string): string {
  return `there is no version with the id ${truncate(id, maxLengths.id)}.`;
}

export function prepareRollback(reader: Reader, id: string, inventory: Inventory): PreparedJob {
  const present = reader.read(deployment);
  const base = { ...jobFrom(reader, id), operation: 'rollback', kind: 'rollback' } as const;
  const target = rollbackTargets(present).find((version) => version.id === id);
  if (!target) {
    const targets = rollbackTargets(present).map((version) => version.id);
    const allowed = targets.length > 0 ? `possible are ${formatList(targets)}` : 'no patch is installed';
    const message = `${truncate(id, maxLengths.id)} is not a rollback target; ${allowed}.`;
    return { ...base, ...noPlan, to: null, problems: [{ field: 'versionManifest', message }] };
  }
  const after = afterRollback(present, target);
  const to = formatVersion(target);
  const movePlan = inventory.planReverts(movesBetween(present, after), to);
  const hop = { from: base.from, to, installs: [], isRelease: false, after };
  const build = () => planRollback(movePlan.workloads.flat(), inventory.performers);
  return { ...base, to, ...planJob(movePlan, [hop], build) };
}
