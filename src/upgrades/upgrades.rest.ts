// REST resource `system/upgrades`: the status of the newest job, and the resources and operations beneath it.
import * as z from 'zod';
import { SharedJson, type Json, asJson } from '../lib/json.ts';
import {
  type AnswerOf,
  type AnswerSchema,
  answerList,
  answerObject,
  openAnswerObject,
  time,
} from '../rest/answer.ts';
import { integer, text } from '../rest/field-types.ts';
import { type Resource, folder, resource } from '../rest/resource.ts';
import { closeBeneathDuringJob } from './during-job.rest.ts';
import { historyResource, jobsResource, messagesAnswer, statusAnswer } from './jobs.rest.ts';
import { type JobWatcher, JobService, jobStatus } from './jobs/job-service.ts';
import { type Job, isJobRunning, newestJob, stateCodes } from './jobs/job-table.ts';
import { type OperationsOptions, upgradeOperations } from './operations.rest.ts';
import { upgradesPage } from './pages/overview.ts';
import { versionsView } from './pages/versions.ts';
import {
  baseManifest,
  deployment,
  importedManifest,
  installedVersions,
  rollbackTargets,
} from './versions/deployment.ts';
import { prepareRollback } from './starting/preflight.ts';
import { availableVersions } from './versions/hops.ts';
import { type Version, versionFields } from './versions/manifest.ts';
import { windowsResource } from './windows.rest.ts';

const version = {
  ...versionFields,
  name: z.string().optional(),
  description: z.string().optional(),
  previousVersion: z.string().optional(),
};

const versionAnswer = openAnswerObject(
  'Version',
  'A version of the deployment, as in the manifest.',
  version,
);

const availableAnswer = answerList(
  'AvailableVersions',
  'The version manifest, in order.',
  openAnswerObject('AvailableVersion', 'A version, and whether it can be installed now in one hop.', {
    ...version,
    installable: z.boolean(),
    reasons: z.array(z.string()).describe('Why it cannot be installed in one hop.'),
    path: z
      .array(z.string())
      .describe(
        'The ids of the versions that an upgrade to it installs one after another; the last one is its own. Empty for more than 100.',
      ),
  }),
);

const versionsAnswer = answerObject('Versions', 'A list of versions.', {
  updates: z.array(versionAnswer),
});

const rollbackTargetsAnswer = answerObject(
  'RollbackTargets',
  'The versions that a rollback can go back to.',
  {
    updates: z.array(
      openAnswerObject('RollbackTarget', 'A version that a rollback can go back to.', {
        ...version,
        notices: z
          .array(z.string())
          .describe('What deserves attention, such as workloads whose former images are not recorded.'),
      }),
    ),
  },
);

const currentVersionAnswer = openAnswerObject(
  'CurrentVersion',
  'The newest installed version, and the messages of the job that installed it. Only the messages if it is not known.',
  { ...z.object(version).partial().shape, messages: messagesAnswer },
);

const manifestStatusAnswer = answerObject('ManifestStatus', 'Where the version manifest comes from.', {
  versionManifestSource: z.enum(['built-in', 'imported']),
  importedFrom: z
    .enum(['request', 'file'])
    .nullable()
    .describe(
      'request: importManifest has imported it. file: it is that of MANIFEST_FILE. Null: it is built in.',
    ),
  lastImportedTimestamp: time.nullable().describe('When importManifest has imported it; otherwise null.'),
});

type UpgradesOptions = OperationsOptions & { jobWatcher: JobWatcher };

const overview = ['system', 'upgrades'];

/** `resources` are those of other features. */
type SystemOptions = Omit<UpgradesOptions, 'jobService'> & { resources: Record<string, Resource> };

export function systemResource({ resources, ...given }: SystemOptions): Resource {
  const options = { ...given, jobService: new JobService(given.store) };
  const upgrades = closeBeneathDuringJob(upgradesResource(options));
  // The windows can be read during a job, unlike the other resources there.
  const config = closeBeneathDuringJob(windowsResource(options));
  return folder(
    {
      title: 'System',
      description: 'The deployment as a whole.',
      page: (_root, beneath) => (beneath.length === 0 ? overview : undefined),
    },
    {
      upgrades: { ...upgrades, resources: { ...upgrades.resources, config } },
      jobs: jobsResource(options),
      ...resources,
    },
  );
}

