// REST edge of the upgrade procedure: its operations beneath the upgrades resource (spec 4.4, 4.5, contract 6).
import { formatProblem, invalid } from '../errors.ts';
import { type Checked, operation, success } from '../rest/resource.ts';
import { type Json, asJson } from '../lib/json.ts';
import { type Field, boolean, file, refine, required } from '../rest/fields.ts';
import { jsonObject, reference } from '../rest/json-fields.ts';
import type { Store } from '../store/store.ts';
import type { Reader } from '../store/transaction.ts';
import type { Runtime } from '../runtime.ts';
import type { Executor } from './executors/executor.ts';
import { startJob } from './job.ts';
import type { OnJobChange } from './job-table.ts';
import { type Version, readManifest } from './manifest.ts';
import { planToJson } from './plan.ts';
import { type PreparedJob, prepareRollback } from './preflight.ts';
import {
  type UpgradeInputs,
  type UpgradeValues,
  planUpgrade,
  prepare,
  readUpgradeInputs,
} from './upgrade-request.ts';
import {
  deployment,
  findVersion,
  importedManifest,
  installedVersions,
  currentManifest,
} from './deployment.ts';
import type { JobRunner } from './job-runner.ts';
import { settingsOf } from './settings.ts';
import { jobStatus } from './job-status.ts';

export type OperationsOptions = {
  store: Store;
  runtime: Runtime;
  executor: Executor;
  runner: JobRunner;
  tell: OnJobChange;
};

const versionField = required(reference('The version, by its id in the version manifest: {"id": "…"}.'));

export function upgradeOperations({ store, runtime, executor, runner, tell }: OperationsOptions) {
  /** A version manifest as a file: the versions in it, or all reasons against it. */
  function manifestField(description: string): Field<readonly Version[] | undefined> {
    return refine(file(description), ({ bytes }) => {
      const result = readManifest(bytes, installedVersions(store.read(deployment)));
      return 'versions' in result ? { value: result.versions } : { problem: result.problems };
    });
  }

  const upgradeFields = {
    versionManifest: versionField,
    upgradeSettings: jsonObject(
      'The settings of getUpgradeSettings for the same id, edited. Required for a release from 11.0 on.',
    ),
    licenseFile: file('A license file. Deprecated since 11.0: the setting licenseUpload replaces it.'),
    updateToLatestPatch: boolean('Deprecated since 11.0: the setting of the same name replaces it.'),
    versionManifestFile: manifestField(
      'A version manifest to use, and to keep once the upgrade is accepted.',
    ),
  };

  /** Everything that blocks an upgrade, as far as its fields can be read. */
  async function checkUpgrade({
    values,
  }: {
    values: Partial<UpgradeValues>;
  }): Promise<Checked<UpgradeInputs>> {
    const { versionManifest, upgradeSettings } = values;
    if (versionManifest === undefined || !('versionManifestFile' in values)) return { problems: [] };
    const readable = { ...values, versionManifest, upgradeSettings };
    const inputs = await readUpgradeInputs(store, executor, readable);
    const { problems } = prepare(store, readable, inputs);
    // Without the settings only the version itself can be judged.
    const hasSettings = 'upgradeSettings' in values && 'updateToLatestPatch' in values;
    return {
      problems: hasSettings ? problems : problems.filter(({ field }) => field === 'versionManifest'),
      prepared: inputs,
    };
  }

  const knownVersion = (id: string) => findVersion(currentManifest(store), store.read(deployment), id);

  /** `prepareIn` runs inside the transaction, so that it checks the state the job starts from. */
  async function start(
    prepareIn: (reader: Reader) => PreparedJob,
    startedBy: string,
    manifest?: readonly Version[],
  ): Promise<Json> {
    const id = runtime.newId();
    const at = runtime.now();
    const job = await runner.run(() =>
      store.update((transaction) => {
        const { problems, to, ...prepared } = prepareIn(transaction);
        if (problems.length > 0 || to === null) throw invalid(problems);
        if (manifest) transaction.write(importedManifest, { versions: manifest, importedAt: at });
        const started = startJob(transaction, { ...prepared, id, startedBy, runner: store.self, to }, at);
        tell(transaction, started, at);
        return started;
      }),
    );
    const accepted = jobStatus(store, job, at);
    // The answer shows the job as it was accepted, whatever the runner adds meanwhile.
    const answer = { ...accepted, status: { ...accepted.status, messages: [...accepted.status.messages] } };
    return answer;
  }

  return {
    getUpgradeSettings: operation({
      title: 'Get upgrade settings',
      description: 'The settings a version asks for. Edit their values and pass the whole object to upgrade.',
      access: 'administrator',
      effect: 'reads',
      fields: { upgradeId: versionField },
      check: ({ values: { upgradeId } }) => ({
        problems:
          upgradeId === undefined || knownVersion(upgradeId)
            ? []
            : [{ field: 'upgradeId', message: `there is no version with the id ${upgradeId}.` }],
      }),
      run: ({ values: { upgradeId } }) => {
        const version = knownVersion(upgradeId);
        return { json: asJson(version ? settingsOf(version) : { userInputs: [] }) };
      },
    }),
    plan: operation({
      title: 'Plan',
      description: 'What an upgrade would do, and what stands against it. Starts nothing.',
      access: 'administrator',
      effect: 'reads',
      fields: upgradeFields,
      run: async ({ values }) => {
        const { from, to, plan, problems, notices } = await planUpgrade(store, executor, values);
        const known = notices.length > 0 ? { notices } : {};
        return {
          json: { from, to, steps: planToJson(plan), problems: problems.map(formatProblem), ...known },
        };
      },
    }),
    upgrade: operation({
      title: 'Upgrade',
      description:
        'Starts an upgrade of the deployment to a patch or a release. The upgrades resource tells its progress.',
      access: 'administrator',
      effect: 'writes',
      fields: upgradeFields,
      check: checkUpgrade,
      run: async ({ values, caller, prepared: inputs }) => ({
        json: await start(
          (reader) => prepare(reader, values, inputs),
          caller?.username ?? '',
          values.versionManifestFile,
        ),
      }),
    }),
    rollback: operation({
      title: 'Rollback',
      description: 'Takes back patches: names the version to go back to, one that checkRollback lists.',
      access: 'administrator',
      effect: 'writes',
      fields: { versionManifest: versionField },
      run: async ({ values, caller }) => {
        const inventory = await executor.inventory();
        const json = await start(
          (reader) => prepareRollback(reader, values.versionManifest, inventory),
          caller?.username ?? '',
        );
        return { json };
      },
    }),
    importManifest: operation({
      title: 'Import manifest',
      description: 'Replaces the version manifest for all that is not installed.',
      access: 'administrator',
      effect: 'writes',
      fields: {
        manifestFile: required(
          manifestField('A version manifest: a JSON array of versions, or {"versions": […]}.'),
        ),
      },
      run: async ({ values }) => {
        const { manifestFile: versions } = values;
        const importedAt = runtime.now();
        await store.update((transaction) => transaction.write(importedManifest, { versions, importedAt }));
        return success;
      },
    }),
    deleteImportedManifest: operation({
      title: 'Delete imported manifest',
      description: 'Goes back to the built-in version manifest.',
      access: 'administrator',
      effect: 'writes',
      fields: {},
      run: async () => {
        await store.update((transaction) => transaction.write(importedManifest, null));
        return success;
      },
    }),
  };
}
