// Reads version manifests: the version object, and the rules that a manifest must meet.
import * as z from 'zod';
import { maxProblems } from '../../lib/errors.ts';
import { findExcess } from '../../lib/json.ts';
import { isXmlText, truncate } from '../../lib/text.ts';
import { findLinkProblems, maxLengths, readLink } from './manifest-links.ts';

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
  .refine((value) => value.length <= maxLengths.build && /^[A-Za-z0-9._-]+$/.test(value), buildRule);
const flag = z.boolean('must be true or false').default(false);
const checksum = z
  .string('must be a text')
  .max(512, 'must be at most 512 characters')
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
  id: text(maxLengths.id),
  version: z
    .string('must have three parts, such as 11.0.0')
    .regex(/^\d{1,9}\.\d{1,9}\.\d{1,9}$/, 'must have three parts, such as 11.0.0'),
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

/**
 * All but the first two are checked after parsing and before zod, which would create every problem before the list
 * can be cut.
 */
const limits = {
  values: 200_000,
  nesting: 32,
  versions: 2000,
  containers: 5000,
  groups: 200,
  inputs: 200,
  extensions: 100,
};

type ManifestResult = { readonly versions: readonly Version[] } | { readonly problems: readonly string[] };

export function readManifest(bytes: Uint8Array, installed: readonly Version[]): ManifestResult {
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
  if (list.length > limits.versions) return { problems: [`must have at most ${limits.versions} versions.`] };
  const entries = (list as unknown[]).map(normalizeMandatoryFlag);
  const tooLarge = entries.flatMap((entry, index) =>
    findExceededLimits(entry).map((problem) => `[${index}]: ${problem}`),
  );
  if (tooLarge.length > 0) return { problems: tooLarge.slice(0, maxProblems) };
  const unstorable: string[] = [];
  findControlCharacters(list, '', unstorable);
  if (unstorable.length > 0)
    return { problems: unstorable.map((where) => `${where}: must not have control characters.`) };
  return validate(entries, installed);
}

type Sizes = { readonly containers?: unknown; readonly newContainers?: unknown; readonly userForm?: unknown };

function findExceededLimits(entry: unknown): string[] {
  const { containers, newContainers, userForm } = (entry ?? {}) as Sizes;
  const groups = arrayOf(userForm);
  const inputs = groups.flatMap((group) => arrayOf((group as { groupInputs?: unknown } | null)?.groupInputs));
  const extensions = inputs.map(
    (input) => arrayOf((input as { validFileExtensions?: unknown } | null)?.validFileExtensions).length,
  );
  return [
    ...(arrayOf(containers).length + arrayOf(newContainers).length > limits.containers
      ? [`must have at most ${limits.containers} containers and newContainers.`]
      : []),
    ...(groups.length > limits.groups ? [`must have at most ${limits.groups} groups in userForm.`] : []),
    ...(inputs.length > limits.inputs ? [`must have at most ${limits.inputs} inputs in userForm.`] : []),
    ...(extensions.some((length) => length > limits.extensions)
      ? [`must have at most ${limits.extensions} validFileExtensions in an input.`]
      : []),
  ];
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function validate(entries: readonly unknown[], installed: readonly Version[]): ManifestResult {
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
  problems.push(...findLinkProblems(entries.flatMap(readLink), installed.flatMap(readLink)));
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
