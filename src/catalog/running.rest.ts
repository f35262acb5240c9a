// REST resources of running services: whether a service is started, its operations `start` and `stop`, and the jobs
// that these return to programs that ask for one.
import * as z from 'zod';
import { ServiceError } from '../lib/errors.ts';
import { parseJson } from '../lib/json.ts';
import { answerObject, successAnswer } from '../rest/answer.ts';
import { boolean } from '../rest/field-types.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Resource, folder, items, resource } from '../rest/resource.ts';
import type { Transaction } from '../store/transaction.ts';
import { type CatalogLimits, type Service, type ServiceId, editService, pathOfService } from './catalog.ts';
import { type ConfiguredState, configuredStates } from './definition.ts';

const keptForMs = 3_600_000;

/** A start or stop that has ended: both end at once. Its id says everything about it, so none is stored. */
const serviceJob = z.strictObject({ at: z.int(), operation: z.enum(['start', 'stop']), path: z.string() });

type ServiceJob = z.output<typeof serviceJob>;

const idOf = (job: ServiceJob) => Buffer.from(JSON.stringify(job)).toString('base64url');

export type RunningOptions = {
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

export function runOperations({ limits, notify, jobUrl }: RunningOptions) {
  const run = (
    name: ServiceJob['operation'],
    configuredState: ConfiguredState,
    shown: { readonly title: string; readonly description: string; readonly participle: string },
  ): Operation<Service> =>
    operation<Service, typeof runFields>({
      ...shown,
      access: 'publisher',
      fields: runFields,
      answer: startedAnswer,
      run: async ({ subject, values, update }) => {
        const path = pathOfService(subject);
        const job = await update((transaction, at) => {
          const isChanged = editService(transaction, subject, { configuredState }, { at, limits });
          if (isChanged) notify(transaction, 'Updated', subject, at);
          return { at, operation: name, path };
        });
        const link = { name: 'Open the service', path: ['services', ...path.split('/')] };
        const json = values.async ? { jobsUrl: jobUrl(idOf(job)) } : {};
        return succeeded(`The service ${path} is ${shown.participle}.`, link, json);
      },
    });
  return {
    start: run('start', 'STARTED', {
      title: 'Start service',
      description: 'Lists the service in the catalogs for clients again.',
      participle: 'started',
    }),
    stop: run('stop', 'STOPPED', {
      title: 'Stop service',
      description:
        'Leaves the service out of the catalogs for clients. It stays in the administrator directory.',
      participle: 'stopped',
    }),
  };
}

const jobAnswer = answerObject('ServiceJob', 'A start or stop of a service, which has ended.', {
  id: z.string(),
  status: z.literal('COMPLETED'),
  operation: z.string(),
  resource: z.strictObject({ name: z.string().describe('The service, as Folder/Name.Type.') }),
});

/** The jobs lie beneath it. It lists none. */
export function serviceJobsResource(now: () => number): Resource {
  const page = () => ['services'];
  const job = resource<ServiceJob>({
    title: 'Service job',
    description: 'A start or stop of a service, which has ended. It is there for an hour.',
    access: 'publisher',
    answer: jobAnswer,
    read: ({ subject }) => ({
      id: idOf(subject),
      status: 'COMPLETED',
      operation: subject.operation,
      resource: { name: subject.path },
    }),
    page,
  });
  const find = (_root: unknown, id: string): ServiceJob => {
    const found = serviceJob.safeParse(parseJson(Buffer.from(id, 'base64url').toString())).data;
    const isKept = found && idOf(found) === id && found.at <= now() && found.at > now() - keptForMs;
    if (!isKept) throw new ServiceError('not-found', 'There is no such job.');
    return found;
  };
  return {
    ...folder({ title: 'Service jobs', description: 'For programs.', access: 'publisher', page }, {}),
    items: [items<unknown, ServiceJob>({ param: 'serviceJob', find, resource: job })],
  };
}
