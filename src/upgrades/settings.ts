// Upgrade settings: the inputs that a version asks for, and the check of the values that an administrator sends.
import type { Problem } from '../errors.ts';
import type { UserInput, Version } from './manifest.ts';

export type SettingEntry = UserInput & { readonly seqNum: number; readonly newfield: string };

export type UpgradeSettings = { readonly userInputs: readonly SettingEntry[] };

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

export function settingsOf(version: Version): UpgradeSettings {
  if (version.type === 'patch') return { userInputs: [] };
  const formInputs = version.userForm.flatMap(({ groupInputs }) => groupInputs);
  const inputs = formInputs.length > 0 ? formInputs : [latestPatch, license(version.newLicensesRequired)];
  const all = [...inputs.filter(({ id }) => id !== volumes.id), volumes];
  // Pages build HTML ids from `seqNum`, so it must be unique: a value from the form is ignored.
  return {
    userInputs: all.map(({ seqNum: _given, ...input }, seqNum) => ({ seqNum, ...input, newfield: '' })),
  };
}

export type SettingFile = { readonly name: string; readonly bytes: Uint8Array };

/** `licenseFile` and `updateToLatestPatch` are deprecated since 11.0: settings of `upgradeSettings` replace them. */
export type SubmittedSettings = {
  readonly upgradeSettings: { readonly userInputs?: unknown } | undefined;
  readonly licenseFile: SettingFile | undefined;
  readonly updateToLatestPatch: boolean | undefined;
  readonly findUpload: (id: string) => SettingFile | undefined;
};

export type ReadSettings = {
  readonly updateToLatestPatch: boolean;
  readonly uploads: readonly string[];
  readonly problems: readonly SettingProblem[];
};

export type SettingProblem = Problem & { readonly setting?: string };

export function readSettings(version: Version, submitted: SubmittedSettings): ReadSettings {
  const problems: SettingProblem[] = [];
  const values = readValues(version, submitted, problems);
  if (submitted.upgradeSettings === undefined && version.type === 'release' && isSince11(version.version)) {
    problems.push(inSettings(`is required for a release to ${version.version}.`));
  }
  const value = values.get('updateToLatestPatch');
  const chosenInSettings = typeof value === 'boolean' ? value : undefined;
  if (
    chosenInSettings !== undefined &&
    submitted.updateToLatestPatch !== undefined &&
    chosenInSettings !== submitted.updateToLatestPatch
  ) {
    problems.push({
      field: 'updateToLatestPatch',
      message: `is ${submitted.updateToLatestPatch}, but ${chosenInSettings} in upgradeSettings; send one of them.`,
    });
  }
  const uploads: string[] = [];
  const entries = settingsOf(version).userInputs;
  for (const entry of entries) {
    if (entry.type === 'File') problems.push(...checkFile(entry, values.get(entry.id), submitted, uploads));
  }
  const fallback = entries.find(({ id }) => id === 'updateToLatestPatch')?.defaultValue === true;
  const chosen = chosenInSettings ?? submitted.updateToLatestPatch ?? fallback;
  return { updateToLatestPatch: chosen, uploads, problems };
}

function readValues(
  version: Version,
  { upgradeSettings }: SubmittedSettings,
  problems: SettingProblem[],
): Map<string, unknown> {
  const values = new Map<string, unknown>();
  const list = upgradeSettings?.userInputs === undefined ? [] : upgradeSettings.userInputs;
  if (!Array.isArray(list)) {
    problems.push(inSettings('userInputs must be an array.'));
    return values;
  }
  // A patch has no inputs, but accepts `updateToLatestPatch`.
  const inputs = version.type === 'patch' ? [latestPatch] : settingsOf(version).userInputs;
  const types = new Map(inputs.map(({ id, type }) => [id, type]));
  for (const [index, entry] of (list as unknown[]).entries()) {
    const { id, value } = (typeof entry === 'object' && entry !== null ? entry : {}) as {
      id?: unknown;
      value?: unknown;
    };
    const where = `userInputs[${index}]`;
    if (typeof id !== 'string' || !types.has(id)) {
      const known = [...types.keys()].join(', ');
      problems.push(
        inSettings(`${where} must have a known id, not ${JSON.stringify(id ?? null)}; known are ${known}.`),
      );
    } else if (values.has(id)) {
      problems.push(inSettings(`${where} repeats the id ${id}.`));
    } else {
      const expected = violatedType(types.get(id) ?? '', value);
      if (expected) problems.push(inSettings(`the value of ${id} must be ${expected}.`, id));
      values.set(id, value);
    }
  }
  return values;
}

function violatedType(type: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (type === 'Boolean') return typeof value === 'boolean' ? undefined : 'true or false';
  if (type === 'File') return typeof value === 'string' ? undefined : 'the id of an upload, as text';
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return type !== 'JSON' || isObject ? undefined : 'a JSON object';
}

function checkFile(
  entry: SettingEntry,
  value: unknown,
  submitted: SubmittedSettings,
  uploads: string[],
): SettingProblem[] {
  const licenseFile = entry.id === 'licenseUpload' ? submitted.licenseFile : undefined;
  const uploadId = typeof value === 'string' ? value.trim() : '';
  if (uploadId === '') {
    if (licenseFile)
      return isJson(licenseFile.bytes) ? [] : [{ field: 'licenseFile', message: 'must be a JSON file.' }];
    const instead = entry.id === 'licenseUpload' ? ', or send licenseFile' : '';
    return entry.required === true
      ? [inSettings(`${entry.id} needs the id of an upload${instead}.`, entry.id)]
      : [];
  }
  const upload = submitted.findUpload(uploadId);
  if (!upload)
    return [inSettings(`${entry.id} names the upload ${uploadId}, which does not exist.`, entry.id)];
  uploads.push(uploadId);
  const problems: SettingProblem[] = [];
  const extensions = extensionsOf(entry);
  if (!allowsFile(entry, upload.name)) {
    const allowed = extensions.join(', ');
    problems.push(
      inSettings(`${entry.id} must be a file of the type ${allowed}; ${upload.name} is none.`, entry.id),
    );
  }
  if (extensions.some((allowed) => allowed.toLowerCase() === 'json') && !isJson(upload.bytes)) {
    problems.push(inSettings(`${entry.id} names ${upload.name}, which is not valid JSON.`, entry.id));
  }
  if (licenseFile && !Buffer.from(licenseFile.bytes).equals(upload.bytes)) {
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

export function allowsFile(entry: UserInput, fileName: string): boolean {
  const extensions = extensionsOf(entry);
  const extension = /\.([^.]+)$/.exec(fileName)?.[1]?.toLowerCase();
  return extensions.length === 0 || extensions.some((allowed) => allowed.toLowerCase() === extension);
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

function isSince11(version: string): boolean {
  return Number(version.split('.')[0]) >= 11;
}
