// REST resource of one webhook, and its operations.
import * as z from 'zod';
import { maskedValue } from '../lib/audit-fields.ts';
import { formatCount, formatNumber } from '../lib/format.ts';
import { answerObject, successAnswer, time } from '../rest/answer.ts';
import { boolean, choice, integer } from '../rest/field-types.ts';
import { definedOnly } from '../rest/fields.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { type Outcome, succeeded } from '../rest/outcome.ts';
import { type Items, type Resource, items, resource } from '../rest/resource.ts';
import { compareFields } from '../store/audit-change.ts';
import {
  type DeliveryDeps,
  deliveriesResource,
  deliveryCreatedAnswer,
  describeRedelivery,
  redeliverToOneOperation,
  redeliveryAnswer,
} from './deliveries.rest.ts';
import { eventTypeNames, pingType } from './event-types.ts';
import { eventOf } from './event.ts';
import {
  type WebhookRules,
  headerProblems,
  servicePaths,
  serviceProblems,
  webhookFields,
} from './fields.rest.ts';
import { historyResource } from './history.rest.ts';
import { exampleEvent } from './own-events.ts';
import {
  deactivationWarning,
  deletionWarning,
  deliveryLink,
  discardedText,
  wasOrWere,
  webhookLink,
  webhookList,
} from './pages/sentences.ts';
import { showWebhook } from './pages/webhook.ts';
import { maxCountedDeliveries } from './queue/delivery-filter.ts';
import { newDelivery, recoverableStates } from './queue/delivery.ts';
import {
  type Requested,
  countRecoverable,
  countUndelivered,
  requestRedeliveries,
} from './queue/redelivery.ts';
import {
  activateWebhook,
  deactivateWebhook,
  deleteWebhook,
  dismissUndelivered,
  editWebhook,
  headersAfter,
  rotateKey,
} from './registry.ts';
import { requestToJson } from './sending/delivery-request.ts';
import { maskHeaders } from './sending/headers.ts';
import type { OutgoingRequest } from './sending/http-client.ts';
import { makeSignatureKey, signatureKeyBytes } from './sending/signature.ts';
import {
  type Webhook,
  bodyFormats,
  contentTypes,
  healths,
  maxUndelivered,
  previousKeyUntil,
  requireWebhook,
  webhookToJson,
} from './webhook.ts';

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
  bodyFormat: z
    .enum(bodyFormats)
    .describe('What a body is: an envelope around the payload of the event, or the payload alone.'),
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
      'behind: active, and something is undelivered. failing: the window has at least half of the failures that deactivate the webhook. deactivated: by failures. inactive: by an administrator, or since it was created.',
    ),
  undelivered: z
    .int()
    .nonnegative()
    .describe(
      `How many deliveries were neither delivered nor dismissed, redelivered ones until their redelivery is delivered, counted up to ${formatNumber(maxUndelivered)}.`,
    ),
  undeliveredIsExact: z.boolean().describe('false: there are more.'),
  failures: z
    .strictObject({
      count: z.int().nonnegative().describe('Failed deliveries in the window.'),
      windowStart: time.nullable().describe('The time of the first failure. Null: no window is open.'),
      windowEnd: time.nullable(),
    })
    .describe('The window in which failures are counted.'),
  previousKeyUntil: time
    .nullable()
    .describe(
      'Until when the previous key signs too, in milliseconds since the epoch. Null: no previous key signs.',
    ),
});

export const discardedAnswer = answerObject('Discarded', 'The operation succeeded.', {
  ...successAnswer.shape,
  discarded: z.int().nonnegative().describe('How many pending deliveries are discarded.'),
});

const editedAnswer = answerObject('WebhookEdited', 'The operation succeeded.', {
  ...successAnswer.shape,
  discarded: discardedAnswer.shape.discarded
    .optional()
    .describe('With active=false: how many pending deliveries are discarded.'),
});

