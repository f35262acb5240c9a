// REST edge of jobs: the history beneath the upgrades resource, and `system/jobs`, readable while a job runs.
import { ServiceError } from '../errors.ts';
import { type Resource, isId, items, operation, resource } from '../rest/resource.ts';
import { asJson } from '../lib/json.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Runtime } from '../runtime.ts';
import { requestCancel, resumeJob } from './job.ts';
import { type Job, jobs, listJobs, messages, plans } from './job-table.ts';
import { jobListView, jobView } from './pages/jobs.ts';
import type { JobRunner } from './job-runner.ts';
import { jobToHistoryEntry, jobStatus } from './job-status.ts';

export type JobsOptions = { store: Store; runtime: Runtime; runner: JobRunner };

/** The jobs of a store by their ids, each shown by a resource of its own. */
function jobItems(store: Store, shown: Resource<Job>) {
  return items<unknown, Job>({
    param: 'job',
    accepts: isId,
    find: (_subject, id) => {
      const job = store.get(jobs, id);
      if (!job) throw new ServiceError('not-found', 'There is no such job.');
      return job;
    },
    list: () => listJobs(store).map(({ id }) => id),
    resource: shown,
  });
}

export function historyResource({ store, runtime }: Pick<JobsOptions, 'store' | 'runtime'>): Resource {
  const entry = resource<Job>({
    title: 'Past job',
    description: 'One job of the history, with its messages.',
    access: 'administrator',
    read: ({ subject }) => ({
      ...jobToHistoryEntry(subject),
      messages: asJson(store.entries(messages, subject.id)),
    }),
    view: (shown) => {
      // The history is closed once the job is resumed, so the way leads on to the page that stays open.
      const here = (...beneath: readonly string[]) =>
        shown.href('system', 'jobs', shown.subject.id, ...beneath);
      return jobView(store, shown.subject, runtime.now(), { ...shown, here });
    },
  });
  return resource({
    title: 'History',
    description: 'Every job there was, newest first.',
    access: 'administrator',
    read: () => ({ history: listJobs(store).map(jobToHistoryEntry) }),
    view: (shown) => jobListView(listJobs(store), shown),
    items: [jobItems(store, entry)],
  });
}

export function jobsResource({ store, runtime, runner }: JobsOptions): Resource {
  /** Changes the job as it is now, not as it was when it was found. */
  const change = <T>(id: string, rule: (transaction: Transaction, job: Job) => T) =>
    store.update((transaction) => {
      const job = transaction.get(jobs, id);
      return job && rule(transaction, job);
    });
  const statusNow = (id: string) => asJson(jobStatus(store, store.get(jobs, id), runtime.now()));

  const job = resource<Job>({
    title: 'Job',
    description: 'The status of one job.',
    access: 'administrator',
    read: ({ subject }) => statusNow(subject.id),
    view: (shown) => jobView(store, shown.subject, runtime.now(), shown),
    operations: {
      cancel: operation<Job>({
        title: 'Cancel job',
        description:
          'Ends a patch at the next step, putting back what it moved; a release only before its plan is executed.',
        access: 'administrator',
        effect: 'writes',
        whileReadOnly: 'allowed',
        fields: {},
        run: async ({ subject, caller }) => {
          await change(subject.id, (transaction, current) => {
            const plan = transaction.get(plans, current.id);
            if (plan) requestCancel(transaction, current, plan, caller?.username ?? '');
          });
          return { json: statusNow(subject.id) };
        },
      }),
      resume: operation<Job>({
        title: 'Resume job',
        description: 'Goes on with the newest job, if it has failed, at the first step that is not done.',
        access: 'administrator',
        effect: 'writes',
        whileReadOnly: 'allowed',
        fields: {},
        run: async ({ subject, caller }) => {
          const at = runtime.now();
          const by = caller?.username ?? '';
          await runner.run(() =>
            change(subject.id, (transaction, current) =>
              resumeJob(transaction, current, { by, runner: store.self }, at),
            ),
          );
          return { json: statusNow(subject.id) };
        },
      }),
    },
  });
  return resource({
    title: 'Jobs',
    description: 'Every job there was or is, newest first.',
    access: 'administrator',
    read: () => ({ jobs: listJobs(store).map(jobToHistoryEntry) }),
    view: (shown) => jobListView(listJobs(store), shown),
    items: [jobItems(store, job)],
  });
}
