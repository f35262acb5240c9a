// REST operations beneath the upgrades resource: settings, plan, upgrade, rollback, and the imported manifest.
import * as z from 'zod';
import { type Problem, ServiceError, formatProblem, invalid } from '../lib/errors.ts';
import { asJson } from '../lib/json.ts';
import { answerObject, openAnswerObject } from '../rest/answer.ts';
import { boolean, file, jsonObject, reference, refuse, text } from '../rest/field-types.ts';
import type { PreparedCall } from '../rest/call.ts';
import { type Operation, operation } from '../rest/operation.ts';
import type { Outcome } from '../rest/outcome.ts';
import type { ReadableStore } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { uploads } from '../uploads/upload.ts';
import { type JobsOptions, statusAnswer } from './jobs.rest.ts';
import { type ManifestOptions, manifestOperations } from './manifest.rest.ts';
import { jobStatus } from './jobs/job-service.ts';
import { scheduleJob } from './jobs/job-schedule.ts';
import type { ScheduledRequest } from './jobs/job-table.ts';
import { startJob } from './jobs/job.ts';
import type { ReadDrift } from './starting/drift.ts';
import { digestPlan, planToJson } from './planning/plan.ts';
import { settingParts } from './pages/settings.ts';
import { upgradeWizard, wizardTitle } from './pages/wizard.ts';
import {
  type PreparedJob,
  type UpgradeValues,
  hasRelease,
  hasSameBasis,
  noSuchVersion,
  planUpgrade,
  prepareCheckedRollback,
  prepareRequest,
  prepareWithPatience,
} from './starting/preflight.ts';
import { settingsOf } from './planning/settings.ts';
import { stepIds } from './executors/steps.ts';
import { currentManifest, deployment, importManifest, installedVersions } from './versions/deployment.ts';
import { type StartTime, ignoredWindows, requireWindow, startFields, startProblems } from './windows.rest.ts';
import { rollbackOptions } from './pages/versions.ts';
import { findPath, findPathToInstall } from './versions/hops.ts';
import { type Version, readManifest } from './versions/manifest.ts';

const upgradeSettingsAnswer = answerObject('UpgradeSettings', 'The inputs that a version asks for.', {
  userInputs: z.array(
    openAnswerObject('UserInput', 'An input. A manifest may have further fields.', {
      seqNum: z.int().nonnegative(),
      id: z.string(),
      type: z.string().describe('Boolean, File or JSON, or a type of the manifest.'),
      name: z.string().optional(),
      description: z.string().optional(),
      value: z.unknown().optional().describe('The value to edit.'),
      defaultValue: z.unknown().optional(),
      required: z.boolean().optional(),
      validFileExtensions: z.array(z.string()).optional(),
      newfield: z.literal(''),
    }),
  ),
});

const planAnswer = answerObject('Plan', 'What an upgrade would do, and what blocks it.', {
  from: z.string().describe('The installed version and build.'),
  to: z
    .string()
    .nullable()
    .describe('The version and build after the upgrade. Null: there is no such version.'),
  digest: z
    .string()
    .describe(
      'SHA-256 of versions, images and steps. upgrade takes it as planDigest and starts this plan only.',
    ),
  steps: z.array(
    z.strictObject({
      seqNum: z.int().nonnegative().describe('The position in the plan.'),
      id: z.enum(stepIds).describe('What the step does. Several steps may have the same id.'),
      name: z.string(),
      codes: z.array(z.int()).describe('The messages that the step records.'),
      performedBy: z
        .enum(['steward', 'rollout', 'job', 'nobody', 'simulation'])
        .describe('nobody: the step has no step template and is skipped.'),
      template: z
        .string()
        .optional()
        .describe('The CronJob that is the step template. Only with performedBy job.'),
      workload: z
        .string()
        .optional()
        .describe('The workload that the step updates or reverts, or the component that it begins or ends.'),
    }),
  ),
  problems: z.array(z.string()).describe('What blocks the upgrade. At most 200 problems.'),
  notices: z.array(z.string()).describe('What does not block the upgrade but deserves attention.'),
});

