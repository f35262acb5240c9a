// REST resources of running services: whether a service is started, its operations `start` and `stop`, and the jobs
// that these return to programs that ask for one.
import * as z from 'zod';
import { notAudited } from '../lib/audit-fields.ts';
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import { answerObject, successAnswer } from '../rest/answer.ts';
import { boolean } from '../rest/field-types.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Resource, items, resource } from '../rest/resource.ts';
import type { Table } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { type CatalogLimits, type Service, type ServiceId, editService, pathOfService } from './catalog.ts';
import { type ConfiguredState, configuredStates } from './definition.ts';

/** A start or stop that has ended: both end at once. */
type ServiceJob = {
  readonly id: string;
  readonly operation: string;
  readonly path: string;
  readonly at: number;
};

const keptForMs = 3_600_000;
const maxJobs = 1_000;

export const serviceJobs: Table<ServiceJob> = {
  name: 'serviceJobs',
  keyOf: ({ id }) => id,
  defaults: {},
  auditFields: notAudited,
};

function addJob(transaction: Transaction, job: ServiceJob): void {
  const kept = [...transaction.all(serviceJobs)].sort((one, other) => other.at - one.at);
  const ended = kept.filter(({ at }, place) => at <= job.at - keptForMs || place >= maxJobs - 1);
  for (const { id } of ended) transaction.remove(serviceJobs, id);
  transaction.put(serviceJobs, job);
}

export type RunningOptions = {
  readonly store: ReadableStore;
  readonly runtime: Pick<Runtime, 'now' | 'newId'>;
  readonly limits: CatalogLimits;
  readonly notify: (transaction: Transaction, change: 'Updated', id: ServiceId, at: number) => void;
  /** The address of a job. */
  readonly jobUrl: (id: string) => string;
};

const state = z.enum(configuredStates);

const statusAnswer = answerObject('ServiceStatus', 'Whether a service is started.', {
  configuredState: state.describe('What was asked for.'),
  realTimeState: state.describe('What is: the same, since starting and stopping take no time.'),
});

export const statusResource: Resource<Service> = resource<Service>({
  title: 'Status',
  description: 'Whether the service is started. The catalogs for clients leave a stopped one out.',
  access: 'member',
  answer: statusAnswer,
  read: ({ subject: { configuredState } }) => ({ configuredState, realTimeState: configuredState }),
});

const startedAnswer = answerObject('ServiceStarted', 'The operation succeeded.', {
  ...successAnswer.shape,
  jobsUrl: z.string().optional().describe('With async=true: the address of the job, for an hour.'),
});

const runFields = {
  async: boolean()
    .default(false)
    .meta({ description: 'Whether the answer names a job, which has ended.', isAdvanced: true }),
};

export function startOperation(options: RunningOptions): Operation<Service> {
  return runOperation(options, 'start', 'STARTED');
}

export function stopOperation(options: RunningOptions): Operation<Service> {
  return runOperation(options, 'stop', 'STOPPED');
}

function runOperation(
  { runtime, limits, notify, jobUrl }: RunningOptions,
  name: 'start' | 'stop',
  configuredState: ConfiguredState,
): Operation<Service> {
  const participle = name === 'start' ? 'started' : 'stopped';
  return operation<Service, typeof runFields>({
    title: name === 'start' ? 'Start service' : 'Stop service',
    description:
      name === 'start'
        ? 'Lists the service in the catalogs for clients again.'
        : 'Leaves the service out of the catalogs for clients. It stays in the administrator directory.',
    access: 'publisher',
    fields: runFields,
    answer: startedAnswer,
    run: async ({ subject, values, update }) => {
      const job = values.async ? runtime.newId() : undefined;
      await update((transaction, at) => {
        const isChanged = editService(transaction, subject, { configuredState }, { at, limits });
        if (isChanged) notify(transaction, 'Updated', subject, at);
        if (job !== undefined)
          addJob(transaction, { id: job, operation: name, path: pathOfService(subject), at });
      });
      const path = pathOfService(subject);
      const link = { name: 'Open the service', path: ['services', ...path.split('/')] };
      const json = job === undefined ? {} : { jobsUrl: jobUrl(job) };
      return succeeded(`The service ${path} is ${participle}.`, link, json);
    },
  });
}

const jobAnswer = answerObject('ServiceJob', 'A start or stop of a service, which has ended.', {
  id: z.string(),
  status: z.literal('COMPLETED'),
  operation: z.string(),
  resource: z.strictObject({ name: z.string().describe('The service, as Folder/Name.Type.') }),
});

const jobsAnswer = answerObject('ServiceJobs', 'The jobs of the last hour, newest first.', {
  jobs: z.array(jobAnswer),
});

export function serviceJobsResource({ store, runtime }: Pick<RunningOptions, 'store' | 'runtime'>): Resource {
  const page = () => ['services'];
  const isKept = ({ at }: ServiceJob) => at > runtime.now() - keptForMs;
  const toJson = ({ id, operation: name, path }: ServiceJob) => ({
    id,
    status: 'COMPLETED' as const,
    operation: name,
    resource: { name: path },
  });
  const job = resource<ServiceJob>({
    title: 'Service job',
    description: 'A start or stop of a service, which has ended.',
    access: 'publisher',
    answer: jobAnswer,
    read: ({ subject }) => toJson(subject),
    page,
  });
  return resource({
    title: 'Service jobs',
    description: 'The starts and stops of services that programs have asked a job for.',
    access: 'publisher',
    answer: jobsAnswer,
    read: () => ({
      jobs: [...store.all(serviceJobs)]
        .filter(isKept)
        .sort((one, other) => other.at - one.at)
        .map(toJson),
    }),
    page,
    items: [
      items<unknown, ServiceJob>({
        param: 'serviceJob',
        find: (_root, id) => {
          const found = store.get(serviceJobs, id);
          if (!found || !isKept(found)) throw new ServiceError('not-found', 'There is no such job.');
          return found;
        },
        resource: job,
      }),
    ],
  });
}
