// REST resources of jobs: the history beneath the upgrades resource, and `system/jobs`, which is readable while a
// job runs.
import * as z from 'zod';
import { ServiceError } from '../lib/errors.ts';
import { type Json, asJson } from '../lib/json.ts';
import type { Runtime } from '../lib/runtime.ts';
import { answerObject, time, total, ignored } from '../rest/answer.ts';
import { boolean, integer } from '../rest/field-types.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { type CsvRow, type Resource, items, resource } from '../rest/resource.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import type { JobRunner } from './jobs/job-runner.ts';
import { type JobService, jobStatus } from './jobs/job-service.ts';
import { moveStart } from './jobs/job-schedule.ts';
import { type Job, isOpen, newestJob, stateCodes } from './jobs/job-table.ts';
import { type OnJobChange, reasonNotToResume, requestCancel, resumeJob } from './jobs/job.ts';
import { jobListView, jobTitle } from './pages/job-parts.ts';
import { jobView } from './pages/jobs.ts';
import { windowText } from './pages/windows.ts';
import { maintenanceWindows } from './schedule/windows.ts';
import { ignoredWindows, requireWindow, startFields, startProblems } from './windows.rest.ts';

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

export const messagesAnswer = z
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
  waitingFor: z
    .strictObject({
      step: z.string().describe('The name of the step.'),
      object: z
        .string()
        .describe('Its name in the cluster, such as deployment/map-server, job/…, lease, or api server.'),
      reason: z.string().describe('One sentence, without its full stop.'),
      since: time.describe('When the step began to wait for it.'),
      isLate: z
        .boolean()
        .describe('Whether that is longer than such a step took in this job and the last one.'),
    })
    .nullable()
    .describe(
      'What the current step waits for, as last seen within ten seconds. Null: nothing that is known.',
    ),
  remainingMs: z
    .int()
    .nonnegative()
    .nullable()
    .describe(
      'An estimate from the weights of the steps that are left. Null: no step was measured yet, or the job has not started.',
    ),
});

