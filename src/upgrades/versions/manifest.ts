// Reads version manifests: the version object, the rules that a manifest must meet, and the links between its versions.
import * as z from 'zod';
import { maxProblems, tooLarge } from '../../lib/errors.ts';
import { type DeepReadonly, findExcess } from '../../lib/json.ts';
import { isXmlText, truncate } from '../../lib/text.ts';

export function formatVersion({ version, build }: { version: string; build: string }): string {
  return `${version}.${build}`;
}

/** Problems name ids and builds, so their length is limited. */
export const maxLengths = { id: 128, build: 64 };

const limits = { values: 200_000, nesting: 32, versions: 500, containers: 5000, inputs: 200 };

const text = (most: number) =>
  z
    .string(`must be a text of at most ${most} characters`)
    .min(1, 'is required')
    .max(most, `must be at most ${most} characters`);
const buildRule = 'must be a build: letters, digits or . _ -';
const build = z
  .union([z.string(), z.number().int().nonnegative().transform(String)], buildRule)
  .pipe(z.string())
  .refine((value) => value.length <= maxLengths.build && /^[A-Za-z0-9._-]+$/.test(value), buildRule);
const flag = z.boolean('must be true or false').default(false);
const checksum = z
  .string('must be a text')
  .max(512, 'must be at most 512 characters')
  .nullish()
  .transform((sum) => sum?.trim() || 'N/A')
  .pipe(z.string())
  .describe('N/A if the manifest has none.');

/** The length is checked before the entries, because zod would create a problem for each of them. */
function list<T extends z.ZodType>(most: number, what: string, entry: T) {
  return z
    .array(z.unknown(), `must be an array of ${what}`)
    .max(most, `must have at most ${most} ${what}`)
    .pipe(z.array(entry));
}

const container = z.looseObject(
  { name: text(128), image: text(512), checksum },
  'must be a container with name and image',
);
const input = z.looseObject({ id: text(128), type: text(64) }, 'must be an input with id and type');
const containers = list(limits.containers, 'containers', container);
const inputs = list(limits.inputs, 'inputs', input).refine(
  (all) => new Set(all.map(({ id }) => id)).size === all.length,
  'must not have an id twice',
);
const groups = list(
  limits.inputs,
  'groups',
  z.looseObject({ groupInputs: inputs }, 'must be a group with groupInputs'),
).refine(
  (all) => all.flatMap(({ groupInputs }) => groupInputs).length <= limits.inputs,
  `must have at most ${limits.inputs} inputs`,
);

const common = {
  type: z.literal(['release', 'patch'], 'must be release or patch'),
  id: text(maxLengths.id).describe('rel_… or pat_…. Operations name a version by it.'),
  version: z
    .string('must have three parts, such as 11.0.0')
    .regex(/^\d{1,9}\.\d{1,9}\.\d{1,9}$/, 'must have three parts, such as 11.0.0')
    .describe('Three parts, for example 11.0.0.'),
  build,
  isMandatoryUpdate: flag,
  newLicensesRequired: flag,
  containers,
  newContainers: containers.default([]).describe('Containers that this version adds.'),
  userForm: groups
    .default([])
    .describe('The inputs that the version asks for; getUpgradeSettings returns them.'),
};
const schemas = {
  release: z.looseObject({ ...common, type: z.literal('release'), previousReleaseBuild: build }),
  patch: z.looseObject({ ...common, type: z.literal('patch'), releaseBuild: build, previousBuild: build }),
  neither: z.looseObject(common, 'must be a version object'),
};

/** A version. Unknown fields of the file are kept, so that responses contain them. */
export const versionFields = {
  ...common,
  previousReleaseBuild: build.optional().describe('Releases only: the build of the previous release.'),
  releaseBuild: build.optional().describe('Patches only: the build of the release.'),
  previousBuild: build.optional().describe('Patches only: the build right before this patch.'),
  isUnlisted: z
    .literal(true)
    .optional()
    .describe('The manifest does not have this installed version, so its containers are not known.'),
};

export type Version = DeepReadonly<z.output<z.ZodObject<typeof versionFields>>>;
export type Container = DeepReadonly<z.output<typeof container>>;
export type UserInput = DeepReadonly<z.output<typeof input>>;

type ManifestResult = { readonly versions: readonly Version[] } | { readonly problems: readonly string[] };

/** The installed versions if the manifest has these. */
type InstalledWith = (versions: readonly Version[]) => readonly Version[];

