// The types of events that the server itself sends: their data, and an example of each.
import * as z from 'zod';
import type { Json } from '../lib/json.ts';

const time = z.int().describe('Milliseconds since the epoch.');

const serviceData = z.object({
  folderName: z.string().describe('The folder of the service; / for the root.'),
  serviceName: z.string(),
  type: z.string().describe('The type of the service.'),
});

const jobData = z.object({
  jobId: z.string(),
  operation: z.enum(['upgrade', 'rollback']),
  from: z.string().describe('The version before the job, with its build.'),
  to: z.string().describe('The version after the job, with its build.'),
  startAt: time
    .optional()
    .describe('When the job is to start. Only if it is scheduled, or has missed its start.'),
  reason: z.string().optional().describe('Why the job failed or was cancelled.'),
});

const deactivatedData = z.object({
  webhookId: z.string(),
  webhookName: z.string(),
  failures: z.int().positive().describe('The failed deliveries in the failure window.'),
  windowStart: time.describe('The time of the first failure, in milliseconds since the epoch.'),
});

const failingData = z.object({
  ...deactivatedData.shape,
  numberOfFailures: z.int().positive().describe('The failures that deactivate the webhook.'),
});

export type EventData = {
  readonly service: z.output<typeof serviceData>;
  readonly job: z.output<typeof jobData>;
  readonly deactivated: z.output<typeof deactivatedData>;
  readonly failing: z.output<typeof failingData>;
};

export type EventType = {
  readonly type: string;
  readonly description: string;
  readonly data: z.ZodType;
  readonly example: { readonly service: string | null; readonly data: Readonly<Record<string, Json>> };
};

const service = {
  data: serviceData,
  example: {
    service: 'Harbour/Depths.MapServer',
    data: { folderName: 'Harbour', serviceName: 'Depths', type: 'MapServer' } satisfies EventData['service'],
  },
};

const exampleJob = {
  jobId: '6f1c2a34-52c8-4d0e-9a53-0c8f4f6f7a10',
  operation: 'upgrade',
  from: '10.9.1.1234',
  to: '10.9.1.1250',
} satisfies EventData['job'];
const job = { data: jobData, example: { service: null, data: exampleJob } };
const endedJob = (reason: string) => ({
  data: jobData,
  example: { service: null, data: { ...exampleJob, reason } },
});

const exampleWebhook = {
  webhookId: '39ed115c-46d8-4d10-8f97-9b01e3cd42a8',
  webhookName: 'Harbourmaster',
  failures: 5,
  windowStart: 1794817683815,
} satisfies EventData['deactivated'];
const failing = {
  data: failingData,
  example: {
    service: null,
    data: { ...exampleWebhook, failures: 3, numberOfFailures: 5 } satisfies EventData['failing'],
  },
};

export const pingType = 'Ping';

export const eventTypes: readonly EventType[] = [
  { type: 'ServiceCreated', description: 'A service was added to the catalog.', ...service },
  { type: 'ServiceUpdated', description: 'A service of the catalog was changed.', ...service },
  { type: 'ServiceDeleted', description: 'A service was removed from the catalog.', ...service },
  {
    type: 'UpgradeScheduled',
    description: 'An upgrade or rollback was scheduled, or its start was moved.',
    data: jobData,
    example: { service: null, data: { ...exampleJob, startAt: 1794817800000 } satisfies EventData['job'] },
  },
  {
    type: 'UpgradeMissed',
    description: 'A scheduled upgrade or rollback could not start in time.',
    data: jobData,
    example: {
      service: null,
      data: {
        ...exampleJob,
        startAt: 1794817800000,
        reason: 'Start: it missed its start at 2026-11-16T06:30:00.000Z.',
      } satisfies EventData['job'],
    },
  },
  { type: 'UpgradeStarted', description: 'An upgrade or rollback has started. Sent once per job.', ...job },
  { type: 'UpgradeSucceeded', description: 'An upgrade or rollback has succeeded.', ...job },
  {
    type: 'UpgradeFailed',
    description: 'A run of an upgrade or rollback has failed.',
    ...endedJob('Update module GATEWAY_PROXY: the image cannot be pulled.'),
  },
  {
    type: 'UpgradeCancelled',
    description: 'An upgrade was cancelled.',
    ...endedJob('Cancelled by administrator.'),
  },
  {
    type: 'WebhookFailing',
    description:
      'The failures of another webhook have reached half of those that deactivate it. Sent once per failure window.',
    ...failing,
  },
  {
    type: 'WebhookRecovered',
    description: 'A delivery to another webhook succeeded, for the first time after WebhookFailing.',
    ...failing,
  },
  {
    type: 'WebhookDeactivated',
    description: 'Too many failures have deactivated another webhook.',
    data: deactivatedData,
    example: { service: null, data: exampleWebhook },
  },
  {
    type: pingType,
    description: 'An administrator tests the webhook.',
    data: z.object({}),
    example: { service: null, data: {} },
  },
];

/** The names of the types. */
export const eventTypeNames = eventTypes.map(({ type }) => type);