export type OperationsOptions = JobsOptions & ManifestOptions & { readDrift: ReadDrift };

/** With the fields of a start, which the form of `plan` shows too. */
type StartOptions = OperationsOptions & { readonly start: ReturnType<typeof optionalStart> };

function optionalStart(options: OperationsOptions) {
  const { startAt, ignoreWindows } = startFields(options);
  return { startAt: startAt.optional(), ignoreWindows, confirmVersion: confirmVersionField };
}

export function upgradeOperations(given: OperationsOptions): Record<string, Operation> {
  const options = { ...given, start: optionalStart(given) };
  return {
    getUpgradeSettings: getUpgradeSettingsOperation(options),
    plan: planOperation(options),
    upgrade: upgradeOperation(options),
    rollback: rollbackOperation(options),
    ...manifestOperations(options),
  };
}

const versionField = reference().meta({
  label: 'Version',
  description: 'The version, by its id in the version manifest: {"id": "…"}, or the id alone.',
});

function manifestField(store: ReadableStore) {
  return file().transform(({ bytes }, context): readonly Version[] => {
    const result = readManifest(bytes, () => installedVersions(store.read(deployment)));
    return 'versions' in result ? result.versions : refuse(context, result.problems);
  });
}

function upgradeFields(store: ReadableStore) {
  type Given = Readonly<Record<string, unknown>>;
  const pathOf = ({ versionManifest, versionManifestFile: given }: Given) =>
    findPathToInstall(
      (given as readonly Version[] | undefined) ?? currentManifest(store),
      store.read(deployment),
      String(versionManifest),
    );
  const isRepair = (values: Given) => pathOf(values).length === 0;
  return {
    versionManifest: versionField,
    upgradeSettings: jsonObject().optional().meta({
      description:
        'The settings of getUpgradeSettings for the same id, edited. Required for a release from 11.0 on.',
      parts: settingParts,
      unused: isRepair,
    }),
    licenseFile: file()
      .optional()
      .meta({
        description:
          'A license file, not with startAt. Deprecated since 11.0: the setting licenseUpload replaces it.',
        unused: (values) =>
          settingsOf(...pathOf(values)).userInputs.every(({ id }) => id !== 'licenseUpload'),
      }),
    updateToLatestPatch: boolean().optional().meta({
      description: 'Deprecated since 11.0: the setting of the same name replaces it.',
      unused: isRepair,
    }),
    versionManifestFile: manifestField(store)
      .optional()
      .describe('A version manifest to use for this upgrade. It is imported when the upgrade is accepted.'),
  };
}

const digest = {
  from: 64,
  to: 64,
  pattern: /^[0-9a-f]{64}$/,
  allowed: 'the digest of a plan: 64 digits of 0 to 9 and a to f',
};

const planDigestField = text(digest)
  .optional()
  .describe('The digest that plan has returned. The upgrade starts only if its plan still has this digest.');

const confirmVersionField = text({ to: 256 }).optional().meta({
  label: 'Confirmation',
  description:
    'The version after the upgrade. Another one is refused. The page of a release asks for it; programs need not send it.',
});

/** The answer has no envelope, so that it can be edited and sent back whole. */
function getUpgradeSettingsOperation({ store }: OperationsOptions): Operation {
  const find = (id: string) => findPath(currentManifest(store), store.read(deployment), id);
  return operation({
    title: 'Get upgrade settings',
    description:
      'The settings a version asks for, with those of the versions on the path to it. Edit their values and pass the whole object to upgrade.',
    effect: 'reads',
    form: 'elsewhere',
    fields: { upgradeId: versionField },
    answer: upgradeSettingsAnswer,
    check: ({ values: { upgradeId } }) => ({
      problems:
        upgradeId === undefined || find(upgradeId).length > 0
          ? []
          : [{ field: 'upgradeId', message: noSuchVersion(upgradeId) }],
    }),
    run: ({ values: { upgradeId } }) => ({ json: asJson(settingsOf(...find(upgradeId))) }),
  });
}

