// The installed versions, and which versions can be installed or rolled back to from there.
import type { Cell, Reader } from '../store/transaction.ts';
import { builtInManifest, freshRelease } from './built-in-manifest.ts';
import { type Container, type Version, formatVersion } from './manifest.ts';

/** The installed release and its installed patches, oldest first. */
export type Deployment = { readonly release: Version; readonly patches: readonly Version[] };

export const deployment: Cell<Deployment> = {
  name: 'deployment',
  initial: { release: freshRelease, patches: [] },
};

export type ImportedManifest = { readonly versions: readonly Version[]; readonly importedAt: number };

export const importedManifest: Cell<ImportedManifest | null> = { name: 'importedManifest', initial: null };

/** The imported manifest, or the built-in one if none is imported. */
export function currentManifest(reader: Reader): readonly Version[] {
  return reader.read(importedManifest)?.versions ?? builtInManifest;
}

export function installedVersions({ release, patches }: Deployment): readonly Version[] {
  return [release, ...patches];
}

export function newestInstalled({ release, patches }: Deployment): Version {
  return patches.at(-1) ?? release;
}

/** Searches the manifest and the installed versions. */
export function findVersion(
  manifest: readonly Version[],
  present: Deployment,
  id: string,
): Version | undefined {
  return [...manifest, ...installedVersions(present)].find((version) => version.id === id);
}

export function isInstalled(id: string, present: Deployment): boolean {
  return installedVersions(present).some((version) => version.id === id);
}

/** The patches of a release that follow `build`, in the order of their links. */
export function patchesAfter(manifest: readonly Version[], release: Version, build: string): Version[] {
  const patches = manifest.filter(
    ({ type, releaseBuild }) => type === 'patch' && releaseBuild === release.build,
  );
  const byPrevious = new Map(patches.map((patch) => [patch.previousBuild, patch]));
  const found = new Set<Version>();
  for (let next = byPrevious.get(build); next && !found.has(next); next = byPrevious.get(next.build))
    found.add(next);
  return [...found];
}

/**
 * Every version that can be reached from the installed one: the next patches, then each release that follows, with its patches and
 * the releases after it.
 */
export function reachableVersions(manifest: readonly Version[], present: Deployment): Version[] {
  const releasesAfter = (release: Version): Version[] =>
    manifest
      .filter((version) => version.type === 'release' && version.previousReleaseBuild === release.build)
      .filter((version) => !isInstalled(version.id, present))
      .flatMap((next) => [next, ...patchesAfter(manifest, next, next.build), ...releasesAfter(next)]);
  const { release } = present;
  return [...patchesAfter(manifest, release, newestInstalled(present).build), ...releasesAfter(release)];
}

/** Why a version cannot be installed now; empty if it can. */
export function reasonsNotToInstall(
  version: Version,
  manifest: readonly Version[],
  present: Deployment,
): string[] {
  const { release } = present;
  if (isInstalled(version.id, present)) return [`${formatVersion(version)} is installed already.`];
  if (version.type === 'patch') {
    if (version.releaseBuild !== release.build)
      return [
        `${formatVersion(version)} is a patch of build ${version.releaseBuild ?? ''}; installed is ${formatVersion(release)}.`,
      ];
    const isAhead = patchesAfter(manifest, release, newestInstalled(present).build).includes(version);
    return isAhead
      ? []
      : [`${formatVersion(version)} does not follow ${formatVersion(newestInstalled(present))}.`];
  }
  if (version.previousReleaseBuild !== release.build) {
    return [
      `${formatVersion(version)} follows build ${version.previousReleaseBuild ?? ''}; installed is ${formatVersion(release)}.`,
    ];
  }
  return patchesAfter(manifest, release, newestInstalled(present).build)
    .filter((patch) => patch.isMandatoryUpdate)
    .map((patch) => `The mandatory patch ${formatVersion(patch)} (${patch.id}) must be installed first.`);
}

/** Every reachable version, each with the reasons why it cannot be installed now. */
export function availableVersions(reader: Reader): { version: Version; reasons: readonly string[] }[] {
  const manifest = currentManifest(reader);
  const present = reader.read(deployment);
  return reachableVersions(manifest, present).map((version) => ({
    version,
    reasons: reasonsNotToInstall(version, manifest, present),
  }));
}

/** The versions that a rollback can go back to, newest first: earlier patches of the installed release, and the release itself. */
export function rollbackTargets(present: Deployment): Version[] {
  return [...installedVersions(present)].slice(0, -1).reverse();
}

/** The deployment after `versions` are installed in this order. */
export function afterInstalling(present: Deployment, versions: readonly Version[]): Deployment {
  return versions.reduce<Deployment>(
    (at, version) =>
      version.type === 'release'
        ? { release: version, patches: [] }
        : { ...at, patches: [...at.patches, version] },
    present,
  );
}

export function afterRollback(present: Deployment, target: Version): Deployment {
  const keep = present.patches.findIndex(({ id }) => id === target.id) + 1;
  return { ...present, patches: present.patches.slice(0, keep) };
}

/** The installed containers by name, each as the newest installed version defines it. */
export function installedContainers(present: Deployment): ReadonlyMap<string, Container> {
  const found = new Map<string, Container>();
  for (const { containers, newContainers } of installedVersions(present)) {
    for (const container of [...containers, ...newContainers]) found.set(container.name, container);
  }
  return found;
}
