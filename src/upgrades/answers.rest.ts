// Schemas of the answers about versions, plans and jobs.
import * as z from 'zod';
import { answerList, answerObject, openAnswerObject, time, total } from '../rest/answer.ts';
import { stepIds } from './planning/step-ids.ts';
import { versionFields } from './versions/manifest.ts';

const state = z.enum(['no_upgrade', 'in_progress', 'failed', 'success', 'cancelled', 'scheduled']);
const code = z
  .int()
  .min(0)
  .max(5)
  .describe(
    'The state as a number: no_upgrade 0, in_progress 1, failed 2, success 3, cancelled 4, scheduled 5.',
  );

const startAt = time.optional().describe('When the job is to start. Only if the request had a start time.');

const messageAnswer = answerObject('Message', 'A message of a job.', {
  code: z.int().describe('What happened; docs/reference/errors-and-codes.md lists all codes.'),
  message: z.string(),
  when: time,
});

const messages = z
  .array(messageAnswer)
  .describe('The messages of the job, oldest first. JOB_HISTORY sets how many jobs keep theirs.');

const progressAnswer = answerObject('Progress', 'How far a job is.', {
  done: z.int().nonnegative().describe('Workloads that are done.'),
  total: z.int().nonnegative().describe('All workloads of the job.'),
  steps: z
    .strictObject({ done: z.int().nonnegative(), total: z.int().nonnegative() })
    .describe('Steps of the plan.'),
  percent: z
    .int()
    .min(0)
    .max(100)
    .describe(
      'Steps that are done, weighted by how long steps of their kind take. 100 only in the state success.',
    ),
  elapsedMs: z.int().nonnegative().describe('Milliseconds since this run began.'),
  remainingMs: z
    .int()
    .nonnegative()
    .nullable()
    .describe(
      'An estimate from the weights of the steps that are left. Null: no step was measured yet, or the job has not started.',
    ),
});

export const statusAnswer = answerObject('JobStatus', 'The status of a job.', {
  status: z.strictObject({ state, code, messages }),
  jobId: z
    .string()
    .optional()
    .describe('Missing if the deployment was never upgraded, like the fields below.'),
  startAt,
  messageCount: z
    .int()
    .nonnegative()
    .optional()
    .describe('All messages of the job, those left out by after included. 0 if they were removed.'),
  progress: progressAnswer.optional(),
});

const jobEntry = {
  id: z.string(),
  operation: z.enum(['upgrade', 'rollback']),
  from: z.string().describe('The version and build before the job, for example 10.9.1.1234.'),
  to: z.string().describe('The version and build that the job installs.'),
  state,
  code,
  startAt,
  startedAt: time.nullable().describe('Null: the job has not started.'),
  endedAt: time.nullable().describe('Null: the job is scheduled or running.'),
  startedBy: z.string().describe('The name of the user.'),
};

const jobAnswer = answerObject('Job', 'A job in a list.', jobEntry);

export const jobsAnswer = answerObject('Jobs', 'One page of the jobs, newest first.', {
  jobs: z.array(jobAnswer),
  total,
});

export const historyAnswer = answerObject('History', 'One page of the jobs, newest first.', {
  history: z.array(jobAnswer),
  total,
});

export const pastJobAnswer = answerObject('PastJob', 'A job with its messages.', { ...jobEntry, messages });

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

export const availableAnswer = answerList(
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

export const versionsAnswer = answerObject('Versions', 'A list of versions.', {
  updates: z.array(versionAnswer),
});

export const currentVersionAnswer = openAnswerObject(
  'CurrentVersion',
  'The newest installed version, and the messages of the job that installed it.',
  { ...version, messages },
);

export const manifestStatusAnswer = answerObject('ManifestStatus', 'Where the version manifest comes from.', {
  versionManifestSource: z.enum(['built-in', 'imported']),
  lastImportedTimestamp: time.nullable().describe('Null: no manifest is imported.'),
});

export const upgradeSettingsAnswer = answerObject('UpgradeSettings', 'The inputs that a version asks for.', {
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

export const planAnswer = answerObject('Plan', 'What an upgrade would do, and what blocks it.', {
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