/** Throws if there are too many versions. Without `installedWith`, the links are not checked. */
export function readManifest(bytes: Uint8Array, installedWith?: InstalledWith): ManifestResult {
  const excess = findExcess(bytes, limits);
  if (excess !== undefined) return { problems: [excess] };
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    return { problems: [`is not JSON: ${(error as Error).message}.`] };
  }
  const list = Array.isArray(json) ? (json as unknown[]) : (json as { versions?: unknown } | null)?.versions;
  if (!Array.isArray(list)) {
    return { problems: ['must be a JSON array of versions, or an object with the array "versions".'] };
  }
  if (list.length > limits.versions)
    throw tooLarge({ message: `A version manifest must have at most ${limits.versions} versions.` });
  const entries = (list as unknown[]).map(normalizeMandatoryFlag);
  const unstorable: string[] = [];
  findControlCharacters(list, '', unstorable);
  if (unstorable.length > 0)
    return { problems: unstorable.map((where) => `${where}: must not have control characters.`) };
  return validate(entries, installedWith);
}

function validate(entries: readonly unknown[], installedWith: InstalledWith | undefined): ManifestResult {
  const versions: Version[] = [];
  const problems: string[] = [];
  for (const [index, entry] of entries.entries()) {
    const { data, error } = schemas[kindOf(entry)].safeParse(entry);
    if (data) versions.push(data);
    for (const { path, message } of error?.issues ?? [])
      problems.push(`[${index}]${formatPath(path)}: ${message}.`);
    if (problems.length >= maxProblems) return { problems: problems.slice(0, maxProblems) };
  }
  // Links are checked even if fields are invalid, so that one response reports every problem.
  if (installedWith) problems.push(...findLinkProblems(entries.flatMap(readLink), installedWith(versions)));
  return problems.length > 0 ? { problems: problems.slice(0, maxProblems) } : { versions };
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
}

function kindOf(entry: unknown): keyof typeof schemas {
  const type = (entry as { type?: unknown } | null)?.type;
  return type === 'release' || type === 'patch' ? type : 'neither';
}

/** Existing manifest files also spell the flag `ismandatoryUpdate`. */
function normalizeMandatoryFlag(entry: unknown): unknown {
  const hasOtherSpelling = typeof entry === 'object' && entry !== null && 'ismandatoryUpdate' in entry;
  return hasOtherSpelling && !('isMandatoryUpdate' in entry)
    ? { ...entry, isMandatoryUpdate: entry.ismandatoryUpdate }
    : entry;
}

/** Neither XML nor the database accepts these characters. */
function findControlCharacters(value: unknown, where: string, found: string[]): void {
  if (found.length >= maxProblems) return;
  if (typeof value === 'string') {
    if (!isXmlText(value)) found.push(where);
  } else if (Array.isArray(value)) {
    for (const [index, inner] of value.entries()) findControlCharacters(inner, `${where}[${index}]`, found);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      if (isXmlText(key)) findControlCharacters(inner, `${where}.${truncate(key)}`, found);
      else if (found.length < maxProblems) found.push(where);
    }
  }
}

const otherBuild = build.optional().catch(undefined);

/** Links of invalid entries are checked too. A build that cannot be read is undefined. */
const linkSchema = z
  .object({
    id: z.string().max(maxLengths.id),
    type: common.type,
    build,
    previousReleaseBuild: otherBuild,
    releaseBuild: otherBuild,
    previousBuild: otherBuild,
  })
  .transform(({ previousReleaseBuild, releaseBuild, previousBuild, ...own }) =>
    own.type === 'release'
      ? { ...own, release: own.build, previous: previousReleaseBuild }
      : { ...own, release: releaseBuild, previous: previousBuild },
  );

type VersionLink = z.output<typeof linkSchema>;

const readLink = (entry: unknown): VersionLink | [] => linkSchema.safeParse(entry).data ?? [];

/** What contradicts itself, or the installed versions. */
export function findManifestProblems(versions: readonly Version[], installed: readonly Version[]): string[] {
  return findLinkProblems(versions.flatMap(readLink), installed).slice(0, maxProblems);
}

function findLinkProblems(links: readonly VersionLink[], installedVersions: readonly Version[]): string[] {
  const builds = new Set(links.map((link) => linkKey(link, link.build)));
  // A file that has an unlisted version replaces it.
  const installed = installedVersions.flatMap((version) => {
    const link = readLink(version);
    return version.isUnlisted && !Array.isArray(link) && builds.has(linkKey(link, link.build)) ? [] : link;
  });
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
