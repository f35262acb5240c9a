// Upgrade settings: the inputs that a version asks for, and the check of the values that an administrator sends.
import type { Problem } from '../../lib/errors.ts';
import { findExcess, isJsonObject } from '../../lib/json.ts';
import { truncate } from '../../lib/text.ts';
import type { UserInput, Version } from '../versions/manifest.ts';

export type SettingEntry = UserInput & { readonly seqNum: number; readonly newfield: string };

type UpgradeSettings = { readonly userInputs: readonly SettingEntry[] };

const latestPatch: UserInput = {
  name: 'updateToLatestPatch',
  id: 'updateToLatestPatch',
  description: 'updateToLatestPatch',
  type: 'Boolean',
  value: true,
  defaultValue: false,
  isManagerInvisibleField: true,
  required: true,
};

const license = (required: boolean): UserInput => ({
  name: 'licenseUpload',
  id: 'licenseUpload',
  description: 'licenseFieldDescToken',
  type: 'File',
  value: '',
  required,
  validFileExtensions: ['json'],
});

const volumes: UserInput = {
  name: 'volumesConfig',
  id: 'volumesConfig',
  description: 'Storage configurations for the persistent volumes that the upgrade needs.',
  type: 'JSON',
  value: {},
  required: false,
};

/** The inputs of all versions on a path. Inputs with the same id are one input, which is required if one of them is. */
export function settingsOf(...path: readonly Version[]): UpgradeSettings {
  const releases = path.filter(({ type }) => type === 'release');
  if (releases.length === 0) return { userInputs: [] };
  const inputs = new Map<string, UserInput>();
  for (const input of releases.flatMap(inputsOf)) {
    const known = inputs.get(input.id);
    inputs.set(input.id, known ? { ...known, required: known.required === true || input.required } : input);
  }
  inputs.delete(volumes.id);
  const all = [...inputs.values(), volumes];
  // Pages build HTML ids from `seqNum`, so it must be unique: a value from the form is ignored.
  return {
    userInputs: all.map(({ seqNum: _given, ...input }, seqNum) => ({ seqNum, ...input, newfield: '' })),
  };
}

function inputsOf({ userForm, newLicensesRequired }: Version): readonly UserInput[] {
  const formInputs = userForm.flatMap(({ groupInputs }) => groupInputs);
  return formInputs.length > 0 ? formInputs : [latestPatch, license(newLicensesRequired)];
}

/** A version has at most 200 inputs, so a longer list has unknown or repeated ids. */
const maxEntries = 1000;

/** JSON files are parsed in the event loop, so their size is limited. The content of other files is not read. */
export const jsonFileLimits = {
  bytes: 1024 ** 2,
  bytesTogether: 4 * 1024 ** 2,
  values: 200_000,
  nesting: 64,
};

export type SettingFile = {
  readonly name: string;
  /** Undefined if the content was not read. */
  readonly bytes: Uint8Array | undefined;
  /** Why a setting that expects JSON does not accept the file. */
  readonly jsonProblem: string | undefined;
};

export function readSettingFile(name: string, bytes: Uint8Array): SettingFile {
  return { name, bytes, jsonProblem: findJsonProblem(bytes) };
}

export const tooLargeForJson = `must be at most ${jsonFileLimits.bytes} bytes.`;

function findJsonProblem(bytes: Uint8Array): string | undefined {
  if (bytes.length > jsonFileLimits.bytes) return tooLargeForJson;
  const excess = findExcess(bytes, jsonFileLimits);
  if (excess !== undefined) return excess;
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return undefined;
  } catch {
    return 'must be valid JSON.';
  }
}

type SentSettings = { readonly userInputs?: unknown };

/** `licenseFile` and `updateToLatestPatch` are deprecated since 11.0: settings of `upgradeSettings` replace them. */
export type SubmittedSettings = {
  readonly upgradeSettings: SentSettings | undefined;
  readonly licenseFile: SettingFile | undefined;
  readonly updateToLatestPatch: boolean | undefined;
  readonly findUpload: (id: string) => SettingFile | undefined;
};

export type SettingProblem = Problem & { readonly setting?: string };

/** The ids of the uploads whose content the check needs. */
export function findUploadsToRead(
  path: readonly Version[],
  sent: SentSettings | undefined,
): ReadonlySet<string> {
  const read = settingsOf(...path).userInputs.filter(
    (entry) => entry.type === 'File' && (expectsJson(entry) || entry.id === 'licenseUpload'),
  );
  const readIds = new Set<unknown>(read.map(({ id }) => id));
  const sentEntries = entriesIn(sent).filter(({ id }) => readIds.has(id));
  return new Set(sentEntries.flatMap(({ value }) => (typeof value === 'string' ? value.trim() : [])));
}

export function entriesIn(sent: SentSettings | undefined): SentEntry[] {
  const inputs = sent?.userInputs;
  return Array.isArray(inputs) && inputs.length <= maxEntries ? (inputs as unknown[]).map(toEntry) : [];
}

function expectsJson(entry: SettingEntry): boolean {
  return extensionsOf(entry).some((allowed) => allowed.toLowerCase() === 'json');
}

type SentEntry = { readonly id?: unknown; readonly value?: unknown };

function toEntry(entry: unknown): SentEntry {
  return typeof entry === 'object' && entry !== null ? entry : {};
}

