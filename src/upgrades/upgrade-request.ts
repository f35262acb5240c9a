// What is asked of an upgrade, made ready: its fields, the uploads they name, and everything that stands against it.
import type { FormFile } from '../rest/form.ts';
import type { Store } from '../store/store.ts';
import type { Reader } from '../store/transaction.ts';
import { uploadContents, uploads } from '../uploads/upload.ts';
import type { Executor } from './executors/executor.ts';
import { reasonNotToStart } from './job.ts';
import type { Version } from './manifest.ts';
import { type Prepared, prepareUpgrade } from './preflight.ts';
import type { Given } from './settings.ts';
import type { Inventory } from './workloads.ts';

export type UpgradeValues = {
  readonly versionManifest: string;
  readonly upgradeSettings: Readonly<Record<string, unknown>> | undefined;
  readonly licenseFile?: FormFile | undefined;
  readonly updateToLatestPatch?: boolean | undefined;
  readonly versionManifestFile?: readonly Version[] | undefined;
};

/** The uploads that the settings name, with what is in them. */
export type Contents = ReadonlyMap<string, Uint8Array>;

export async function fetchContents(
  store: Store,
  { upgradeSettings }: Pick<UpgradeValues, 'upgradeSettings'>,
): Promise<Contents> {
  const inputs = upgradeSettings?.userInputs;
  const values = (Array.isArray(inputs) ? inputs : []).map(
    (input: unknown) => (input as { value?: unknown } | null)?.value,
  );
  const ids = values.flatMap((value) => (typeof value === 'string' ? value.trim() : []));
  const contents = new Map<string, Uint8Array>();
  for (const id of ids.filter((id) => store.get(uploads, id))) {
    const content = await store.fetch(uploadContents, id);
    if (content) contents.set(id, content.bytes);
  }
  return contents;
}

export function prepare(
  reader: Reader,
  values: UpgradeValues,
  contents: Contents,
  survey: Inventory,
): Prepared {
  const { licenseFile, upgradeSettings, updateToLatestPatch, versionManifestFile } = values;
  const given: Given = {
    upgradeSettings,
    updateToLatestPatch,
    licenseFile: licenseFile && { name: licenseFile.filename, bytes: licenseFile.bytes },
    findUpload: (id) => {
      const upload = reader.get(uploads, id);
      const bytes = contents.get(id);
      return upload && bytes && { name: upload.itemName, bytes };
    },
  };
  return prepareUpgrade(reader, values.versionManifest, given, versionManifestFile, survey);
}

/** What an upgrade would do, and everything that stands against it at the moment. */
export async function planUpgrade(
  store: Store,
  executor: Executor,
  values: UpgradeValues,
): Promise<Prepared> {
  const survey = await executor.inventory();
  const prepared = prepare(store, values, await fetchContents(store, values), survey);
  const reason = reasonNotToStart(store, prepared);
  return reason === undefined ? prepared : { ...prepared, problems: [...prepared.problems, reason] };
}
