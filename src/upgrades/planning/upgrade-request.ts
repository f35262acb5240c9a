// The request for an upgrade: its fields, the inputs it needs, and the job that they give.
import { maxProblems } from '../../lib/errors.ts';
import type { ReadableStore } from '../../store/store.ts';
import { uploads } from '../../uploads/upload.ts';
import type { Executor } from '../executors/executor.ts';
import { reasonNotToStart } from '../jobs/job-to-repair.ts';
import { currentManifest, deployment } from '../versions/deployment.ts';
import { findPath } from '../versions/hops.ts';
import type { Version } from '../versions/manifest.ts';
import { updatedWorkloads } from './plan.ts';
import { type PreparedJob, prepareUpgrade } from './preflight.ts';
import { templatePath } from './workloads.ts';
import {
  type SettingFile,
  type SubmittedSettings,
  findUploadsToRead,
  jsonFileLimits,
  readSettingFile,
  tooLargeForJson,
  unreadSettingFile,
} from './settings.ts';

export type UpgradeValues = {
  readonly versionManifest: string;
  readonly upgradeSettings: Readonly<Record<string, unknown>> | undefined;
  readonly licenseFile?: { readonly filename: string; readonly bytes: Uint8Array } | undefined;
  readonly updateToLatestPatch?: boolean | undefined;
  readonly versionManifestFile?: readonly Version[] | undefined;
};

/** A lookup of images may take a minute. A rollback has none: the nodes had its images before. */
type PrepareOptions = { readonly checkImages: boolean };

/** Reads the inputs of the request, and prepares the job that they give in the present state. */
export async function prepareRequest(
  store: ReadableStore,
  executor: Executor,
  values: UpgradeValues,
  { checkImages }: PrepareOptions = { checkImages: true },
): Promise<PreparedJob> {
  const { versionManifest, upgradeSettings, updateToLatestPatch, licenseFile, versionManifestFile } = values;
  const inventory = await executor.inventory();
  // Another process may have stored a file a moment ago.
  await store.refresh();
  const files = await readFiles(store, values);
  const submitted: SubmittedSettings = {
    upgradeSettings,
    updateToLatestPatch,
    licenseFile: licenseFile && readSettingFile(licenseFile.filename, licenseFile.bytes),
    findUpload: (id) => {
      const upload = store.get(uploads, id);
      const unread = 'was not checked; send the request again.';
      return upload && (files.get(id) ?? unreadSettingFile(upload.itemName, unread));
    },
  };
  const prepared = prepareUpgrade(store, versionManifest, submitted, versionManifestFile, inventory);
  const used = new Set(prepared.plan.steps.map(({ template }) => templatePath(template ?? '')));
  const templates = inventory.templates.filter(({ name }) => used.has(name));
  const found = checkImages
    ? await executor.checkImages([...updatedWorkloads(prepared.plan), ...templates])
    : undefined;
  return {
    ...prepared,
    problems: [...prepared.problems, ...(found?.problems ?? [])].slice(0, maxProblems),
    notices: [...prepared.notices, ...(found?.notices ?? [])].slice(0, maxProblems),
  };
}

async function readFiles(
  store: ReadableStore,
  { versionManifest, versionManifestFile, upgradeSettings }: UpgradeValues,
): Promise<ReadonlyMap<string, SettingFile>> {
  const manifest = versionManifestFile ?? currentManifest(store);
  const path = findPath(manifest, store.read(deployment), versionManifest);
  const files = new Map<string, SettingFile>();
  let room = jsonFileLimits.bytesTogether;
  for (const id of findUploadsToRead(path, upgradeSettings)) {
    const upload = store.get(uploads, id);
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

/** What an upgrade would do, and everything that blocks it. */
export async function planUpgrade(
  store: ReadableStore,
  executor: Executor,
  values: UpgradeValues,
  options?: PrepareOptions,
): Promise<PreparedJob> {
  const prepared = await prepareRequest(store, executor, values, options);
  const message = reasonNotToStart(store, prepared);
  return message === undefined ? prepared : { ...prepared, problems: [...prepared.problems, { message }] };
}
