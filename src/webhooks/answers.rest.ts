// Schemas of the answers about webhooks and deliveries.
import * as z from 'zod';
import { maskedValue } from '../lib/audit-fields.ts';
import { formatNumber } from '../lib/format.ts';
import { answerObject, time } from '../rest/answer.ts';
import { maxCountedDeliveries } from './queue/delivery-filter.ts';
import { deliveryStates } from './queue/delivery.ts';
import { settingsSchema } from './settings.ts';
import { contentTypes, healths } from './webhook.ts';

const success = z.literal('success');
const signatureKey = z.string().describe('The key that signs deliveries. It is not shown again.');
const previousKeyUntil = time
  .nullable()
  .describe(
    'Until when the previous key signs too, in milliseconds since the epoch. Null: no previous key signs.',
  );

export const webhookAnswer = answerObject('Webhook', 'A webhook.', {
  id: z.string(),
  name: z.string(),
  hookUrl: z.string().describe('The address of the receiver.'),
  changeTypes: z.array(z.string()).describe('The event types it receives; * for all.'),
  service: z
    .string()
    .nullable()
    .describe('The service whose events it receives, as Folder/Name.Type. Null: the whole organization.'),
  active: z.boolean(),
  contentType: z.enum(contentTypes).describe('The content type of deliveries.'),
  headers: z
    .record(z.string(), z.literal(maskedValue))
    .describe('The headers that every request to the receiver carries. Their values are not shown.'),
  createdAt: time,
  updatedAt: time,
  deactivatedAt: time.nullable().describe('Null: the webhook is active, or was created inactive.'),
  deactivatedBy: z.enum(['failures', 'administrator']).nullable(),
  health: z
    .enum(healths)
    .describe(
      'failing: the window has at least half of the failures that deactivate the webhook. deactivated: by failures. inactive: by an administrator, or since it was created.',
    ),
  failures: z
    .strictObject({
      count: z.int().nonnegative().describe('Failed deliveries in the window.'),
      windowStart: time.nullable().describe('The time of the first failure. Null: no window is open.'),
      windowEnd: time.nullable(),
    })
    .describe('The window in which failures are counted.'),
  previousKeyUntil,
});

export const webhooksAnswer = answerObject('Webhooks', 'The webhooks, oldest first.', {
  webhooks: z.array(webhookAnswer),
});

export const webhookCreatedAnswer = answerObject('WebhookCreated', 'The new webhook and its key.', {
  status: success,
  id: z.string().describe('The id of the webhook.'),
  webhook: webhookAnswer,
  signatureKey,
});

export const keyRotatedAnswer = answerObject('KeyRotated', 'The new key of the webhook.', {
  status: success,
  signatureKey,
  previousKeyUntil,
});

export const deliveryCreatedAnswer = answerObject('DeliveryCreated', 'The new delivery.', {
  status: success,
  deliveryId: z.string(),
});

export const eventPublishedAnswer = answerObject('EventPublished', 'The published event.', {
  status: success,
  eventId: z.string(),
  deliveries: z
    .int()
    .nonnegative()
    .describe('How many webhooks receive the event, without those that are inactive.'),
});

const discarded = z.int().nonnegative().describe('How many pending deliveries are discarded.');

export const discardedAnswer = answerObject('Discarded', 'The operation succeeded.', {
  status: success,
  discarded,
});

export const editedAnswer = answerObject('WebhookEdited', 'The operation succeeded.', {
  status: success,
  discarded: discarded.optional().describe('With active=false: how many pending deliveries are discarded.'),
});

export const allWebhooksAnswer = answerObject('AllWebhooks', 'The operation succeeded.', {
  status: success,
  webhooks: z.int().nonnegative().describe('How many webhooks were changed.'),
  discarded,
});

export const redeliveryAnswer = answerObject('Redelivery', 'The deliveries that are redelivered.', {
  status: success,
  matched: z.int().nonnegative().describe('How many deliveries are redelivered.'),
  skipped: z.int().nonnegative().describe('How many match, but belong to inactive webhooks.'),
});

export const settingsAnswer = answerObject('WebhookSettings', 'The settings of all webhooks.', {
  ...settingsSchema.shape,
  status: success,
});

const attemptFields = {
  when: time,
  durationMs: z.int().nonnegative(),
  status: z.int().nullable().describe('The HTTP status of the receiver. Null: it did not answer.'),
  error: z.string().nullable().describe('Why the attempt failed. Null: it succeeded.'),
  response: z.string().nullable().describe('The beginning of the response body, at most 1 KiB.'),
};

const deliveryFields = {
  id: z.string(),
  webhookId: z.string(),
  webhookName: z.string().nullable().describe('Null: the webhook has just been deleted.'),
  event: z.strictObject({ id: z.string(), type: z.string(), timestamp: time }),
  state: z
    .enum(deliveryStates)
    .describe(
      'discarded: the webhook was deactivated before the delivery ended. missed: the webhook was inactive when the event was published, ' +
        'or too many deliveries were pending for an event of the server itself.',
    ),
  createdAt: time,
  endedAt: time.nullable().describe('Null: the delivery is pending.'),
  nextAttemptAt: time.nullable().describe('Null: the delivery has ended.'),
  redeliveryOf: z.string().optional().describe('The delivery that this one repeats.'),
  redeliveredAs: z.string().optional().describe('The newest delivery that repeats this one.'),
};

const listedDelivery = answerObject('Delivery', 'One event for one webhook.', {
  ...deliveryFields,
  attempts: z.array(z.strictObject(attemptFields)),
});

const headers = z.record(z.string(), z.string());

export const deliveryAnswer = answerObject('DeliveryDetails', 'One event for one webhook, as it was sent.', {
  ...deliveryFields,
  attempts: z.array(
    z.strictObject({
      ...attemptFields,
      responseHeaders: headers.describe(
        'The headers of the response, at most 4 KiB. The values of set-cookie and of custom headers are ***.',
      ),
    }),
  ),
  request: z
    .strictObject({
      url: z.string(),
      headers: headers.describe('The values of custom headers are ***.'),
      body: z.string(),
    })
    .describe(
      'What the last attempt sent. Without an attempt: what the next one or a redelivery would send now.',
    ),
});

export const deliveriesAnswer = answerObject('Deliveries', 'A page of deliveries, newest first.', {
  deliveries: z.array(listedDelivery),
  total: z
    .int()
    .nonnegative()
    .describe(`How many match, at most ${formatNumber(maxCountedDeliveries)}.`),
  totalIsExact: z.literal(false).optional().describe('false: more match.'),
});
