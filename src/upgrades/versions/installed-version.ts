// Which installed versions a manifest fits: those that it lists, each with what is installed before it, and unlisted ones
// that its versions follow. Manifests of vendors begin with the release after the one that runs.
import { formatList } from '../../lib/format.ts';
import { asJson } from '../../lib/json.ts';
import { type Deployment, newestInstalled, patchesAfter } from './deployment.ts';
import { type Version, formatVersion } from './manifest.ts';

/** What a version follows. The file of a release need not name the version before it. */
type Predecessor = {
  readonly version: string | undefined;
  readonly releaseBuild: string;
  readonly build: string;
};

function predecessorOf(follower: Version): Predecessor {
  const { type, version, previousReleaseBuild = '', releaseBuild = '', previousBuild = '' } = follower;
  if (type === 'patch') return { version, releaseBuild, build: previousBuild };
  const { previousVersion } = asJson(follower);
  const before = typeof previousVersion === 'string' ? previousVersion : undefined;
  return { version: before, releaseBuild: previousReleaseBuild, build: previousReleaseBuild };
}

const keyOf = ({ releaseBuild, build }: Omit<Predecessor, 'version'>) => `${releaseBuild} ${build}`;

const keyOfListed = ({ type, build, releaseBuild = build }: Version) =>
  keyOf({ releaseBuild: type === 'release' ? build : releaseBuild, build });

/** The versions whose predecessor the manifest does not list. */
function findFirst(manifest: readonly Version[]): Version[] {
  const listed = new Set(manifest.map(keyOfListed));
  return manifest.filter((version) => !listed.has(keyOf(predecessorOf(version))));
}

function formatPredecessors(versions: readonly Version[]): string[] {
  return [...new Set(versions.map(predecessorOf).map(({ version, build }) => [version, build].join('.')))];
}

/** Each version of the manifest as the newest installed one. Releases in the order of their links. */
export function listDeployments(manifest: readonly Version[]): Deployment[] {
  const first = findFirst(manifest).filter(({ type }) => type === 'patch');
  const bases = [
    ...first.map((patch) => unlistedDeployment(patch.version, predecessorOf(patch))),
    ...releasesInOrder(manifest).map((release): Deployment => ({ release, patches: [] })),
  ];
  return bases.flatMap((base) => {
    const newest = newestInstalled(base);
    const later = patchesAfter(manifest, base.release, newest.build);
    const patched = later.map((_patch, index) => ({
      ...base,
      patches: [...base.patches, ...later.slice(0, index + 1)],
    }));
    return newest.isUnlisted ? patched : [base, ...patched];
  });
}

/** Those of a circle, which a manifest that is not checked yet may have, come last. */
function releasesInOrder(manifest: readonly Version[]): Version[] {
  const releases = manifest.filter(({ type }) => type === 'release');
  const builds = new Set<string | undefined>(releases.map(({ build }) => build));
  const inOrder = releases.filter(({ previousReleaseBuild }) => !builds.has(previousReleaseBuild));
  for (const { build } of inOrder)
    inOrder.push(...releases.filter(({ previousReleaseBuild }) => previousReleaseBuild === build));
  return [...inOrder, ...releases.filter((release) => !inOrder.includes(release))];
}

export function isListed(manifest: readonly Version[], present: Deployment): boolean {
  const newest = keyOfListed(newestInstalled(present));
  return manifest.some((version) => keyOfListed(version) === newest);
}

/** `name` is an id, or version and build. Undefined if the manifest neither lists nor follows this version. */
export function findDeployment(manifest: readonly Version[], name: string): Deployment | undefined {
  const isNamed = (version: Version) => version.id === name || formatVersion(version) === name;
  return (
    listDeployments(manifest).find((one) => isNamed(newestInstalled(one))) ?? findUnlisted(manifest, name)
  );
}

function findUnlisted(manifest: readonly Version[], name: string): Deployment | undefined {
  const [, version = '', build = ''] = /^(\d+\.\d+\.\d+)\.([\w.-]+)$/.exec(name) ?? [];
  const before = manifest.map(predecessorOf).filter((one) => (one.version ?? version) === version);
  const exact = before.find((one) => one.build === build);
  if (exact) return unlistedDeployment(version, exact);
  if (before.some(({ releaseBuild }) => releaseBuild === build))
    return unlistedDeployment(version, { releaseBuild: build, build });
  // A release follows, whatever patches that the manifest does not have are installed.
  const [newest] = before
    .filter((one) => one.version === version && one.build === one.releaseBuild)
    .filter((one) => compareBuilds(one.build, build) < 0)
    .sort((one, other) => compareBuilds(other.build, one.build));
  return newest && unlistedDeployment(version, { releaseBuild: newest.releaseBuild, build });
}

const compareBuilds = (one: string, other: string) => one.localeCompare(other, 'en', { numeric: true });

function unlistedDeployment(
  version: string,
  { releaseBuild, build }: Omit<Predecessor, 'version'>,
): Deployment {
  const links = { releaseBuild, previousBuild: releaseBuild };
  return {
    release: unlistedVersion('rel', version, releaseBuild),
    patches: build === releaseBuild ? [] : [{ ...unlistedVersion('pat', version, build), ...links }],
  };
}

function unlistedVersion(prefix: 'rel' | 'pat', version: string, build: string): Version {
  return {
    id: `${prefix}_${version}.${build}`,
    type: prefix === 'rel' ? 'release' : 'patch',
    version,
    build,
    isMandatoryUpdate: false,
    newLicensesRequired: false,
    isUnlisted: true,
    containers: [],
    newContainers: [],
    userForm: [],
  };
}

/** The installed versions from which the manifest leads to another one. */
export function startingVersions(manifest: readonly Version[]): string[] {
  const followed = new Set(manifest.map((version) => keyOf(predecessorOf(version))));
  const leadsOn = (present: Deployment) =>
    followed.has(keyOfListed(newestInstalled(present))) || followed.has(keyOfListed(present.release));
  const listed = listDeployments(manifest).filter(leadsOn);
  return [
    ...formatPredecessors(findFirst(manifest)),
    ...listed.map((present) => formatVersion(newestInstalled(present))),
  ];
}

/** Completes the sentence "It must be …". */
export function formatStartingVersions(manifest: readonly Version[]): string {
  return `the id of a version of the manifest, or a version and build that it has or follows: ${formatList(startingVersions(manifest))}`;
}

export function nothingFollows(manifest: readonly Version[], present: Deployment): string {
  const first = formatList(formatPredecessors(findFirst(manifest)));
  return (
    `No version of the manifest follows ${formatVersion(newestInstalled(present))}. ` +
    `${first === '' ? '' : `The manifest begins after ${first}. `}The operation adopt declares another installed version.`
  );
}
