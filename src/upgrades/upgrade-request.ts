// The request for an upgrade: its fields, the inputs it needs, and its check.
import type { Store } from '../store/store.ts';
import type { Reader } from '../store/transaction.ts';
import { uploadContents, uploads } from '../uploads/upload.ts';
import type { Executor } from './executors/executor.ts';
import { reasonNotToStart } from './job.ts';
import type { Version } from './manifest.ts';
import { type PreparedJob, prepareUpgrade } from './preflight.ts';
import type { SubmittedSettings } from './settings.ts';
import type { Inventory } from './workloads.ts';

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
  readonly uploadContents: ReadonlyMap<string, Uint8Array>;
};

export async function readUpgradeInputs(
  store: Store,
  executor: Executor,
  values: UpgradeValues,
): Promise<UpgradeInputs> {
  return {
    inventory: await executor.inventory(),
    uploadContents: await readUploads(store, values),
  };
}

async function readUploads(
  store: Store,
  { upgradeSettings }: UpgradeValues,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const inputs = upgradeSettings?.userInputs;
  const values = (Array.isArray(inputs) ? inputs : []).map(
    (input: unknown) => (input as { value?: unknown } | null)?.value,
  );
  const ids = new Set(values.flatMap((value) => (typeof value === 'string' ? value.trim() : [])));
  const contents = new Map<string, Uint8Array>();
  for (const id of ids) {
    const content = store.get(uploads, id) && (await store.fetch(uploadContents, id));
    if (content) contents.set(id, content.bytes);
  }
  return contents;
}

export function prepare(reader: Reader, values: UpgradeValues, inputs: UpgradeInputs): PreparedJob {
  const { licenseFile, upgradeSettings, updateToLatestPatch, versionManifestFile } = values;
  const submitted: SubmittedSettings = {
    upgradeSettings,
    updateToLatestPatch,
    licenseFile: licenseFile && { name: licenseFile.filename, bytes: licenseFile.bytes },
    findUpload: (id) => {
      const upload = reader.get(uploads, id);
      const bytes = inputs.uploadContents.get(id);
      return upload && bytes && { name: upload.itemName, bytes };
    },
  };
  return prepareUpgrade(reader, values.versionManifest, submitted, versionManifestFile, inputs.inventory);
}

export async function planUpgrade(
  store: Store,
  executor: Executor,
  values: UpgradeValues,
): Promise<PreparedJob> {
  const prepared = prepare(store, values, await readUpgradeInputs(store, executor, values));
  const message = reasonNotToStart(store, prepared);
  return message === undefined ? prepared : { ...prepared, problems: [...prepared.problems, { message }] };
}
