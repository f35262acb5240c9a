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

const adoptionData = z.object({
  from: z.string().nullable().describe('The version before, with its build. Null: it was not known.'),
  to: z.string().describe('The version that is installed, with its build.'),
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
  readonly adoption: z.output<typeof adoptionData>;
  readonly deactivated: z.output<typeof deactivatedData>;
  readonly failing: z.output<typeof failingData>;
};

export type EventType = {
  readonly type: string;
  readonly description: string;
  readonly data: z.ZodType;
  readonly example: { readonly service: string | null; readonly data: Readonly<Record<string, Json>> };
};

function eventType(
  type: string,
  description: string,
  data: z.ZodType,
  example: EventType['example']['data'],
  service: string | null = null,
): EventType {
  return { type, description, data, example: { service, data: example } };
}

const aService = { folderName: 'Harbour', serviceName: 'Depths', type: 'MapServer' };

const serviceType = (type: string, description: string) =>
  eventType(type, description, serviceData, aService, 'Harbour/Depths.MapServer');

const aJob = {
  jobId: '6f1c2a34-52c8-4d0e-9a53-0c8f4f6f7a10',
  operation: 'upgrade',
  from: '10.9.1.1234',
  to: '10.9.1.1250',
} as const;

/** `more`: what only the events of this type have. */
const jobType = (type: string, description: string, more: { startAt?: number; reason?: string } = {}) =>
  eventType(type, description, jobData, { ...aJob, ...more });

const aWebhook = {
  webhookId: '39ed115c-46d8-4d10-8f97-9b01e3cd42a8',
  webhookName: 'Harbourmaster',
  failures: 5,
  windowStart: 1794817683815,
};

const failingType = (type: string, description: string) =>
  eventType(type, description, failingData, { ...aWebhook, failures: 3, numberOfFailures: 5 });

const startAt = 1794817800000;

export const pingType = 'Ping';

export const eventTypes: readonly EventType[] = [
  serviceType('ServiceCreated', 'A service was added to the catalog.'),
  serviceType('ServiceUpdated', 'A service of the catalog was changed.'),
  serviceType('ServiceDeleted', 'A service was removed from the catalog.'),
  jobType('UpgradeScheduled', 'An upgrade or rollback was scheduled, or its start was moved.', { startAt }),
  jobType('UpgradeMissed', 'A scheduled upgrade or rollback could not start in time.', {
    startAt,
    reason: 'Start: it missed its start at 2026-11-16T06:30:00.000Z.',
  }),
  jobType('UpgradeStarted', 'An upgrade or rollback has started. Sent once per job.'),
  jobType('UpgradeSucceeded', 'An upgrade or rollback has succeeded.'),
  jobType('UpgradeFailed', 'A run of an upgrade or rollback has failed.', {
    reason: 'Update module GATEWAY_PROXY: the image cannot be pulled.',
  }),
  jobType('UpgradeCancelled', 'An upgrade was cancelled.', { reason: 'Cancelled by administrator.' }),
  eventType('VersionAdopted', 'An administrator has declared which version is installed.', adoptionData, {
    from: '10.9.1.1234',
    to: '11.5.0.6815',
  }),
  failingType(
    'WebhookFailing',
    'The failures of another webhook have reached half of those that deactivate it. Sent once per failure window.',
  ),
  failingType(
    'WebhookRecovered',
    'A delivery to another webhook succeeded, for the first time after WebhookFailing.',
  ),
  eventType(
    'WebhookDeactivated',
    'Too many failures have deactivated another webhook.',
    deactivatedData,
    aWebhook,
  ),
  eventType(pingType, 'An administrator tests the webhook.', z.object({}), {}),
];

/** The names of the types. */
export const eventTypeNames = eventTypes.map(({ type }) => type);

/** Those of events about a service. */
export const serviceTypes = eventTypes
  .filter(({ example }) => example.service !== null)
  .map(({ type }) => type);