export const statusAnswer = answerObject('JobStatus', 'The status of a job.', {
  ignored,
  status: z.strictObject({ state, code, messages: messagesAnswer }),
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

const pastJobAnswer = answerObject('PastJob', 'A job with its messages.', {
  ...jobEntry,
  messages: messagesAnswer,
});

export type JobsOptions = {
  store: ReadableStore;
  runtime: Runtime;
  jobRunner: JobRunner;
  jobService: JobService;
  notify: OnJobChange;
};

const pageFields = {
  start: integer(0, 1_000_000_000).default(0).describe('How many of the newest jobs to skip.'),
  num: integer(1, 100).default(25).describe('How many to show.'),
};

export function historyResource(options: JobsOptions): Resource {
  const { jobService } = options;
  const entry = resource<Job>({
    title: 'Past job',
    titleOf: jobTitle,
    description: 'One job of the history, with its messages.',
    answer: pastJobAnswer,
    read: async ({ subject }) => ({
      ...jobToHistoryEntry(subject),
      messages: asJson((await jobService.messages(subject)).messages),
    }),
    page: ({ id }) => ['system', 'jobs', id],
  });
  return { ...listResource(jobService, 'History', 'history', entry), page: () => ['system', 'jobs'] };
}

export function jobsResource(options: JobsOptions): Resource {
  const { jobService } = options;
  const entry = resource<Job>({
    title: 'Job',
    description: 'The status of one job.',
    answer: statusAnswer,
    read: ({ subject }) => readStatus(options, subject),
    titleOf: jobTitle,
    csv: {
      fileName: 'messages.csv',
      header: ['when', 'code', 'message'],
      rows: ({ subject }) => messageRows(jobService, subject),
    },
    view: (page) => jobView(options, page.subject, page),
    operations: {
      cancel: cancelOperation(options),
      resume: resumeOperation(options),
      reschedule: rescheduleOperation(options),
    },
    isOffered: (subject, name) => {
      if (name === 'cancel') return isOpen(subject);
      if (name === 'reschedule') return subject.state === 'scheduled';
      return reasonNotToResume(options.store, subject) === undefined;
    },
    isInProgress: ({ state }) => state === 'in_progress',
  });
  return listResource(jobService, 'Jobs', 'jobs', entry);
}

async function* messageRows(jobService: JobService, job: Job): AsyncIterable<CsvRow> {
  const { messages } = await jobService.messages(job);
  for (const { when, code, message } of messages) yield [new Date(when).toISOString(), code, message];
}

/** `name` is the field of the answer that has the jobs. */
function listResource(jobService: JobService, title: string, name: string, entry: Resource<Job>): Resource {
  return resource<unknown, typeof pageFields>({
    title,
    description: 'All jobs, newest first.',
    fields: pageFields,
    answer: answerObject(title, 'One page of the jobs, newest first.', {
      [name]: z.array(jobAnswer),
      total,
    }),
    read: async ({ values: { start, num } }) => {
      const { jobs, total } = await jobService.page(start, num);
      return { [name]: jobs.map(jobToHistoryEntry), total };
    },
    view: jobListView(jobService),
    items: [
      items<unknown, Job>({
        param: 'job',
        find: async (_subject, id) => {
          const job = await jobService.find(id);
          if (!job) throw new ServiceError('not-found', 'There is no such job.');
          return job;
        },
        resource: entry,
      }),
    ],
  });
}

function jobToHistoryEntry(job: Job) {
  const { id, operation, from, to, state, startAt, startedAt, endedAt, startedBy } = job;
  const times = { ...(startAt !== null && { startAt }), startedAt, endedAt };
  return { id, operation, from, to, state, code: stateCodes[state], ...times, startedBy };
}

function cancelOperation(options: JobsOptions): Operation<Job> {
  const { jobService, notify } = options;
  return operation({
    title: 'Cancel job',
    isDestructive: true,
    warning: ({ state, to }: Job) =>
      state === 'scheduled'
        ? `The job to ${to} will not start. To start it later, prepare it again.`
        : undefined,
    description:
      'Cancels a scheduled job, or a patch after the current step and reverts its workloads. A repeated call changes nothing. A release can be cancelled only until its plan is executed, and an upgrade of several hops also between two hops.',
    whileReadOnly: 'allowed',
    fields: {
      stop: boolean()
        .optional()
        .meta({
          description:
            'Whether a job that already reverts its workloads stops after those that it has begun. It fails then, and a resume reverts the others. Default: false.',
          unused: (_values, subject) => !(subject as Job).reverting,
        }),
    },
    answer: statusAnswer,
    run: async ({ subject, values: { stop = false }, caller, update }) => {
      const plan = await jobService.plan(subject);
      const by = caller?.username ?? '';
      const job = await update((transaction, at) => {
        const cancelled = requestCancel(
          transaction,
          readAgain(transaction, subject),
          plan,
          { by, stops: stop },
          at,
        );
        if (cancelled.state === 'cancelled') notify(transaction, cancelled, at);
        return cancelled;
      });
      const text = job.reverting
        ? job.reverting.stoppedBy === undefined
          ? 'The job already reverts its workloads.'
          : 'The job stops after the workloads that it has begun.'
        : job.state === 'cancelled'
          ? 'The scheduled job was cancelled.'
          : 'Cancelling: the job ends after the current step.';
      return { json: await readStatus(options, job), notice: { text } };
    },
  });
}

function rescheduleOperation(options: JobsOptions): Operation<Job> {
  const { runtime, notify } = options;
  return operation({
    title: 'Reschedule job',
    description: 'Moves the start of a scheduled job.',
    fields: startFields(options),
    present: ({ startAt }) => ({ startAt: String(startAt ?? '') }),
    answer: statusAnswer,
    check: ({ values: { startAt } }) => ({ problems: startProblems(startAt, runtime.now()) }),
    run: async ({ subject, values: { startAt, ignoreWindows = false }, update }) => {
      const job = await update(
        (transaction, at) => {
          const current = readAgain(transaction, subject);
          const moved = moveStart(transaction, current, { startAt, ignoresWindows: ignoreWindows }, at);
          requireWindow(transaction, { startAt, ignoreWindows }, at);
          notify(transaction, moved, at);
          return moved;
        },
        { changes: () => ignoredWindows(ignoreWindows) },
      );
      return {
        json: await readStatus(options, job),
        notice: { text: `The start was moved to ${new Date(startAt).toISOString()}.` },
      };
    },
  });
}

function resumeOperation(options: JobsOptions): Operation<Job> {
  const { store, runtime, jobRunner } = options;
  return operation<Job>({
    title: 'Resume job',
    warning: () => {
      const text = windowText(store.read(maintenanceWindows), runtime.now()) ?? '';
      return `${text} The job continues at once, and the system is read-only while it runs.`.trim();
    },
    description:
      'Resumes the newest job, if it has failed, at the first step that is not done. If the job stopped before it had reverted all ' +
      'workloads, it reverts the rest.',
    whileReadOnly: 'allowed',
    answer: statusAnswer,
    run: async ({ subject, caller, update }) => {
      const by = caller?.username ?? '';
      const job = await jobRunner.run(() =>
        update((transaction, at) =>
          resumeJob(transaction, readAgain(transaction, subject), { by, runner: store.self }, at),
        ),
      );
      return { json: await readStatus(options, job), notice: { text: 'The job continues.' } };
    },
  });
}

/** The job may have changed since the request found it, unless it is no longer the newest. */
function readAgain(reader: Reader, found: Job): Job {
  const newest = reader.read(newestJob);
  return newest?.id === found.id ? newest : found;
}

async function readStatus({ jobService, runtime }: JobsOptions, job: Job): Promise<Json> {
  return asJson(jobStatus(job, await jobService.messages(job), runtime.now()));
}
