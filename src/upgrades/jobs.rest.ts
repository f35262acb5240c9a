// REST resources of jobs: the history beneath the upgrades resource, and `system/jobs`, which is readable while a job runs.
import { ServiceError } from '../errors.ts';
import { asJson } from '../lib/json.ts';
import { type Items, type Operation, type Resource, items, operation, resource } from '../rest/resource.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { historyAnswer, jobsAnswer, pastJobAnswer, statusAnswer } from './answers.ts';
import { requestCancel, resumeJob } from './job.ts';
import type { JobRunner } from './job-runner.ts';
import { jobStatus, jobToHistoryEntry } from './job-status.ts';
import { type Job, jobs, listJobs, messages, plans } from './job-table.ts';
import { jobListView, jobView } from './pages/jobs.ts';

export type JobsOptions = { store: Store; runtime: Runtime; jobRunner: JobRunner };

export function historyResource({ store, runtime }: Pick<JobsOptions, 'store' | 'runtime'>): Resource {
  const entry = resource<Job>({
    title: 'Past job',
    description: 'One job of the history, with its messages.',
    access: 'administrator',
    answer: pastJobAnswer,
    read: ({ subject }) => ({
      ...jobToHistoryEntry(subject),
      messages: asJson(store.entries(messages, subject.id)),
    }),
    view: (page) => {
      // The history is closed while a job runs. After `resume` the browser must land on the page in `system/jobs`, which stays open.
      const here = (...beneath: readonly string[]) =>
        page.href('system', 'jobs', page.subject.id, ...beneath);
      return jobView(store, page.subject, runtime.now(), { ...page, here });
    },
  });
  return resource({
    title: 'History',
    description: 'All jobs, newest first.',
    access: 'administrator',
    answer: historyAnswer,
    read: () => ({ history: listJobs(store).map(jobToHistoryEntry) }),
    view: (page) => jobListView(listJobs(store), page),
    items: [jobItems(store, entry)],
  });
}

export function jobsResource(options: JobsOptions): Resource {
  const { store, runtime } = options;
  const job = resource<Job>({
    title: 'Job',
    description: 'The status of one job.',
    access: 'administrator',
    answer: statusAnswer,
    read: ({ subject }) => readStatus(options, subject.id),
    view: (page) => jobView(store, page.subject, runtime.now(), page),
    operations: { cancel: cancelOperation(options), resume: resumeOperation(options) },
  });
  return resource({
    title: 'Jobs',
    description: 'All jobs, newest first.',
    access: 'administrator',
    answer: jobsAnswer,
    read: () => ({ jobs: listJobs(store).map(jobToHistoryEntry) }),
    view: (page) => jobListView(listJobs(store), page),
    items: [jobItems(store, job)],
  });
}

function jobItems(store: Store, itemResource: Resource<Job>): Items {
  return items<unknown, Job>({
    param: 'job',
    find: (_subject, id) => {
      const job = store.get(jobs, id);
      if (!job) throw new ServiceError('not-found', 'There is no such job.');
      return job;
    },
    list: () => listJobs(store).map(({ id }) => id),
    resource: itemResource,
  });
}

function cancelOperation(options: JobsOptions): Operation<Job> {
  return operation<Job>({
    title: 'Cancel job',
    description:
      'Cancels a patch after the current step and reverts its workloads. A release can be cancelled only until its plan is executed.',
    access: 'administrator',
    effect: 'writes',
    whileReadOnly: 'allowed',
    fields: {},
    answer: statusAnswer,
    run: async ({ subject, caller, requireCaller }) => {
      await updateJob(options.store, subject.id, (transaction, job) => {
        requireCaller(transaction);
        const plan = transaction.get(plans, job.id);
        if (plan) requestCancel(transaction, job, plan, caller?.username ?? '');
      });
      return { json: readStatus(options, subject.id) };
    },
  });
}

function resumeOperation(options: JobsOptions): Operation<Job> {
  const { store, runtime, jobRunner } = options;
  return operation<Job>({
    title: 'Resume job',
    description: 'Resumes the newest job, if it has failed, at the first step that is not done.',
    access: 'administrator',
    effect: 'writes',
    whileReadOnly: 'allowed',
    fields: {},
    answer: statusAnswer,
    run: async ({ subject, caller, requireCaller }) => {
      const at = runtime.now();
      const by = caller?.username ?? '';
      await jobRunner.run(() =>
        updateJob(store, subject.id, (transaction, job) => {
          requireCaller(transaction);
          return resumeJob(transaction, job, { by, runner: store.self }, at);
        }),
      );
      return { json: readStatus(options, subject.id) };
    },
  });
}

/** Reads the job again, because it may have changed since the request found it. */
function updateJob<T>(
  store: Store,
  id: string,
  rule: (transaction: Transaction, job: Job) => T,
): Promise<T | undefined> {
  return store.update((transaction) => {
    const job = transaction.get(jobs, id);
    return job && rule(transaction, job);
  });
}

function readStatus({ store, runtime }: JobsOptions, id: string) {
  return asJson(jobStatus(store, store.get(jobs, id), runtime.now()));
}
