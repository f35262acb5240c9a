// The installed versions, and which versions can be installed or rolled back to from there.
import type { Cell, Reader } from '../store/transaction.ts';
import { builtInManifest, freshRelease } from './built-in-manifest.ts';
import { type Container, type Version, formatVersion } from './manifest.ts';

/** `patches` is in the order of installation. */
export type Deployment = { readonly release: Version; readonly patches: readonly Version[] };

export const deployment: Cell<Deployment> = {
  name: 'deployment',
  initial: { release: freshRelease, patches: [] },
};

export type ImportedManifest = { readonly versions: readonly Version[]; readonly importedAt: number };

export const importedManifest: Cell<ImportedManifest | null> = { name: 'importedManifest', initial: null };

export function currentManifest(reader: Reader): readonly Version[] {
  return reader.read(importedManifest)?.versions ?? builtInManifest;
}

export function installedVersions({ release, patches }: Deployment): readonly Version[] {
  return [release, ...patches];
}

export function newestInstalled({ release, patches }: Deployment): Version {
  return patches.at(-1) ?? release;
}

/** Searches the installed versions too, because an imported manifest may lack them. */
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

export function reachableVersions(manifest: readonly Version[], present: Deployment): Version[] {
  const releasesAfter = (release: Version): Version[] =>
    manifest
      .filter((version) => version.type === 'release' && version.previousReleaseBuild === release.build)
      .filter((version) => !isInstalled(version.id, present))
      .flatMap((next) => [next, ...patchesAfter(manifest, next, next.build), ...releasesAfter(next)]);
  const { release } = present;
  return [...patchesAfter(manifest, release, newestInstalled(present).build), ...releasesAfter(release)];
}

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

export function availableVersions(reader: Reader): { version: Version; reasons: readonly string[] }[] {
  const manifest = currentManifest(reader);
  const present = reader.read(deployment);
  return reachableVersions(manifest, present).map((version) => ({
    version,
    reasons: reasonsNotToInstall(version, manifest, present),
  }));
}

export function rollbackTargets(present: Deployment): Version[] {
  return [...installedVersions(present)].slice(0, -1).reverse();
}

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

/** Iterates oldest first, so that the newest version that lists a container defines it. */
export function installedContainers(present: Deployment): ReadonlyMap<string, Container> {
  const found = new Map<string, Container>();
  for (const { containers, newContainers } of installedVersions(present)) {
    for (const container of [...containers, ...newContainers]) found.set(container.name, container);
  }
  return found;
}