export type WebhookDeps = DeliveryDeps & { readonly rules: WebhookRules };

export function webhookItems<S>(
  deps: WebhookDeps,
  find: (list: S, id: string) => Webhook,
  page: Resource<Webhook>['page'] = () => undefined,
): Items<S> {
  return items<S, Webhook>({ param: 'webhook', find, resource: { ...webhookResource(deps), page } });
}

function webhookResource(deps: WebhookDeps): Resource<Webhook> {
  const { store, runtime } = deps;
  return resource<Webhook>({
    title: 'Webhook',
    titleOf: ({ name }) => name,
    description: 'One webhook: its receiver, the events it gets, its state and its failures.',
    answer: webhookAnswer,
    read: async ({ subject }) => {
      const at = runtime.now();
      const undelivered = await countUndelivered(store, [subject], at);
      return webhookToJson(store, subject, at, undelivered.get(subject.id));
    },
    view: showWebhook(store, (webhook) => exampleRequest(webhook, deps)),
    resources: {
      deliveries: deliveriesResource<Webhook>(deps, ({ id }) => id),
      history: historyResource<Webhook>(deps, (webhook) => webhook),
    },
    operations: {
      edit: editOperation(deps),
      delete: operation<Webhook>({
        title: 'Delete webhook',
        description: 'Deletes the webhook and its deliveries.',
        answer: discardedAnswer,
        isDestructive: true,
        warning: (webhook) => deletionWarning(store, [webhook]),
        run: async ({ subject, update }) => {
          const discarded = await store.deliveries.pendingOf([subject.id]);
          await update((transaction) => deleteWebhook(transaction, subject.id));
          const text = `The webhook ${subject.name} was deleted.`;
          return succeeded(text, webhookList, { discarded });
        },
      }),
      activate: activateOperation(deps),
      dismiss: dismissOperation(deps),
      deactivate: operation<Webhook>({
        title: 'Deactivate webhook',
        description: 'Sends no more events to the webhook and discards its pending deliveries.',
        answer: discardedAnswer,
        isDestructive: true,
        warning: (webhook) => deactivationWarning(store, webhook),
        run: async ({ subject, update }) => {
          const discarded = await store.deliveries.pendingOf([subject.id]);
          await update((transaction, at) => deactivateWebhook(transaction, subject.id, 'administrator', at));
          const text = subject.active
            ? `${subject.name} is deactivated. ${discardedText(discarded)}`
            : `${subject.name} was inactive already.`;
          return succeeded(text, webhookLink(subject), { discarded });
        },
      }),
      redeliver: redeliverToOneOperation(deps),
      rotateKey: rotateKeyOperation(deps),
      ping: pingOperation(deps),
    },
  });
}

/** Always the same, as long as the webhook is not changed. */
function exampleRequest(webhook: Webhook, { request }: WebhookDeps): OutgoingRequest {
  const { id: webhookId, updatedAt, changeTypes } = webhook;
  const type = eventTypeNames.find((name) => changeTypes.includes('*') || changeTypes.includes(name));
  const event = eventOf(exampleEvent(type), webhookId, updatedAt);
  const delivery = newDelivery({ id: webhookId, webhookId, event, isPing: true }, updatedAt);
  return requestToJson(delivery, webhook, updatedAt, request);
}

/** The key of an answer, which no other answer has. */
export function shownKey(value: string): NonNullable<Outcome['shownOnce']> {
  return {
    label: 'Signature key.',
    value,
    hint: 'Give it to the receiver, which verifies every delivery with it. It is not shown again.',
  };
}

export function newSignatureKey({ runtime }: WebhookDeps): string {
  return makeSignatureKey(runtime.newSecret(signatureKeyBytes.default));
}

const activateFields = {
  redeliver: boolean()
    .default(false)
    .meta({ label: 'Redeliver', description: 'Whether everything undelivered is redelivered.' }),
};

