// REST resources of jobs: the history beneath the upgrades resource, and `system/jobs`, which is readable while a
// job runs.
import { formatTime } from '../console/time.ts';
import { ServiceError } from '../lib/errors.ts';
import { type Json, asJson } from '../lib/json.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { AnswerSchema } from '../rest/answer.ts';
import { integer } from '../rest/field-types.ts';
import { type CsvRow, type Operation, type Resource, items, operation, resource } from '../rest/resource.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import { historyAnswer, jobsAnswer, pastJobAnswer, statusAnswer } from './answers.rest.ts';
import type { JobRunner } from './jobs/job-runner.ts';
import { type JobService, jobStatus } from './jobs/job-service.ts';
import { moveStart, requireScheduled } from './jobs/job-schedule.ts';
import { type Job, isOpen, newestJob, stateCodes } from './jobs/job-table.ts';
import { type OnJobChange, reasonNotToResume, requestCancel, resumeJob } from './jobs/job.ts';
import { jobListView, jobTitle } from './pages/job-parts.ts';
import { jobView } from './pages/jobs.ts';
import {
  ignoreWindowsField,
  ignoredWindows,
  requireWindow,
  startAtField,
  startProblems,
} from './windows.rest.ts';

type JobsOptions = {
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
    view: (page) => {
      // The history is closed while a job runs. After `resume` the browser must land on the page in `system/jobs`,
      // which stays open.
      const here = (...beneath: readonly string[]) =>
        page.href('system', 'jobs', page.subject.id, ...beneath);
      return jobView(options, page.subject, { ...page, here });
    },
  });
  return listResource(jobService, { title: 'History', name: 'history', answer: historyAnswer, entry });
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
  return listResource(jobService, { title: 'Jobs', name: 'jobs', answer: jobsAnswer, entry });
}

async function* messageRows(jobService: JobService, job: Job): AsyncIterable<CsvRow> {
  const { messages } = await jobService.messages(job);
  for (const { when, code, message } of messages) yield [new Date(when).toISOString(), code, message];
}

type JobList = {
  readonly title: string;
  /** The field of the answer that has the jobs. */
  readonly name: string;
  readonly answer: AnswerSchema;
  readonly entry: Resource<Job>;
};

function listResource(jobService: JobService, { title, name, answer, entry }: JobList): Resource {
  return resource<unknown, typeof pageFields>({
    title,
    description: 'All jobs, newest first.',
    fields: pageFields,
    answer,
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
  const { store, notify } = options;
  return operation<Job>({
    title: 'Cancel job',
    description:
      'Cancels a scheduled job, or a patch after the current step and reverts its workloads. A job that already reverts its workloads stops after the ' +
      'current one. A release can be cancelled only until its plan is executed, and an upgrade of several hops also between two hops.',
    whileReadOnly: 'allowed',
    answer: statusAnswer,
    run: async ({ subject, caller, update }) => {
      const plan = await store.jobs.plan(subject.id);
      const job = await update((transaction, at) => {
        const cancelled = requestCancel(
          transaction,
          readAgain(transaction, subject),
          plan,
          caller?.username ?? '',
          at,
        );
        if (cancelled.state === 'cancelled') notify(transaction, cancelled, at);
        return cancelled;
      });
      const text = job.reverting
        ? 'The job stops after the current workload.'
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
    fields: { startAt: startAtField, ignoreWindows: ignoreWindowsField },
    present: ({ startAt }) => ({ startAt: String(startAt ?? '') }),
    answer: statusAnswer,
    check: ({ values: { startAt } }) => ({ problems: startProblems(startAt, runtime.now()) }),
    run: async ({ subject, values: { startAt, ignoreWindows = false }, update }) => {
      const job = await update(
        (transaction, at) => {
          const current = readAgain(transaction, subject);
          requireScheduled(current);
          requireWindow(transaction, { startAt, ignoreWindows }, at);
          const moved = moveStart(transaction, current, { startAt, ignoresWindows: ignoreWindows }, at);
          notify(transaction, moved, at);
          return moved;
        },
        { changes: () => ignoredWindows(ignoreWindows) },
      );
      return {
        json: await readStatus(options, job),
        notice: { text: `The start was moved to ${formatTime(startAt)}.` },
      };
    },
  });
}

function resumeOperation(options: JobsOptions): Operation<Job> {
  const { store, jobRunner } = options;
  return operation<Job>({
    title: 'Resume job',
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
