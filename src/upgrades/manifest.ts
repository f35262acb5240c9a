// Reads version manifests: the version object, and the rules that a manifest must meet.
import { z } from 'zod';
import { isDeeperThan } from '../lib/json.ts';
import { isXmlText } from '../lib/text.ts';
import { findLinkProblems, readLink } from './manifest-links.ts';

export type Container = { readonly name: string; readonly checksum: string; readonly image: string };

/** The parsed object keeps unknown fields of the file, so that responses contain them. */
export type Version = {
  readonly id: string;
  readonly type: 'release' | 'patch';
  readonly version: string;
  readonly build: string;
  readonly previousReleaseBuild?: string;
  readonly releaseBuild?: string;
  readonly previousBuild?: string;
  readonly isMandatoryUpdate: boolean;
  readonly newLicensesRequired: boolean;
  readonly containers: readonly Container[];
  readonly newContainers: readonly Container[];
  readonly userForm: readonly { readonly groupInputs: readonly UserInput[] }[];
};

export type UserInput = { readonly id: string; readonly type: string; readonly [key: string]: unknown };

export function formatVersion({ version, build }: { version: string; build: string }): string {
  return `${version}.${build}`;
}

const text = (most: number) =>
  z
    .string(`must be a text of at most ${most} characters`)
    .min(1, 'is required')
    .max(most, `must be at most ${most} characters`);
const buildRule = 'must be a build: letters, digits or . _ -';
const build = z
  .union([z.string(), z.number().int().nonnegative().transform(String)], buildRule)
  .refine((value) => /^[A-Za-z0-9._-]{1,64}$/.test(value), buildRule);
const flag = z.boolean('must be true or false').default(false);
const checksum = z
  .string('must be a text')
  .nullish()
  .transform((sum) => sum?.trim() || 'N/A');
const containers = z.array(
  z.looseObject({ name: text(128), image: text(512), checksum }, 'must be a container with name and image'),
  'must be an array of containers',
);
const inputs = z
  .array(
    z.looseObject({ id: text(128), type: text(64) }, 'must be an input with id and type'),
    'must be an array of inputs',
  )
  .refine((list) => new Set(list.map(({ id }) => id)).size === list.length, 'must not have an id twice');

const common = {
  id: text(128),
  version: z
    .string('must have three parts, such as 11.0.0')
    .regex(/^\d+\.\d+\.\d+$/, 'must have three parts, such as 11.0.0'),
  build,
  isMandatoryUpdate: flag,
  newLicensesRequired: flag,
  containers,
  newContainers: containers.default([]),
  userForm: z
    .array(
      z.looseObject({ groupInputs: inputs }, 'must be a group with groupInputs'),
      'must be an array of groups',
    )
    .default([]),
};
const schemas = {
  release: z.looseObject({ type: z.literal('release'), ...common, previousReleaseBuild: build }),
  patch: z.looseObject({ type: z.literal('patch'), ...common, releaseBuild: build, previousBuild: build }),
  neither: z.looseObject(
    { type: z.literal(['release', 'patch'], 'must be release or patch'), ...common },
    'must be a version object',
  ),
};

const limits = { versions: 2000, nesting: 32, problems: 200 };

export type ManifestResult =
  { readonly versions: readonly Version[] } | { readonly problems: readonly string[] };

export function readManifest(bytes: Uint8Array, installed: readonly Version[]): ManifestResult {
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
  if (list.length > limits.versions) return { problems: [`must have at most ${limits.versions} versions.`] };
  if (isDeeperThan(list, limits.nesting))
    return { problems: [`must not be nested more than ${limits.nesting} levels deep.`] };

  const unstorable = findControlCharacters(list);
  if (unstorable.length > 0) {
    return {
      problems: unstorable
        .slice(0, limits.problems)
        .map((where) => `${where}: must not have control characters.`),
    };
  }

  const entries = (list as unknown[]).map(normalizeMandatoryFlag);
  const parsed = entries.map((entry) => schemas[kindOf(entry)].safeParse(entry));
  const problems = parsed.flatMap((result, index) =>
    (result.error?.issues ?? []).map(({ path, message }) => {
      const where = path
        .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
        .join('');
      return `[${index}]${where}: ${message}.`;
    }),
  );
  // Links are checked even if fields are invalid, so that one response reports every problem.
  problems.push(...findLinkProblems(entries.flatMap(readLink), installed.flatMap(readLink)));
  if (problems.length > 0) return { problems: problems.slice(0, limits.problems) };
  return { versions: parsed.flatMap((result) => (result.data ? [result.data as Version] : [])) };
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
function findControlCharacters(value: unknown, where = ''): string[] {
  if (typeof value === 'string') return isXmlText(value) ? [] : [where];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = Array.isArray(value) ? `${where}[${key}]` : `${where}.${key}`;
    return isXmlText(key) ? findControlCharacters(inner, path) : [where];
  });
}
