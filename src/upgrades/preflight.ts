// Checks an upgrade or a rollback before anything changes, and builds its plan. Finds every problem at once.
import { type Problem, maxProblems, problemsOf } from '../errors.ts';
import { formatList } from '../lib/format.ts';
import { truncate } from '../lib/text.ts';
import type { Reader } from '../store/state.ts';
import type { NewJob } from './job.ts';
import { type Version, formatVersion } from './manifest.ts';
import { maxLengths } from './manifest-links.ts';
import { type Plan, planPatches, planRelease, planRollback, skippedSteps } from './plan.ts';
import {
  type Deployment,
  afterInstalling,
  afterRollback,
  deployment,
  findVersion,
  currentManifest,
  installCheck,
  newestInstalled,
  patchesAfter,
  rollbackTargets,
} from './deployment.ts';
import { type SubmittedSettings, type SettingProblem, readSettings } from './settings.ts';
import { type Inventory, type MovePlan, maxWorkloads, movesBetween } from './workloads.ts';

export type PreparedJob = Omit<NewJob, 'id' | 'startedBy' | 'runner' | 'to'> & {
  readonly to: string | null;
  readonly problems: readonly SettingProblem[];
  readonly notices: readonly string[];
};

const emptyPlan: Plan = { steps: [], workloads: 0 };

export function prepareUpgrade(
  reader: Reader,
  id: string,
  submitted: SubmittedSettings,
  requestManifest: readonly Version[] | undefined,
  inventory: Inventory,
): PreparedJob {
  const manifest = requestManifest ?? currentManifest(reader);
  const present = reader.read(deployment);
  const from = formatVersion(newestInstalled(present));
  const base = {
    operation: 'upgrade',
    kind: 'release',
    targetId: id,
    installs: [],
    from,
    uploads: [],
  } as const;
  const noPlan = { plan: emptyPlan, after: present, notices: [] } as const;
  const target = findVersion(manifest, present, id);
  if (!target) {
    return {
      ...base,
      ...noPlan,
      to: null,
      problems: [{ field: 'versionManifest', message: noSuchVersion(id) }],
    };
  }
  const { uploads, updateToLatestPatch, problems } = readSettings(target, submitted);
  const known = { ...base, kind: target.type, uploads };
  const reasons = problemsOf('versionManifest', installCheck(manifest, present)(target));
  if (reasons.length > 0)
    return {
      ...known,
      ...noPlan,
      to: formatVersion(target),
      problems: [...reasons, ...problems].slice(0, maxProblems),
    };

  const versions = versionsToInstall(target, manifest, present, updateToLatestPatch);
  const movePlan = inventory.planMoves(versions, present);
  const tooMany = findTooManyWorkloads(movePlan);
  const planVersions = versions[0]?.type === 'release' ? planRelease : planPatches;
  const { parallelism, performers } = inventory;
  const plan = tooMany.length > 0 ? emptyPlan : planVersions(movePlan.workloads, parallelism, performers);
  return {
    ...known,
    installs: versions.map((version) => version.id),
    to: formatVersion(versions.at(-1) ?? target),
    plan,
    after: afterInstalling(present, versions),
    problems: [...tooMany, ...problems, ...movePlan.problems].slice(0, maxProblems),
    notices: listNotices(movePlan, plan),
  };
}

function listNotices({ notices }: MovePlan, plan: Plan): string[] {
  const skipped = skippedSteps(plan);
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

/** A patch needs the earlier patches of its release. */
function versionsToInstall(
  target: Version,
  manifest: readonly Version[],
  present: Deployment,
  toLatest: boolean,
): Version[] {
  if (target.type === 'release') {
    return [target, ...(toLatest ? patchesAfter(manifest, target, target.build) : [])];
  }
  const patches = patchesAfter(manifest, present.release, newestInstalled(present).build);
  return toLatest ? patches : patches.slice(0, patches.indexOf(target) + 1);
}

export function prepareRollback(reader: Reader, id: string, inventory: Inventory): PreparedJob {
  const present = reader.read(deployment);
  const from = formatVersion(newestInstalled(present));
  const base = {
    operation: 'rollback',
    kind: 'rollback',
    targetId: id,
    installs: [],
    from,
    uploads: [],
  } as const;
  const target = rollbackTargets(present).find((version) => version.id === id);
  if (!target) {
    const targets = rollbackTargets(present).map((version) => version.id);
    const allowed = targets.length > 0 ? `possible are ${formatList(targets)}` : 'no patch is installed';
    const message = `${truncate(id, maxLengths.id)} is not a rollback target; ${allowed}.`;
    return {
      ...base,
      to: null,
      plan: emptyPlan,
      after: present,
      problems: [{ field: 'versionManifest', message }],
      notices: [],
    };
  }
  const after = afterRollback(present, target);
  const movePlan = inventory.planReverts(movesBetween(present, after));
  const tooMany = findTooManyWorkloads(movePlan);
  const plan = tooMany.length > 0 ? emptyPlan : planRollback(movePlan.workloads.flat(), inventory.performers);
  return {
    ...base,
    to: formatVersion(target),
    plan,
    after,
    problems: [...tooMany, ...movePlan.problems].slice(0, maxProblems),
    notices: listNotices(movePlan, plan),
  };
}