function planOperation(options: StartOptions): Operation {
  const { store, executor } = options;
  return operation({
    title: 'Plan',
    titleOf: (entered) => wizardTitle(store, entered),
    description: 'Shows what an upgrade would do and what blocks it. Starts nothing.',
    effect: 'reads',
    form: 'elsewhere',
    fields: upgradeFields(store),
    answer: planAnswer,
    view: (page) => upgradeWizard(options, page, 'settings'),
    run: async ({ values }) => {
      const prepared = await planUpgrade(store, executor, values);
      const { from, to, plan, problems, notices } = prepared;
      return {
        json: {
          from,
          to,
          digest: digestPlan(prepared),
          steps: planToJson(plan),
          problems: problems.map(formatProblem),
          notices,
        },
        view: (page) => upgradeWizard(options, page, 'plan', prepared),
      };
    },
  });
}

function upgradeOperation(options: StartOptions): Operation {
  const { store, executor, runtime } = options;
  return operation({
    title: 'Upgrade',
    titleOf: (entered) => wizardTitle(store, entered),
    description:
      'Starts an upgrade of the deployment to a patch or a release. The upgrades resource shows its progress.',
    form: 'elsewhere',
    fields: { ...upgradeFields(store), planDigest: planDigestField, ...options.start },
    answer: statusAnswer,
    view: (page) => upgradeWizard(options, page, 'plan'),
    check: async ({ values, isForm }) => {
      const found = [...startProblems(values.startAt, runtime.now()), ...licenseProblems(values)];
      const { versionManifest, upgradeSettings } = values;
      if (versionManifest === undefined || !('versionManifestFile' in values)) return { problems: found };
      const request = { ...values, versionManifest, upgradeSettings };
      const prepared = await prepareWithPatience(runtime, () => prepareRequest(store, executor, request));
      // Unreadable settings are reported already. Without them, only the version can be checked.
      const hasSettings = 'upgradeSettings' in values && 'updateToLatestPatch' in values;
      const ofVersion = prepared.problems.filter(({ field }) => field === 'versionManifest');
      const unconfirmed = confirmationProblems(prepared, values.confirmVersion, isForm);
      return {
        problems: [...(hasSettings ? prepared.problems : ofVersion), ...found, ...unconfirmed],
        prepared,
      };
    },
    run: (call) => {
      const { versionManifest, upgradeSettings, updateToLatestPatch } = call.values;
      const { versionManifestFile: manifest, planDigest } = call.values;
      const request = { versionManifest, upgradeSettings, updateToLatestPatch };
      return start(options, call, { request, manifest, planDigest });
    },
  });
}

/** A scheduled job keeps its request, but not the content of a license. */
function licenseProblems({ licenseFile, startAt }: Partial<UpgradeValues> & StartTime): Problem[] {
  const message =
    'cannot be sent with startAt; upload the license, and name the upload in the setting licenseUpload.';
  return licenseFile && startAt !== undefined ? [{ field: 'licenseFile', message }] : [];
}

/** A reader confirms by hand what cannot be taken back. */
function confirmationProblems(
  prepared: PreparedJob,
  confirmVersion: string | undefined,
  isForm: boolean,
): Problem[] {
  const { to } = prepared;
  if (to === null || confirmVersion?.trim() === to) return [];
  const isNeeded = hasRelease(prepared);
  if (confirmVersion === undefined && !(isForm && isNeeded)) return [];
  const message = `must be ${to}${isNeeded ? ': there is no way back' : ''}.`;
  return [{ field: 'confirmVersion', message }];
}