function upgradesResource(options: UpgradesOptions): Resource {
  const { store, jobWatcher } = options;
  const readStatus = createStatusReader(options);
  return resource({
    title: 'Upgrades',
    description:
      'The status and the messages of the newest job. The page also shows the installed version and the last jobs.',
    fields: {
      after: integer(0, 1_000_000_000)
        .default(0)
        .describe('How many messages to leave out, counted from the first.'),
      wait: integer(0, 60).default(0).describe('Seconds to wait for a new message or another state.'),
      jobId: text({ to: 128 })
        .optional()
        .describe('The job to wait for. If it is not the newest, the answer comes at once.'),
    },
    answer: statusAnswer,
    read: async ({ values: { after, wait, jobId }, requireCallerNow }) => {
      const found = store.read(newestJob);
      if (wait > 0 && found && (jobId === undefined || jobId === found.id)) {
        await jobWatcher.waitForChange(found, after, wait * 1000);
        await requireCallerNow();
      }
      return readStatus(store.read(newestJob), after);
    },
    view: upgradesPage(options),
    isInProgress: () => isJobRunning(store),
    isOffered: (_subject, name) => name !== 'rollback' || rollbackTargets(store.read(deployment)).length > 0,
    operations: upgradeOperations(options),
    resources: childResources(options),
  });
}

/** Keeps the text of the status of an ended job: it stays the same until the job is resumed. */
function createStatusReader({ jobService, runtime }: UpgradesOptions) {
  let kept: { readonly job: Job; readonly status: SharedJson } | undefined;
  return async (job: Job | null, after: number): Promise<AnswerOf<typeof statusAnswer> | SharedJson> => {
    if (!job) return { status: { state: 'no_upgrade', code: stateCodes.no_upgrade, messages: [] } };
    const isLasting = job.state !== 'in_progress' && after === 0;
    if (isLasting && kept?.job === job) return kept.status;
    const status = jobStatus(job, await jobService.messages(job, after), runtime.now());
    if (!isLasting) return status;
    kept = { job, status: SharedJson.of(asJson(status)) };
    return kept.status;
  };
}

function childResources(options: UpgradesOptions): Record<string, Resource> {
  const { store, jobService, executor } = options;
  const present = () => store.read(deployment);
  const child = (
    title: string,
    description: string,
    answer: AnswerSchema,
    read: () => Json | Promise<Json>,
    page = overview,
  ) => resource({ title, description, answer, read, page: () => page });
  const versionList = (title: string, description: string, list: () => readonly Version[]) =>
    child(title, description, versionsAnswer, () => ({ updates: list().map(asJson) }));
  return {
    available: resource({
      title: 'Available versions',
      description:
        'The version manifest: every version that can be reached from the installed one, in order.',
      answer: availableAnswer,
      read: () =>
        availableVersions(store).map(({ version, reasons, path }) => ({
          ...version,
          installable: reasons.length === 0,
          reasons,
          path,
        })),
      view: (page) => versionsView(store, page),
    }),
    installed: versionList('Installed versions', 'The installed release, then its patches.', () =>
      installedVersions(present()),
    ),
    currentVersion: child(
      'Current version',
      'The newest installed version, and the messages of the job that installed it.',
      currentVersionAnswer,
      async () => {
        const version = installedVersions(present()).at(-1);
        const job = version && (await jobService.findInstalling(version.id));
        const messages = job ? (await jobService.messages(job)).messages : [];
        return { ...(version && asJson(version)), messages: asJson(messages) };
      },
    ),
    history: historyResource(options),
    manifestStatus: child(
      'Manifest status',
      'Where the version manifest comes from.',
      manifestStatusAnswer,
      () => {
        const imported = store.read(importedManifest);
        const importedFrom = imported
          ? 'request'
          : store.read(baseManifest).source === 'file'
            ? 'file'
            : null;
        return {
          versionManifestSource: importedFrom ? 'imported' : 'built-in',
          importedFrom,
          lastImportedTimestamp: imported?.importedAt ?? null,
        };
      },
      [...overview, 'available'],
    ),
    checkRollback: child(
      'Check rollback',
      'The versions that a rollback can go back to, newest first.',
      rollbackTargetsAnswer,
      async () => {
        const targets = rollbackTargets(present());
        const inventory = targets.length > 0 ? await executor.inventory() : undefined;
        const noticesOf = (id: string) => (inventory ? prepareRollback(store, id, inventory).notices : []);
        return { updates: targets.map((one) => ({ ...asJson(one), notices: noticesOf(one.id) })) };
      },
    ),
  };
}
