// Checks the links between the versions of a manifest.

/** Problems name ids and builds, so their length is limited. */
export const maxLengths = { id: 128, build: 64 };

/** Links of invalid entries are checked too. A build that cannot be read is undefined. */
type VersionLink = {
  readonly id: string;
  readonly type: 'release' | 'patch';
  readonly build: string;
  readonly release: string | undefined;
  readonly previous: string | undefined;
};

type Entry = {
  readonly id?: unknown;
  readonly type?: unknown;
  readonly build?: unknown;
  readonly previousReleaseBuild?: unknown;
  readonly releaseBuild?: unknown;
  readonly previousBuild?: unknown;
};

export function readLink(entry: unknown): VersionLink[] {
  const { id, type, build, previousReleaseBuild, releaseBuild, previousBuild } = (entry ?? {}) as Entry;
  const ownBuild = readBuild(build);
  if (typeof id !== 'string' || id.length > maxLengths.id || ownBuild === undefined) return [];
  if (type === 'release')
    return [{ id, type, build: ownBuild, release: ownBuild, previous: readBuild(previousReleaseBuild) }];
  if (type === 'patch')
    return [
      { id, type, build: ownBuild, release: readBuild(releaseBuild), previous: readBuild(previousBuild) },
    ];
  return [];
}

function readBuild(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && text.length <= maxLengths.build ? text : undefined;
}

export function findLinkProblems(links: readonly VersionLink[], installed: readonly VersionLink[]): string[] {
  const ids = new Set<string>();
  const repeated = links
    .filter(({ id }) => ids.has(id) || !ids.add(id))
    .map(({ id }) => `${id}: occurs more than once.`);
  const all = [...links, ...installed.filter(({ id }) => !ids.has(id))];

  const byBuild = new Map<string, VersionLink>();
  const sameBuild: string[] = [];
  for (const link of all) {
    const rival = byBuild.get(linkKey(link, link.build));
    if (rival && rival.id !== link.id)
      sameBuild.push(`${link.id}: has the same build ${link.build} as ${rival.id}.`);
    byBuild.set(linkKey(link, link.build), link);
  }
  const releases = new Set(all.filter(({ type }) => type === 'release').map(({ build }) => build));
  const before = (link: VersionLink) =>
    link.previous === undefined ? undefined : byBuild.get(linkKey(link, link.previous));
  return [
    ...repeated,
    ...sameBuild,
    ...findBadPatches(links, releases, before),
    ...findCircles(links, before),
  ];
}

/** Builds of releases are unique in the manifest, builds of patches only within their release. */
function linkKey({ type, release }: VersionLink, build: string): string {
  return type === 'release' ? `release ${build}` : `patch ${release ?? ''} ${build}`;
}

function findBadPatches(
  links: readonly VersionLink[],
  releases: ReadonlySet<string>,
  before: (link: VersionLink) => VersionLink | undefined,
): string[] {
  const successors = new Map<string, VersionLink>();
  return links.flatMap((link) => {
    const { id, type, release, previous, build } = link;
    if (type === 'release' || release === undefined || previous === undefined) return [];
    if (!releases.has(release))
      return [`${id}: releaseBuild ${release} is no release in the file or installed.`];
    if (build === release) return [`${id}: has the same build ${build} as its release.`];
    if (previous !== release && !before(link)) {
      return [`${id}: previousBuild ${previous} is no patch of its release in the file or installed.`];
    }
    const rival = successors.get(linkKey(link, previous));
    successors.set(linkKey(link, previous), link);
    return rival && rival.id !== id ? [`${id}: has the same previousBuild ${previous} as ${rival.id}.`] : [];
  });
}

/** A version of an earlier walk cannot lead to a new circle, so each version is visited once. */
function findCircles(
  links: readonly VersionLink[],
  before: (link: VersionLink) => VersionLink | undefined,
): string[] {
  const visited = new Set<VersionLink>();
  const problems: string[] = [];
  for (const start of links) {
    const walk = new Set<VersionLink>();
    let at: VersionLink | undefined = start;
    while (at && !visited.has(at) && !walk.has(at)) {
      walk.add(at);
      at = before(at);
    }
    if (at && walk.has(at)) problems.push(`${at.id}: the versions before it form a circle.`);
    for (const link of walk) visited.add(link);
  }
  return problems;
}
