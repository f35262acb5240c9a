// Upgrades over several versions: the path to a version, and its hops. A hop is a release with the patches that the job
// installs on it, or the patches of the installed release that come first.
import type { Reader } from '../../store/state.ts';
import {
  type Deployment,
  afterInstalling,
  currentManifest,
  deployment,
  findVersion,
  installCheck,
  installedVersions,
  newestInstalled,
  patchesAfter,
} from './deployment.ts';
import { type Version, formatVersion } from './manifest.ts';

/** Paths of a manifest that is a long chain would be very large. */
const maxHops = 100;

export type Hop = {
  readonly from: string;
  readonly to: string;
  /** The ids of the versions that it installs. The first one is a release, or all are patches. */
  readonly installs: readonly string[];
  readonly isRelease: boolean;
  /** What is installed when it is finished. */
  readonly after: Deployment;
};

type Reachable = { readonly version: Version; readonly path: readonly Version[] };

/**
 * Every version that the links lead to, with the versions that an upgrade to it installs one after another. The
 * patches of each release come before the releases that follow it.
 */
export function reachableVersions(manifest: readonly Version[], present: Deployment): Reachable[] {
  const installed = new Set(installedVersions(present).map(({ id }) => id));
  const isNew = ({ id }: Version) => !installed.has(id);
  const found: Reachable[] = [];
  const follow = (release: Version, build: string, path: readonly Version[]) => {
    const patches = patchesAfter(manifest, release, build).filter(isNew);
    const mandatory = patches.filter(({ isMandatoryUpdate }) => isMandatoryUpdate).slice(-1);
    found.push(...patches.map((patch) => ({ version: patch, path: [...path, patch] })));
    for (const version of releasesAfter(manifest, release).filter(isNew)) {
      const pathThere = [...path, ...mandatory, version];
      found.push({ version, path: pathThere });
      follow(version, version.build, pathThere);
    }
  };
  follow(present.release, newestInstalled(present).build, []);
  return found;
}

function releasesAfter(manifest: readonly Version[], { build }: Version): Version[] {
  return manifest.filter(
    ({ type, previousReleaseBuild }) => previousReleaseBuild === build && type === 'release',
  );
}

/** Undefined if no path of at most `maxHops` versions leads to the target. */
export function pathTo(
  manifest: readonly Version[],
  present: Deployment,
  target: Version,
): readonly Version[] | undefined {
  const found = reachableVersions(manifest, present).find(({ version }) => version.id === target.id);
  return found && found.path.length <= maxHops ? found.path : undefined;
}

/** The versions whose settings an upgrade to this one needs. Empty if there is no such version. */
export function findPath(
  manifest: readonly Version[],
  present: Deployment | null,
  id: string,
): readonly Version[] {
  const target = findVersion(manifest, present, id);
  return target ? ((present && pathTo(manifest, present, target)) ?? [target]) : [];
}

/** The same without a repair of the installed version, which needs none. */
export function findPathToInstall(
  manifest: readonly Version[],
  present: Deployment | null,
  id: string,
): readonly Version[] {
  return installedVersions(present).at(-1)?.id === id ? [] : findPath(manifest, present, id);
}

/** The hops, and all versions that they install. Leaves out versions that came along with an earlier hop. */
export function planHops(
  path: readonly Version[],
  manifest: readonly Version[],
  present: Deployment,
  toLatest: boolean,
): { readonly hops: readonly Hop[]; readonly versions: readonly Version[] } {
  const hops: Hop[] = [];
  const versions: Version[] = [];
  let before = present;
  for (const target of path) {
    if (installedVersions(before).some(({ id }) => id === target.id)) continue;
    const added = versionsToInstall(target, manifest, before, toLatest);
    const isRelease = target.type === 'release';
    const begun = isRelease ? undefined : hops.pop();
    const from = formatVersion(newestInstalled(before));
    before = afterInstalling(before, added);
    hops.push({
      ...(begun ?? { from, isRelease }),
      installs: [...(begun?.installs ?? []), ...added.map(({ id }) => id)],
      to: formatVersion(newestInstalled(before)),
      after: before,
    });
    versions.push(...added);
  }
  return { hops, versions };
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
  /** Empty if it is too long. */
  readonly path: readonly string[];
};

/** Empty if the installed version is not known. */
export function availableVersions(reader: Reader): AvailableVersion[] {
  const manifest = currentManifest(reader);
  const present = reader.read(deployment);
  if (!present) return [];
  const reasonsNotToInstall = installCheck(manifest, present);
  return reachableVersions(manifest, present).map(({ version, path }) => ({
    version,
    reasons: reasonsNotToInstall(version),
    path: path.length > maxHops ? [] : path.map(({ id }) => id),
  }));
}

/** The last version of the manifest that an upgrade can install, in one hop or several. */
export function newestReachable(reader: Reader): AvailableVersion | undefined {
  return availableVersions(reader).findLast(({ path }) => path.length > 0);
}
