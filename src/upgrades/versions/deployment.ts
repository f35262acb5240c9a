// The installed versions, and which versions can be installed or rolled back to from there.
import type { Cell, Reader } from '../../store/state.ts';
import type { Transaction } from '../../store/transaction.ts';
import { builtInManifest, freshRelease } from './built-in-manifest.ts';
import { type Container, type Version, formatVersion } from './manifest.ts';

/** `patches` is in the order of installation. */
export type Deployment = { readonly release: Version; readonly patches: readonly Version[] };

export const deployment: Cell<Deployment> = {
  name: 'deployment',
  initial: { release: freshRelease, patches: [] },
  auditFields: (present) => ({ installedVersion: formatVersion(newestInstalled(present)) }),
};

type ImportedManifest = {
  readonly versions: readonly Version[];
  readonly importedAt: number;
  /** The ids of the versions that the manifest before it did not have. */
  readonly added: readonly string[];
};

export const importedManifest: Cell<ImportedManifest | null> = {
  name: 'importedManifest',
  initial: null,
  auditFields: (imported) => ({
    manifestVersions: imported && imported.versions.length,
    manifestImportedAt: imported && imported.importedAt,
  }),
};

/** Returns the ids of the versions that are new. */
export function importManifest(
  transaction: Transaction,
  versions: readonly Version[],
  importedAt: number,
): readonly string[] {
  const known = new Set([
    ...currentManifest(transaction).map(({ id }) => id),
    ...installedVersions(transaction.read(deployment)).map(({ id }) => id),
  ]);
  const added = versions.map(({ id }) => id).filter((id) => !known.has(id));
  transaction.write(importedManifest, { versions, importedAt, added });
  return added;
}

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

/** The patches of the release that follow this build, one after another. */
export function patchesAfter(manifest: readonly Version[], release: Version, build: string): Version[] {
  const next = manifest.find(
    ({ type, releaseBuild, previousBuild }) =>
      previousBuild === build && releaseBuild === release.build && type === 'patch',
  );
  return next ? [next, ...patchesAfter(manifest, release, next.build)] : [];
}

/** Returns a function for many versions, because they share what is read from the manifest. */
export function installCheck(
  manifest: readonly Version[],
  present: Deployment,
): (version: Version) => readonly string[] {
  const { release } = present;
  const newest = newestInstalled(present);
  const installed = new Set(installedVersions(present).map(({ id }) => id));
  const ahead = patchesAfter(manifest, release, newest.build);
  const isAhead = new Set(ahead);
  const missing = ahead
    .filter(({ isMandatoryUpdate }) => isMandatoryUpdate)
    .map((patch) => `The mandatory patch ${formatVersion(patch)} (${patch.id}) must be installed first.`);
  return (version) => {
    const { id, type, releaseBuild, previousReleaseBuild } = version;
    if (installed.has(id)) return [`${formatVersion(version)} is installed already.`];
    const [relation, build = ''] =
      type === 'patch' ? ['is a patch of build', releaseBuild] : ['follows build', previousReleaseBuild];
    if (build !== release.build)
      return [
        `${formatVersion(version)} ${relation} ${build}; the installed release is ${formatVersion(release)}.`,
      ];
    if (type === 'release') return missing;
    return isAhead.has(version)
      ? []
      : [`${formatVersion(version)} does not follow ${formatVersion(newest)}.`];
  };
}

export function rollbackTargets(present: Deployment): Version[] {
  return [...installedVersions(present)].slice(0, -1).reverse();
}

export function afterInstalling(present: Deployment, versions: readonly Version[]): Deployment {
  const release = versions.findLast(({ type }) => type === 'release');
  if (!release) return { ...present, patches: [...present.patches, ...versions] };
  return { release, patches: versions.slice(versions.indexOf(release) + 1) };
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