export function readSettings(path: readonly Version[], submitted: SubmittedSettings) {
  const { userInputs } = settingsOf(...path);
  const { values, problems } = readValues(userInputs, submitted.upgradeSettings);
  const since11 = path.find(({ type, version }) => type === 'release' && Number(version.split('.')[0]) >= 11);
  if (submitted.upgradeSettings === undefined && since11) {
    problems.push(inSettings(`is required for a release to ${since11.version}.`));
  }
  const value = values.get('updateToLatestPatch');
  const chosenInSettings = typeof value === 'boolean' ? value : undefined;
  const chosen = chosenInSettings ?? submitted.updateToLatestPatch;
  if (submitted.updateToLatestPatch !== undefined && submitted.updateToLatestPatch !== chosen) {
    problems.push({
      field: 'updateToLatestPatch',
      message: `is ${submitted.updateToLatestPatch}, but ${chosen} in upgradeSettings; send one of them.`,
    });
  }
  const uploads: string[] = [];
  for (const entry of userInputs) {
    if (entry.type === 'File') problems.push(...checkFile(entry, values.get(entry.id), submitted, uploads));
  }
  const fallback = userInputs.find(({ id }) => id === 'updateToLatestPatch')?.defaultValue === true;
  return { updateToLatestPatch: chosen ?? fallback, uploads, problems };
}

function readValues(userInputs: readonly SettingEntry[], sent: SentSettings | undefined) {
  const problems: SettingProblem[] = [];
  const values = new Map<string, unknown>();
  const list = sent?.userInputs === undefined ? [] : sent.userInputs;
  if (!Array.isArray(list) || list.length > maxEntries) {
    const rule = Array.isArray(list) ? `have at most ${maxEntries} entries` : 'be an array';
    return { values, problems: [inSettings(`userInputs must ${rule}.`)] };
  }
  // A patch has no inputs, but accepts `updateToLatestPatch`.
  const inputs = userInputs.length === 0 ? [latestPatch] : userInputs;
  const types = new Map(inputs.map(({ id, type }) => [id, type]));
  for (const id of Object.keys(sent ?? {}).filter((name) => types.has(name)))
    problems.push(
      inSettings(`${id} must be an entry of userInputs: {"userInputs":[{"id":"${id}","value":…}]}.`, id),
    );
  let known = `; known are ${[...types.keys()].join(', ')}`;
  for (const [index, { id, value }] of (list as unknown[]).map(toEntry).entries()) {
    const where = `userInputs[${index}]`;
    if (typeof id !== 'string' || !types.has(id)) {
      const given = truncate(JSON.stringify(id ?? null));
      problems.push(inSettings(`${where} must have a known id, not ${given}${known}.`));
      known = '';
    } else if (values.has(id)) {
      problems.push(inSettings(`${where} repeats the id ${id}.`));
    } else {
      const expected = violatedType(types.get(id) ?? '', value);
      if (expected) problems.push(inSettings(`the value of ${id} must be ${expected}.`, id));
      values.set(id, value);
    }
  }
  return { values, problems };
}

function violatedType(type: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (type === 'Boolean') return typeof value === 'boolean' ? undefined : 'true or false';
  if (type === 'File') return typeof value === 'string' ? undefined : 'the id of an upload, as text';
  return type !== 'JSON' || isJsonObject(value) ? undefined : 'a JSON object';
}

function checkFile(
  entry: SettingEntry,
  value: unknown,
  submitted: SubmittedSettings,
  uploads: string[],
): SettingProblem[] {
  const licenseFile = entry.id === 'licenseUpload' ? submitted.licenseFile : undefined;
  const uploadId = typeof value === 'string' ? value.trim() : '';
  const refuse = (message: string) => inSettings(`${entry.id} ${message}`, entry.id);
  if (uploadId === '') {
    if (licenseFile)
      return licenseFile.jsonProblem === undefined
        ? []
        : [{ field: 'licenseFile', message: licenseFile.jsonProblem }];
    const instead = entry.id === 'licenseUpload' ? ', or send licenseFile' : '';
    return entry.required === true ? [refuse(`needs the id of an upload${instead}.`)] : [];
  }
  const upload = submitted.findUpload(uploadId);
  if (!upload) return [refuse(`names the upload ${truncate(uploadId)}, which does not exist.`)];
  uploads.push(uploadId);
  const problems: SettingProblem[] = [];
  if (!fileFilter(entry)(upload.name)) {
    const allowed = extensionsOf(entry).join(', ');
    problems.push(refuse(`must be a file of the type ${allowed}; ${upload.name} is not one.`));
  }
  if (expectsJson(entry) && upload.jsonProblem !== undefined) {
    problems.push(refuse(`names ${upload.name}, which ${upload.jsonProblem}`));
  }
  if (licenseFile && !isSameContent(licenseFile, upload)) {
    problems.push({
      field: 'licenseFile',
      message: 'differs from the upload that licenseUpload names in upgradeSettings; send one of them.',
    });
  }
  return problems;
}

function inSettings(message: string, setting?: string): SettingProblem {
  return { field: 'upgradeSettings', message, ...(setting !== undefined && { setting }) };
}

export function extensionsOf({ validFileExtensions }: UserInput): readonly string[] {
  return (Array.isArray(validFileExtensions) ? validFileExtensions : []).map(String);
}

/** Returns a function for many files, because a setting may allow many extensions. */
export function fileFilter(entry: UserInput): (fileName: string) => boolean {
  const extensions = new Set(extensionsOf(entry).map((extension) => extension.toLowerCase()));
  return (fileName) => {
    const dot = fileName.lastIndexOf('.');
    return extensions.size === 0 || (dot >= 0 && extensions.has(fileName.slice(dot + 1).toLowerCase()));
  };
}

function isSameContent(one: SettingFile, other: SettingFile): boolean {
  return one.bytes !== undefined && other.bytes !== undefined && Buffer.compare(one.bytes, other.bytes) === 0;
}
