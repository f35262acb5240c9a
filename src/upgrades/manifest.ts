// The version manifest: what a version object is, and when a manifest is refused (spec 2.3, contract 6).
import { z } from 'zod';

export type Container = { readonly name: string; readonly checksum: string; readonly image: string };

/** Unknown fields of the file are kept beside these. */
export type Version = {
  readonly id: string;
  readonly type: 'release' | 'patch';
  readonly version: string;
  readonly build: string;
  /** Release: the build of the release it follows. */
  readonly previousReleaseBuild?: string;
  /** Patch: the build of its release, and of the patch or release right before it. */
  readonly releaseBuild?: string;
  readonly previousBuild?: string;
  readonly isMandatoryUpdate: boolean;
  readonly newLicensesRequired: boolean;
  readonly containers: readonly Container[];
  readonly newContainers: readonly Container[];
  readonly userForm: readonly { readonly groupInputs: readonly UserInput[] }[];
};

export type UserInput = { readonly id: string; readonly type: string; readonly [key: string]: unknown };

/** How a version reads in messages. */
export function labelOf({ version, build }: { version: string; build: string }): string {
  return `${version}.${build}`;
}

const text = (most: number) =>
  z.string('is required').min(1, 'is required').max(most, `must be at most ${most} characters`);
const build = z
  .union([text(64), z.number().int().nonnegative().transform(String)], 'is required')
  .refine((value) => /^[A-Za-z0-9._-]+$/.test(value), 'must be letters, digits or . _ -');
const flag = z.boolean('must be true or false').default(false);
const containers = z.array(
  z.looseObject({
    name: text(128),
    image: text(512),
    checksum: z
      .string()
      .trim()
      .default('N/A')
      .transform((sum) => sum || 'N/A'),
  }),
  'must be an array of containers',
);
const inputs = z.array(z.looseObject({ id: text(128), type: text(64) }), 'must be an array of inputs');

const common = {
  id: text(128),
  version: text(64).regex(/^\d+\.\d+\.\d+$/, 'must have three parts, such as 11.0.0'),
  build,
  isMandatoryUpdate: flag,
  newLicensesRequired: flag,
  containers,
  newContainers: containers.default([]),
  userForm: z.array(z.looseObject({ groupInputs: inputs }), 'must be an array of groups').default([]),
};
const versionSchema = z.discriminatedUnion(
  'type',
  [
    z.looseObject({ type: z.literal('release'), ...common, previousReleaseBuild: build }),
    z.looseObject({ type: z.literal('patch'), ...common, releaseBuild: build, previousBuild: build }),
  ],
  'must be release or patch',
);

export type ManifestResult =
  { readonly versions: readonly Version[] } | { readonly problems: readonly string[] };

/** Reads a manifest file: a bare array or `{"versions":[…]}`. All reasons against it are told at once. */
export function readManifest(content: string, installed: readonly Version[]): ManifestResult {
  let json: unknown;
  try {
    json = JSON.parse(content);
  } catch (error) {
    return { problems: [`is not JSON: ${(error as Error).message}.`] };
  }
  const list = Array.isArray(json) ? json : (json as { versions?: unknown } | null)?.versions;
  if (!Array.isArray(list))
    return { problems: ['must be a JSON array of versions, or an object with the array "versions".'] };
  const parsed = list.map((entry) => versionSchema.safeParse(withOneSpelling(entry)));
  const problems = parsed.flatMap((result, index) =>
    (result.error?.issues ?? []).map((issue) => {
      const where = issue.path
        .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
        .join('');
      return `[${index}]${where}: ${issue.message}.`;
    }),
  );
  const versions = parsed.flatMap((result) => (result.data ? [result.data as Version] : []));
  problems.push(...findRepeats(versions));
  // What is missing in the file would only show again as a broken chain.
  if (problems.length === 0) problems.push(...findBrokenChains(versions, installed));
  return problems.length > 0 ? { problems } : { versions };
}

/** The files in use spell one flag in two ways. */
function withOneSpelling(entry: unknown): unknown {
  if (
    typeof entry !== 'object' ||
    entry === null ||
    !('ismandatoryUpdate' in entry) ||
    'isMandatoryUpdate' in entry
  )
    return entry;
  return { ...entry, isMandatoryUpdate: entry.ismandatoryUpdate };
}

function findRepeats(versions: readonly Version[]): string[] {
  const seen = new Set<string>();
  return versions.flatMap(({ id }) => {
    if (seen.has(id)) return [`${id}: is there more than once.`];
    seen.add(id);
    return [];
  });
}

function findBrokenChains(versions: readonly Version[], installed: readonly Version[]): string[] {
  const all = [...installed, ...versions];
  const releases = new Map(
    all.filter(({ type }) => type === 'release').map((release) => [release.build, release]),
  );
  const patches = all.filter(({ type }) => type === 'patch');
  const patchesByPlace = new Map(patches.map((patch) => [`${patch.releaseBuild} ${patch.build}`, patch]));
  const problems: string[] = [];
  const successors = new Map<string, Version>();
  for (const patch of versions.filter(({ type }) => type === 'patch')) {
    const { id, releaseBuild, previousBuild } = patch;
    const place = `${releaseBuild} ${previousBuild}`;
    if (!releases.has(releaseBuild ?? '')) {
      problems.push(`${id}: releaseBuild ${releaseBuild} is no release in the file or installed.`);
    } else if (previousBuild !== releaseBuild && !patchesByPlace.has(place)) {
      problems.push(
        `${id}: previousBuild ${previousBuild} is no patch of its release in the file or installed.`,
      );
    }
    const rival = successors.get(place);
    if (rival) problems.push(`${id}: has the same previousBuild ${previousBuild} as ${rival.id}.`);
    successors.set(place, patch);
  }
  const before = ({ type, previousReleaseBuild, releaseBuild, previousBuild }: Version) =>
    type === 'release'
      ? releases.get(previousReleaseBuild ?? '')
      : patchesByPlace.get(`${releaseBuild} ${previousBuild}`);
  for (const version of versions) {
    if (leadsBackTo(version, before)) problems.push(`${version.id}: the versions before it form a circle.`);
  }
  return problems;
}

function leadsBackTo(start: Version, before: (version: Version) => Version | undefined): boolean {
  const seen = new Set<Version>();
  for (let at = before(start); at && !seen.has(at); at = before(at)) {
    if (at === start) return true;
    seen.add(at);
  }
  return false;
}
