// REST resource of one webhook, and its operations.
import { type Service, pathOfService } from '../catalog/catalog.ts';
import { choice, integer } from '../rest/field-types.ts';
import { definedOnly } from '../rest/fields.ts';
import {
  type Items,
  type Operation,
  type Outcome,
  type Resource,
  items,
  operation,
  resource,
  succeeded,
} from '../rest/resource.ts';
import { compareFields } from '../store/audit-change.ts';
import {
  deliveryCreatedAnswer,
  discardedAnswer,
  editedAnswer,
  keyRotatedAnswer,
  webhookAnswer,
} from './answers.rest.ts';
import { type DeliveryDeps, deliveriesResource, redeliverToOneOperation } from './deliveries.rest.ts';
import { eventTypeNames, pingType } from './event-types.ts';
import { eventOf } from './event.ts';
import {
  type WebhookRules,
  headerProblems,
  servicePaths,
  serviceProblems,
  webhookFields,
} from './fields.rest.ts';
import { exampleEvent } from './own-events.ts';
import {
  deactivationWarning,
  deletionWarning,
  deliveryLink,
  discardedText,
  webhookLink,
  webhookList,
} from './pages/sentences.ts';
import { showWebhook } from './pages/webhook.ts';
import { newDelivery } from './queue/delivery.ts';
import {
  activateWebhook,
  deactivateWebhook,
  deleteWebhook,
  editWebhook,
  headersAfter,
  rotateKey,
} from './registry.ts';
import { maskHeaders } from './sending/headers.ts';
import { makeSignatureKey, signatureKeyBytes } from './sending/signature.ts';
import { type Webhook, previousKeyUntil, requireWebhook, webhookNotFound, webhookToJson } from './webhook.ts';

export type WebhookDeps = DeliveryDeps & { readonly rules: WebhookRules };

export function webhookItems(deps: WebhookDeps): Items {
  return itemsOf<unknown>(deps, (_list, id) => requireWebhook(deps.store, id));
}

/** The same webhooks, beneath their services. */
export function serviceWebhookItems(deps: WebhookDeps): Items<Service> {
  return itemsOf<Service>(deps, (service, id) => {
    const webhook = requireWebhook(deps.store, id);
    if (webhook.service !== pathOfService(service)) throw webhookNotFound();
    return webhook;
  });
}

function itemsOf<S>(deps: WebhookDeps, find: (list: S, id: string) => Webhook): Items<S> {
  return items<S, Webhook>({
    param: 'webhook',
    find,
    resource: webhookResource(deps),
  });
}

function webhookResource(deps: WebhookDeps): Resource<Webhook> {
  const { store, runtime } = deps;
  return resource<Webhook>({
    title: 'Webhook',
    titleOf: ({ name }) => name,
    description: 'One webhook: its receiver, the events it gets, its state and its failures.',
    answer: webhookAnswer,
    read: ({ subject }) => webhookToJson(store, subject, runtime.now()),
    view: showWebhook(store),
    resources: { deliveries: deliveriesResource<Webhook>(deps, ({ id }) => id) },
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
      activate: operation<Webhook>({
        title: 'Activate webhook',
        description: 'Sends events to the webhook again and resets its failure count.',
        run: async ({ subject, update }) => {
          await update((transaction, at) => activateWebhook(transaction, subject.id, at));
          return succeeded(
            `${subject.name} is active. Its failures are counted from 0.`,
            webhookLink(subject),
          );
        },
      }),
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
      const { id, name } = { ...subject, ...definedOnly({ name: values.name }) };
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

function rotateKeyOperation(deps: WebhookDeps): Operation<Webhook> {
  const { runtime } = deps;
  return operation<Webhook, typeof rotateFields>({
    title: 'Rotate key',
    description:
      'Generates a new signature key and shows it once. Both keys sign until the grace period ends.',
    fields: rotateFields,
    warning: ({ name }) =>
      `The receiver of ${name} must know the new key before the grace period ends. After that it refuses deliveries.`,
    answer: keyRotatedAnswer,
    run: async ({ subject, values: { graceHours }, update }) => {
      const key = newSignatureKey(deps);
      const webhook = await update((transaction, at) =>
        rotateKey(transaction, subject.id, { key, graceMs: graceHours * 3_600_000 }, at),
      );
      const answer = { signatureKey: key, previousKeyUntil: previousKeyUntil(webhook, runtime.now()) };
      const text = `The webhook ${subject.name} has a new key.`;
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
    description: 'Sends one example event, in one attempt, even if the webhook is inactive.',
    fields: pingFields,
    answer: deliveryCreatedAnswer,
    run: async ({ subject: { id: webhookId, name }, values: { changeType }, update }) => {
      const id = runtime.newId();
      const eventId = runtime.newId();
      await update(
        (transaction, at) => {
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
