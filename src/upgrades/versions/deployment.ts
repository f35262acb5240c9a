// The installed versions, and which versions can be installed or rolled back to from there.
import { ServiceError } from '../../lib/errors.ts';
import type { Cell, Reader } from '../../store/state.ts';
import type { Transaction } from '../../store/transaction.ts';
import { type Container, type Version, formatVersion } from './manifest.ts';

export type Deployment = {
  readonly release: Version;
  /** In the order of installation. */
  readonly patches: readonly Version[];
  /** Absent if a job has installed the release. */
  readonly origin?: Origin;
};

/** How a version became the installed one without a job. */
export type Origin = {
  readonly version: string;
  /** Completes the sentence "It was derived from …". */
  readonly from: string;
  readonly at: number;
};

/** Undefined if a job has installed the newest version. */
export function originOf(present: Deployment | null): Origin | undefined {
  if (!present?.origin) return undefined;
  return present.origin.version === formatVersion(newestInstalled(present)) ? present.origin : undefined;
}

/** Null: the installed version is not known. */
export const deployment: Cell<Deployment | null> = {
  name: 'deployment',
  initial: null,
  auditFields: (present) => ({
    installedVersion: present && formatVersion(newestInstalled(present)),
    derivedFrom: present?.origin?.from ?? null,
  }),
};

export function unknownVersion(reason?: string): ServiceError {
  const message = 'The installed version is not known. The operation adopt declares it.';
  return new ServiceError('conflict', message, {
    problems: reason === undefined ? [] : [{ message: reason }],
  });
}

/** Throws if the installed version is not known. */
export function readDeployment(reader: Reader): Deployment {
  const present = reader.read(deployment);
  if (!present) throw unknownVersion();
  return present;
}

/** The manifest that holds while none is imported. */
export type BaseManifest = {
  readonly source: 'built-in' | 'file';
  readonly versions: readonly Version[];
  /** Of the text that it was read from. */
  readonly digest: string;
};

export const baseManifest: Cell<BaseManifest> = {
  name: 'baseManifest',
  initial: { source: 'built-in', versions: [], digest: '' },
  auditFields: () => ({}),
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
  return (reader.read(importedManifest) ?? reader.read(baseManifest)).versions;
}

/** The release, then its patches. Empty if the installed version is not known. */
export function installedVersions(present: Deployment | null): readonly Version[] {
  return present ? [present.release, ...present.patches] : [];
}

export function newestInstalled({ release, patches }: Deployment): Version {
  return patches.at(-1) ?? release;
}

/** Searches the installed versions too, because an imported manifest may lack them. */
export function findVersion(
  manifest: readonly Version[],
  present: Deployment | null,
  id: string,
): Version | undefined {
  return [...manifest, ...installedVersions(present)].find((version) => version.id === id);
}

/** The patches of the release that follow this build, one after another. */
export function patchesAfter(manifest: readonly Version[], release: Version, build: string): Version[] {
  const next = (before: string) =>
    manifest.find(
      ({ type, releaseBuild, previousBuild }) =>
        previousBuild === before && releaseBuild === release.build && type === 'patch',
    );
  const found: Version[] = [];
  // A manifest that is not checked yet may have a circle.
  for (let one = next(build); one && !found.includes(one); one = next(one.build)) found.push(one);
  return found;
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

/** Newest first. The containers of an unlisted version are not known, so nothing can be put back to it. */
export function rollbackTargets(present: Deployment | null): Version[] {
  return installedVersions(present)
    .slice(0, -1)
    .filter(({ isUnlisted }) => !isUnlisted)
    .reverse();
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
