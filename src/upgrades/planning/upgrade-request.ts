// The request for an upgrade: its fields, the inputs it needs, and its check.
import { maxProblems } from '../../lib/errors.ts';
import type { Reader } from '../../store/state.ts';
import type { ReadableStore } from '../../store/store.ts';
import type { Upload } from '../../uploads/upload.ts';
import type { Executor } from '../executors/executor.ts';
import { reasonNotToStart } from '../jobs/job-to-repair.ts';
import { currentManifest, deployment } from '../versions/deployment.ts';
import { findPath } from '../versions/hops.ts';
import type { Version } from '../versions/manifest.ts';
import { updatedWorkloads } from './plan.ts';
import { type PreparedJob, prepareUpgrade } from './preflight.ts';
import {
  type SettingFile,
  type SubmittedSettings,
  findNamedUploads,
  findUploadsToRead,
  jsonFileLimits,
  readSettingFile,
  tooLargeForJson,
  unreadSettingFile,
} from './settings.ts';
import type { ImageCheck, Inventory } from './workloads.ts';

export type UpgradeValues = {
  readonly versionManifest: string;
  readonly upgradeSettings: Readonly<Record<string, unknown>> | undefined;
  readonly licenseFile?: { readonly filename: string; readonly bytes: Uint8Array } | undefined;
  readonly updateToLatestPatch?: boolean | undefined;
  readonly versionManifestFile?: readonly Version[] | undefined;
};

/** These inputs are read before the transaction, because a transaction is synchronous. */
export type UpgradeInputs = {
  readonly inventory: Inventory;
  readonly licenseFile: SettingFile | undefined;
  /** The ids of the uploads that the settings name. Some may not exist. */
  readonly uploadIds: readonly string[];
  readonly uploads: ReadonlyMap<string, Upload>;
  /** The uploads whose content the check needs. */
  readonly files: ReadonlyMap<string, SettingFile>;
  /** Undefined if the executor looks up no images. */
  readonly imageCheck: ImageCheck | undefined;
};

/** A lookup of images may take a minute. */
type PreviewOptions = { readonly checkImages: boolean };

/** Reads the inputs, and prepares the job that they give in the present state. */
export async function previewUpgrade(
  store: ReadableStore,
  executor: Executor,
  values: UpgradeValues,
  { checkImages }: PreviewOptions = { checkImages: true },
): Promise<{ readonly inputs: UpgradeInputs; readonly prepared: PreparedJob }> {
  const { licenseFile, upgradeSettings } = values;
  const uploadIds = findNamedUploads(upgradeSettings);
  const uploads = new Map<string, Upload>();
  for (const id of uploadIds) {
    const upload = await store.uploads.find(id);
    if (upload) uploads.set(id, upload);
  }
  const inputs: UpgradeInputs = {
    inventory: await executor.inventory(),
    licenseFile: licenseFile && readSettingFile(licenseFile.filename, licenseFile.bytes),
    uploadIds,
    uploads,
    files: await readFiles(store, values, uploads),
    imageCheck: undefined,
  };
  const prepared = prepare(store, values, inputs);
  const imageCheck = checkImages ? await executor.checkImages(updatedWorkloads(prepared.plan)) : undefined;
  if (!imageCheck) return { inputs, prepared };
  return { inputs: { ...inputs, imageCheck }, prepared: withImageCheck(prepared, imageCheck) };
}

async function readFiles(
  store: ReadableStore,
  { versionManifest, versionManifestFile, upgradeSettings }: UpgradeValues,
  uploads: ReadonlyMap<string, Upload>,
): Promise<ReadonlyMap<string, SettingFile>> {
  const manifest = versionManifestFile ?? currentManifest(store);
  const path = findPath(manifest, store.read(deployment), versionManifest);
  const files = new Map<string, SettingFile>();
  let room = jsonFileLimits.bytesTogether;
  for (const id of findUploadsToRead(path, upgradeSettings)) {
    const upload = uploads.get(id);
    if (!upload) continue;
    const { itemName, size } = upload;
    if (size > jsonFileLimits.bytes) {
      files.set(id, unreadSettingFile(itemName, tooLargeForJson));
      continue;
    }
    room -= size;
    const bytes = room < 0 ? undefined : await store.uploads.content(id);
    const noRoom = `exceeds the ${jsonFileLimits.bytesTogether} bytes for all JSON files of the settings.`;
    files.set(id, bytes ? readSettingFile(itemName, bytes) : unreadSettingFile(itemName, noRoom));
  }
  return files;
}

/** `findUpload` is only called with ids of `inputs.uploadIds`. */
export function prepare(
  reader: Reader,
  values: UpgradeValues,
  inputs: UpgradeInputs,
  findUpload: (id: string) => Upload | undefined = (id) => inputs.uploads.get(id),
): PreparedJob {
  const { upgradeSettings, updateToLatestPatch, versionManifestFile } = values;
  const submitted: SubmittedSettings = {
    upgradeSettings,
    updateToLatestPatch,
    licenseFile: inputs.licenseFile,
    findUpload: (id) => {
      const upload = inputs.uploadIds.includes(id) ? findUpload(id) : undefined;
      return (
        upload &&
        (inputs.files.get(id) ??
          unreadSettingFile(upload.itemName, 'was not checked; send the request again.'))
      );
    },
  };
  const prepared = prepareUpgrade(
    reader,
    values.versionManifest,
    submitted,
    versionManifestFile,
    inputs.inventory,
  );
  return inputs.imageCheck ? withImageCheck(prepared, inputs.imageCheck) : prepared;
}

/** Another request may have imported a manifest since the images were looked up. */
function withImageCheck(prepared: PreparedJob, { images, problems, notices }: ImageCheck): PreparedJob {
  const planned = updatedWorkloads(prepared.plan).flatMap(({ parts }) => parts.map(({ image }) => image));
  const changed = planned.every((image) => images.has(image))
    ? []
    : [{ field: 'images', message: 'have changed since they were looked up; send the request again.' }];
  return {
    ...prepared,
    problems: [...prepared.problems, ...problems, ...changed].slice(0, maxProblems),
    notices: [...prepared.notices, ...notices].slice(0, maxProblems),
  };
}

/** What an upgrade would do, and everything that blocks it. */
export async function planUpgrade(
  store: ReadableStore,
  executor: Executor,
  values: UpgradeValues,
  options?: PreviewOptions,
): Promise<PreparedJob> {
  const { prepared } = await previewUpgrade(store, executor, values, options);
  const message = reasonNotToStart(store, prepared);
  return message === undefined ? prepared : { ...prepared, problems: [...prepared.problems, { message }] };
}
