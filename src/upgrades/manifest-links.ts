// The links between the versions of a manifest, and what may be wrong with them (contract 6).

/** What ties a version to others; a link that cannot be read is undefined. */
export type Link = {
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

/** None for an entry that cannot be told apart from others. */
export function readLink(entry: unknown): Link[] {
  const { id, type, build, previousReleaseBuild, releaseBuild, previousBuild } = (entry ?? {}) as Entry;
  const word = (value: unknown) =>
    typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
  const ownBuild = word(build);
  if (typeof id !== 'string' || ownBuild === undefined) return [];
  if (type === 'release')
    return [{ id, type, build: ownBuild, release: ownBuild, previous: word(previousReleaseBuild) }];
  if (type === 'patch')
    return [{ id, type, build: ownBuild, release: word(releaseBuild), previous: word(previousBuild) }];
  return [];
}

/** An id or a place taken twice, links that lead nowhere, circles. */
export function findLinkProblems(links: readonly Link[], installed: readonly Link[]): string[] {
  const ids = new Set<string>();
  const repeated = links
    .filter(({ id }) => ids.has(id) || !ids.add(id))
    .map(({ id }) => `${id}: occurs more than once.`);
  const all = [...links, ...installed.filter(({ id }) => !ids.has(id))];

  const places = new Map<string, Link>();
  const taken: string[] = [];
  for (const link of all) {
    const rival = places.get(placeOf(link, link.build));
    if (rival && rival.id !== link.id)
      taken.push(`${link.id}: has the same build ${link.build} as ${rival.id}.`);
    places.set(placeOf(link, link.build), link);
  }
  const releases = new Set(all.filter(({ type }) => type === 'release').map(({ build }) => build));
  const before = (link: Link) =>
    link.previous === undefined ? undefined : places.get(placeOf(link, link.previous));
  return [...repeated, ...taken, ...findBadPatches(links, releases, before), ...findCircles(links, before)];
}

/** Builds of releases are unique, builds of patches within their release. */
function placeOf({ type, release }: Link, build: string): string {
  return type === 'release' ? `release ${build}` : `patch ${release ?? ''} ${build}`;
}

function findBadPatches(
  links: readonly Link[],
  releases: ReadonlySet<string>,
  before: (link: Link) => Link | undefined,
): string[] {
  const successors = new Map<string, Link>();
  return links.flatMap((link) => {
    const { id, type, release, previous, build } = link;
    if (type === 'release' || release === undefined || previous === undefined) return [];
    if (!releases.has(release))
      return [`${id}: releaseBuild ${release} is no release in the file or installed.`];
    if (build === release) return [`${id}: has the same build ${build} as its release.`];
    if (previous !== release && !before(link)) {
      return [`${id}: previousBuild ${previous} is no patch of its release in the file or installed.`];
    }
    const rival = successors.get(placeOf(link, previous));
    successors.set(placeOf(link, previous), link);
    return rival && rival.id !== id ? [`${id}: has the same previousBuild ${previous} as ${rival.id}.`] : [];
  });
}

/** Every link is walked once: what has been walked and is not on this walk leads to no new circle. */
function findCircles(links: readonly Link[], before: (link: Link) => Link | undefined): string[] {
  const walked = new Set<Link>();
  const problems: string[] = [];
  for (const start of links) {
    const walk = new Set<Link>();
    let at: Link | undefined = start;
    while (at && !walked.has(at) && !walk.has(at)) {
      walk.add(at);
      at = before(at);
    }
    if (at && walk.has(at)) problems.push(`${at.id}: the versions before it form a circle.`);
    for (const link of walk) walked.add(link);
  }
  return problems;
}
