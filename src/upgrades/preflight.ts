// Everything that is checked before anything changes, all problems at once (contract 6).
import type { Reader } from '../store/transaction.ts';
import type { NewJob } from './job.ts';
import { type Version, labelOf } from './manifest.ts';
import { type Plan, planPatches, planRelease, planRollback } from './plan.ts';
import {
  afterInstalling,
  afterRollback,
  deployment,
  installedVersions,
  manifestOf,
  newestInstalled,
  patchesAfter,
  reasonsAgainst,
  rollbackTargets,
} from './releases.ts';
import { type Given, readSettings } from './settings.ts';

/** A job that could be started, or what it would be but for its problems. */
export type Prepared = Omit<NewJob, 'id' | 'startedBy' | 'to'> & {
  readonly to: string | null;
  readonly problems: readonly string[];
};

const nothing: Plan = { steps: [], workloads: 0 };

/** `manifest` is what came with the request, where something did. */
export function prepareUpgrade(
  reader: Reader,
  id: string,
  given: Given,
  manifest = manifestOf(reader),
): Prepared {
  const present = reader.read(deployment);
  const from = labelOf(newestInstalled(present));
  const base = {
    operation: 'upgrade',
    kind: 'release',
    targetId: id,
    from,
    uploads: [],
    plan: nothing,
    after: present,
  } as const;
  const target = [...manifest, ...installedVersions(present)].find((version) => version.id === id);
  if (!target)
    return { ...base, to: null, problems: [`versionManifest: there is no version with the id ${id}.`] };

  const reasons = reasonsAgainst(target, manifest, present).map((reason) => `versionManifest: ${reason}`);
  const settings = readSettings(target, given);
  const problems = [...reasons, ...settings.problems];
  const installs = versionsToInstall(
    target,
    manifest,
    present.release,
    newestInstalled(present).build,
    settings.updateToLatestPatch,
  );
  const to = labelOf(installs.at(-1) ?? target);
  const { uploads } = settings;
  if (reasons.length > 0) return { ...base, kind: target.type, to, uploads, problems };
  const [first, ...others] = installs;
  const plan =
    first?.type === 'release' ? planRelease(first, others, present) : planPatches(installs, present);
  return {
    ...base,
    kind: target.type,
    to,
    uploads,
    plan,
    after: afterInstalling(present, installs),
    problems,
  };
}

/** A patch brings the earlier ones along; with updateToLatestPatch the later ones come too. */
function versionsToInstall(
  target: Version,
  manifest: readonly Version[],
  release: Version,
  build: string,
  toLatest: boolean,
): Version[] {
  if (target.type === 'release')
    return [target, ...(toLatest ? patchesAfter(manifest, target, target.build) : [])];
  const patches = patchesAfter(manifest, release, build);
  return toLatest ? patches : patches.slice(0, patches.indexOf(target) + 1);
}

/** Back to an earlier patch of the installed release, or to the release without patches. */
export function prepareRollback(reader: Reader, id: string): Prepared {
  const present = reader.read(deployment);
  const from = labelOf(newestInstalled(present));
  const base = { operation: 'rollback', kind: 'rollback', targetId: id, from, uploads: [] } as const;
  const target = rollbackTargets(present).find((version) => version.id === id);
  if (!target) {
    const targets = rollbackTargets(present).map((version) => version.id);
    const allowed = targets.length > 0 ? `possible are ${targets.join(', ')}` : 'no patch is installed';
    return {
      ...base,
      to: null,
      plan: nothing,
      after: present,
      problems: [`versionManifest: ${id} is nothing to go back to; ${allowed}.`],
    };
  }
  const after = afterRollback(present, target);
  return { ...base, to: labelOf(target), plan: planRollback(present, after), after, problems: [] };
}