function rollbackOperation(options: StartOptions): Operation {
  const { store, runtime, executor } = options;
  const { startAt, ignoreWindows } = options.start;
  return operation({
    title: 'Rollback',
    description: 'Rolls patches back to an earlier version.',
    isDestructive: true,
    warning: () => 'A rollback cannot be cancelled. The system is read-only until it has ended.',
    fields: { versionManifest: versionField, startAt, ignoreWindows },
    present: () => ({ versionManifest: rollbackOptions(store.read(deployment))[0]?.value ?? '' }),
    suggest: () => ({ versionManifest: rollbackOptions(store.read(deployment)) }),
    answer: statusAnswer,
    check: async ({ values: { versionManifest, startAt } }) => {
      const found = startProblems(startAt, runtime.now());
      if (versionManifest === undefined) return { problems: found };
      const prepared = await prepareWithPatience(runtime, () =>
        prepareCheckedRollback(store, executor, versionManifest),
      );
      return { problems: [...prepared.problems, ...found], prepared };
    },
    run: (call) => start(options, call, { request: { versionManifest: call.values.versionManifest } }),
  });
}

type StartCall = Pick<
  PreparedCall<unknown, StartTime, PreparedJob>,
  'values' | 'caller' | 'update' | 'prepared'
>;

type StartRequest = {
  /** What the second preflight of a scheduled job needs. */
  readonly request: Omit<ScheduledRequest, 'digest'>;
  readonly manifest?: readonly Version[] | undefined;
  readonly planDigest?: string | undefined;
};

async function start(
  { store, runtime, jobRunner, jobService, notify }: OperationsOptions,
  { values, caller, update, prepared }: StartCall,
  { request, manifest, planDigest }: StartRequest,
): Promise<Outcome> {
  const { problems, to } = prepared;
  if (problems.length > 0 || to === null) throw invalid(problems);
  const digest = digestPlan(prepared);
  const id = runtime.newId();
  const at = runtime.now();
  const { startAt, ignoreWindows = false } = values;
  const accept = () =>
    update(
      (transaction) => {
        requireWindow(transaction, values, at);
        if (!hasSameBasis(transaction, prepared))
          throw new ServiceError('conflict', 'The versions have changed meanwhile. Send the request again.');
        requireUploads(transaction, prepared.uploads);
        if (planDigest !== undefined && planDigest !== digest)
          throw new ServiceError(
            'conflict',
            'The plan has changed. Read the new plan, then start the upgrade.',
            { problems: [{ field: 'planDigest', message: 'is not the digest of the present plan.' }] },
          );
        if (manifest) importManifest(transaction, manifest, at);
        const startedBy = caller?.username ?? '';
        const newJob = { ...prepared, id, startedBy, runner: store.self, to, ignoresWindows: ignoreWindows };
        const accepted =
          startAt === undefined
            ? startJob(transaction, newJob, at)
            : scheduleJob(transaction, newJob, { startAt, request: { ...request, digest } }, at);
        notify(transaction, accepted, at);
        return accepted;
      },
      { target: `system/jobs/${id}`, changes: () => ignoredWindows(ignoreWindows) },
    );
  const job = await (startAt === undefined ? jobRunner.run(accept) : accept());
  const what = job.operation === 'upgrade' ? 'Upgrade' : 'Rollback';
  return {
    json: asJson(jobStatus(job, await jobService.messages(job), at)),
    names: { jobId: id },
    notice: {
      text: `${what} to ${job.to} ${startAt === undefined ? 'started' : `scheduled for ${new Date(startAt).toISOString()}`}.`,
      link: { name: 'Show the job', path: ['system', 'jobs', id] },
    },
  };
}

/** Another request may have deleted an upload since the settings were checked. */
function requireUploads(transaction: Transaction, ids: readonly string[]): void {
  const missing = ids.filter((id) => !transaction.get(uploads, id));
  const message = `names the upload ${missing[0]}, which does not exist.`;
  if (missing.length > 0) throw invalid([{ field: 'upgradeSettings', message }]);
}