const activatedAnswer = answerObject('WebhookActivated', 'The operation succeeded.', {
  ...successAnswer.shape,
  matched: redeliveryAnswer.shape.matched.optional().describe('With redeliver=true: as redeliver answers.'),
  matchedIsExact: redeliveryAnswer.shape.matchedIsExact,
});

function activateOperation({ store, runtime }: WebhookDeps): Operation<Webhook> {
  return operation<Webhook, typeof activateFields>({
    title: 'Activate webhook',
    form: 'elsewhere',
    description: 'Sends events to the webhook again and resets its failure count.',
    fields: activateFields,
    answer: activatedAnswer,
    run: async ({ subject, values: { redeliver }, update }) => {
      const request = {
        filter: { states: recoverableStates },
        requestedAt: runtime.now(),
        skipsDismissed: true,
        newId: runtime.newId,
      };
      const counted =
        redeliver &&
        (await countRecoverable(store, [subject], request.requestedAt, { most: maxCountedDeliveries }));
      const requested = await update(
        (transaction, at) => {
          activateWebhook(transaction, subject.id, at);
          return counted ? requestRedeliveries(transaction, [subject.id], counted, request) : undefined;
        },
        { changes: (result) => (result ? compareFields({}, answerOf(result)) : []) },
      );
      const text = `${subject.name} is active. Its failures are counted from 0.`;
      if (!requested) return succeeded(text, webhookLink(subject));
      return succeeded(`${text} ${describeRedelivery(requested)}`, webhookLink(subject), answerOf(requested));
    },
  });
}

/** Nothing is skipped: the webhook is active. */
function answerOf({ skipped: _skipped, ...matched }: Requested) {
  return matched;
}

const dismissedAnswer = answerObject('Dismissed', 'The operation succeeded.', {
  ...successAnswer.shape,
  dismissed: z
    .int()
    .nonnegative()
    .describe(`How many deliveries are dismissed, counted up to ${formatNumber(maxCountedDeliveries)}.`),
});

function dismissOperation({ store, runtime }: WebhookDeps): Operation<Webhook> {
  return operation<Webhook>({
    title: 'Dismiss undelivered',
    form: 'elsewhere',
    description:
      'Counts what is undelivered now no more. The deliveries are kept, and can still be redelivered by filter.',
    answer: dismissedAnswer,
    run: async ({ subject, update }) => {
      const at = runtime.now();
      const counts = await countUndelivered(store, [subject], at, { most: maxCountedDeliveries });
      const dismissed = Math.min(counts.get(subject.id) ?? 0, maxCountedDeliveries);
      await update((transaction) => dismissUndelivered(transaction, subject.id, at), {
        changes: () => compareFields({}, { dismissed }),
      });
      const text = `${formatCount(dismissed, 'undelivered delivery')} ${wasOrWere(dismissed)} dismissed.`;
      return succeeded(text, webhookLink(subject), { dismissed });
    },
  });
}

function editOperation(deps: WebhookDeps): Operation<Webhook> {
  const { edit: fields } = webhookFields(deps.rules);
  return operation<Webhook, typeof fields>({
    title: 'Edit webhook',
    description: 'Changes the given fields. Pending deliveries are sent to the new address.',
    fields,
    answer: editedAnswer,
    // A form that was opened earlier must not activate a webhook that was deactivated meanwhile.
    unchanged: ({ active }) => ({ active: String(active) }),
    suggest: (_subject, caller) => ({ service: servicePaths(deps.store, caller) }),
    present: (webhook) => ({
      name: webhook.name,
      hookUrl: webhook.hookUrl,
      changeTypes: webhook.changeTypes.join(','),
      contentType: webhook.contentType,
      bodyFormat: webhook.bodyFormat,
      service: webhook.service ?? '',
      headers: webhook.headers.length > 0 ? JSON.stringify(maskHeaders(webhook.headers)) : '',
      version: String(webhook.updatedAt),
    }),
    // A webhook keeps a service that was deleted, so only a new service is checked.
    check: ({ subject, values, caller }) => ({
      problems: [
        ...(values.service === subject.service
          ? []
          : serviceProblems(deps.store, values.service || undefined, caller)),
        ...headerProblems(headersAfter(values, subject)),
      ],
    }),
    run: async ({ subject, values: { service, version, ...values }, update }) => {
      const edit = {
        ...definedOnly(values),
        ...(service !== undefined && { service: service === '' ? null : service }),
      };
      const discarded =
        values.active === false ? await deps.store.deliveries.pendingOf([subject.id]) : undefined;
      await update((transaction, at) => editWebhook(transaction, subject.id, edit, { at, version }));
      const { id, name } = { ...subject, ...edit };
      const text = `The webhook ${name} was changed.`;
      const link = webhookLink({ id, name });
      if (discarded === undefined) return succeeded(text, link);
      return succeeded(`${text} ${discardedText(discarded)}`, link, { discarded });
    },
  });
}

