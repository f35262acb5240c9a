// Upgrades over several versions: the path to a version, and its hops. A hop is a release with the patches that the job
// installs on it, or the patches of the installed release that come first.
import type { Reader } from '../../store/state.ts';
import {
  type Deployment,
  afterInstalling,
  createPatchFinder,
  currentManifest,
  deployment,
  findVersion,
  installCheck,
  installedVersions,
  newestInstalled,
  patchesAfter,
  reachableVersions,
} from './deployment.ts';
import { type Version, formatVersion } from './manifest.ts';

/** Paths of a manifest that is a long chain would be very large. */
export const maxHops = 100;

export type Hop = {
  readonly target: Version;
  /** The release and its patches, or patches. */
  readonly versions: readonly Version[];
  readonly from: string;
  readonly to: string;
  readonly after: Deployment;
};

/** Returns a function for many versions, because they share what is read from the manifest. */
export function createPathFinder(
  manifest: readonly Version[],
  present: Deployment,
): (target: Version) => readonly Version[] | undefined {
  const releases = new Map(
    manifest.filter(({ type }) => type === 'release').map((release) => [release.build, release]),
  );
  const installed = new Set(installedVersions(present).map(({ id }) => id));
  const known = new Map<Version, readonly Version[]>();

  const findPatches = createPatchFinder(manifest);
  const knownPatches = new Map<Version, ReadonlySet<Version>>();
  function patchesOf(release: Version): ReadonlySet<Version> {
    const build = release === present.release ? newestInstalled(present).build : release.build;
    const found = knownPatches.get(release) ?? new Set(findPatches(release, build));
    knownPatches.set(release, found);
    return found;
  }
  const releaseOf = (build: string | undefined) =>
    build === present.release.build ? present.release : build === undefined ? undefined : releases.get(build);

  /** The path to a release and to the mandatory patches that the next release needs. */
  function pathThrough(release: Version): readonly Version[] {
    const before = known.get(release) ?? [];
    const mandatory = [...patchesOf(release)].findLast((patch) => patch.isMandatoryUpdate);
    return mandatory ? [...before, mandatory] : before;
  }

  /**
   * Follows the links back to a release whose path is known. A loop, because 2,000 nested calls exceed the call
   * stack.
   */
  function findPathToRelease(target: Version): readonly Version[] | undefined {
    const ahead: Version[] = [];
    let release: Version | undefined = target;
    while (release && release !== present.release && !known.has(release)) {
      if (ahead.length >= maxHops || installed.has(release.id)) return undefined;
      ahead.unshift(release);
      release = releaseOf(release.previousReleaseBuild);
    }
    if (!release) return undefined;
    let previous = release;
    for (const next of ahead) {
      const path = [...pathThrough(previous), next];
      if (path.length > maxHops) return undefined;
      known.set(next, path);
      previous = next;
    }
    return known.get(target) ?? [];
  }

  return (target) => {
    if (installed.has(target.id)) return undefined;
    const release = target.type === 'release' ? target : releaseOf(target.releaseBuild);
    const path = release && findPathToRelease(release);
    if (!path || path.length > maxHops) return undefined;
    if (release === target) return path;
    return patchesOf(release).has(target) ? [...path, target] : undefined;
  };
}

/** The versions whose settings an upgrade to this one needs. Empty if there is no such version. */
export function findPath(manifest: readonly Version[], present: Deployment, id: string): readonly Version[] {
  const target = findVersion(manifest, present, id);
  return target ? (createPathFinder(manifest, present)(target) ?? [target]) : [];
}

/** Leaves out versions that came along with an earlier hop. */
export function planHops(
  path: readonly Version[],
  manifest: readonly Version[],
  present: Deployment,
  toLatest: boolean,
): Hop[] {
  const hops: Hop[] = [];
  let before = present;
  for (const target of path) {
    if (installedVersions(before).some(({ id }) => id === target.id)) continue;
    const versions = versionsToInstall(target, manifest, before, toLatest);
    const after = afterInstalling(before, versions);
    const to = formatVersion(newestInstalled(after));
    const last = hops.at(-1);
    if (target.type === 'patch' && last)
      hops.splice(-1, 1, { ...last, versions: [...last.versions, ...versions], to, after });
    else hops.push({ target, versions, from: formatVersion(newestInstalled(before)), to, after });
    before = after;
  }
  return hops;
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

type AvailableVersion = {
  readonly version: Version;
  /** Why it cannot be installed in one hop. */
  readonly reasons: readonly string[];
  /** Empty if there are too many hops. */
  readonly path: readonly string[];
};

export function availableVersions(reader: Reader): AvailableVersion[] {
  const manifest = currentManifest(reader);
  const present = reader.read(deployment);
  const reasonsNotToInstall = installCheck(manifest, present);
  const pathTo = createPathFinder(manifest, present);
  return reachableVersions(manifest, present).map((version) => ({
    version,
    reasons: reasonsNotToInstall(version),
    path: (pathTo(version) ?? []).map(({ id }) => id),
  }));
}

/** The last version of the manifest that an upgrade can install, in one hop or several. */
export function newestReachable(reader: Reader): AvailableVersion | undefined {
  return availableVersions(reader).findLast(({ path }) => path.length > 0);
}