const rotateFields = {
  graceHours: integer(0, 168)
    .default(24)
    .meta({ label: 'Grace period, in hours', description: 'Hours during which the previous key signs too.' }),
};

export const keyRotatedAnswer = answerObject('KeyRotated', 'The new key of the webhook.', {
  ...successAnswer.shape,
  signatureKey: z.string().describe('The key that signs deliveries. It is not shown again.'),
  previousKeyUntil: webhookAnswer.shape.previousKeyUntil,
});

function rotateKeyOperation(deps: WebhookDeps): Operation<Webhook> {
  const { runtime } = deps;
  return operation<Webhook, typeof rotateFields>({
    title: 'Rotate key',
    description:
      'Generates a new signature key and shows it once. Both keys sign until the grace period ends.',
    fields: rotateFields,
    present: () => ({ graceHours: '24' }),
    warning: ({ name }) =>
      `The receiver of ${name} must know the new key before the grace period ends. After that it refuses deliveries.`,
    answer: keyRotatedAnswer,
    run: async ({ subject, values: { graceHours }, update }) => {
      const key = newSignatureKey(deps);
      const webhook = await update((transaction, at) =>
        rotateKey(transaction, subject.id, { key, graceMs: graceHours * 3_600_000 }, at),
      );
      const until = previousKeyUntil(webhook, runtime.now());
      const former = until === null ? 'no longer signs' : `signs too until ${new Date(until).toISOString()}`;
      const text = `The webhook ${subject.name} has a new key. The previous one ${former}.`;
      const answer = { signatureKey: key, previousKeyUntil: until };
      return { ...succeeded(text, webhookLink(subject), answer), shownOnce: shownKey(key) };
    },
  });
}

const pingFields = {
  changeType: choice(eventTypeNames)
    .default(pingType)
    .meta({ label: 'Event type', description: 'The type of the event. Its example is sent.' }),
};

function pingOperation({ runtime }: WebhookDeps): Operation<Webhook> {
  return operation<Webhook, typeof pingFields>({
    title: 'Ping',
    form: 'elsewhere',
    description: 'Sends one example event, in one attempt, even if the webhook is inactive.',
    fields: pingFields,
    answer: deliveryCreatedAnswer,
    run: async ({ subject: { id: webhookId, name }, values: { changeType }, update }) => {
      let id = '';
      await update(
        (transaction, at) => {
          id = runtime.newId(at);
          const eventId = runtime.newId(at);
          requireWebhook(transaction, webhookId);
          const event = eventOf(exampleEvent(changeType), eventId, at);
          transaction.deliveries.enqueue([newDelivery({ id, webhookId, event, isPing: true }, at)]);
        },
        { changes: () => compareFields({}, { deliveryId: id }) },
      );
      const link = deliveryLink(webhookId, id);
      const outcome = succeeded(`${changeType} was sent to ${name}.`, link, { deliveryId: id });
      return { ...outcome, names: { delivery: id } };
    },
  });
}
