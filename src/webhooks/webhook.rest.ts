// REST resource of one webhook, and its operations.
import { compareFields } from '../audit/change.ts';
import { type Service, pathOfService } from '../catalog/catalog.ts';
import { type AnswerSchema, successAnswer } from '../rest/answer.ts';
import { choice, definedOnly, defaultTo, integer } from '../rest/fields.ts';
import {
  type Items,
  type Operation,
  type OperationCall,
  type Outcome,
  type Resource,
  items,
  operation,
  resource,
  success,
} from '../rest/resource.ts';
import type { Transaction } from '../store/transaction.ts';
import {
  deliveryCreatedAnswer,
  discardedAnswer,
  editedAnswer,
  keyRotatedAnswer,
  webhookAnswer,
} from './answers.ts';
import { type DeliveryDeps, deliveriesResource } from './deliveries.rest.ts';
import { newDelivery } from './delivery.ts';
import { eventOf } from './event.ts';
import { type WebhookRules, headerProblems, serviceProblems, webhookFields } from './fields.ts';
import { maskHeaders } from './headers.ts';
import { eventTypeNames, pingType } from './event-types.ts';
import { exampleEvent } from './own-events.ts';
import { showWebhook } from './pages/webhooks.ts';
import { redeliverToOneOperation } from './redeliver.rest.ts';
import { activateWebhook, deactivateWebhook, deleteWebhook, editWebhook, rotateKey } from './registry.ts';
import { webhookSettings } from './settings.ts';
import { makeSignatureKey, signatureKeyBytes } from './signature.ts';
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
    // Empty, because the page of the list has its own links to the webhooks.
    list: () => [],
    resource: webhookResource(deps),
  });
}

function webhookResource(deps: WebhookDeps): Resource<Webhook> {
  const { store, runtime } = deps;
  return resource<Webhook>({
    title: 'Webhook',
    titleOf: ({ name }) => name,
    description: 'One webhook: its receiver, the events it gets, its state and its failures.',
    access: 'administrator',
    answer: webhookAnswer,
    read: async ({ subject }) => {
      const window = await store.deliveries.failureWindow(subject.id);
      return webhookToJson(subject, window, store.read(webhookSettings), runtime.now());
    },
    view: showWebhook(store, runtime),
    resources: { deliveries: deliveriesResource<Webhook>(deps, ({ id }) => id) },
    operations: {
      edit: editOperation(deps),
      delete: actOperation(
        'Delete webhook',
        'Deletes the webhook and its deliveries.',
        (call) => discarding(deps, call, (transaction) => deleteWebhook(transaction, call.subject.id)),
        discardedAnswer,
      ),
      activate: actOperation(
        'Activate webhook',
        'Sends events to the webhook again and resets its failure count.',
        (call) => change(deps, call, (transaction, at) => activateWebhook(transaction, call.subject.id, at)),
      ),
      deactivate: actOperation(
        'Deactivate webhook',
        'Sends no more events to the webhook and discards its pending deliveries.',
        (call) =>
          discarding(deps, call, (transaction, at) =>
            deactivateWebhook(transaction, call.subject.id, 'administrator', at),
          ),
        discardedAnswer,
      ),
      redeliver: redeliverToOneOperation(deps),
      rotateKey: rotateKeyOperation(deps),
      ping: pingOperation(deps),
    },
  });
}

export function newSignatureKey({ runtime }: WebhookDeps): string {
  return makeSignatureKey(runtime.newSecret(signatureKeyBytes.default));
}

function editOperation(deps: WebhookDeps): Operation<Webhook> {
  const { edit: fields } = webhookFields(deps.rules);
  return operation<Webhook, typeof fields>({
    title: 'Edit webhook',
    description: 'Changes the given fields. Pending deliveries are sent to the new address.',
    access: 'administrator',
    effect: 'writes',
    fields,
    answer: editedAnswer,
    // Without `active`: a form that was opened earlier must not activate a webhook that was deactivated meanwhile.
    present: (webhook) => ({
      name: webhook.name,
      hookUrl: webhook.hookUrl,
      changeTypes: webhook.changeTypes.join(','),
      contentType: webhook.contentType,
      service: webhook.service ?? '',
      headers: webhook.headers.length > 0 ? JSON.stringify(maskHeaders(webhook.headers)) : '',
    }),
    // A webhook keeps a service that was deleted, so only a new service is checked.
    check: ({ subject, values, caller }) => ({
      problems: [
        ...(values.service === subject.service
          ? []
          : serviceProblems(deps.store, values.service || undefined, caller)),
        ...headerProblems(values.headers, subject.headers),
      ],
    }),
    run: (call) => {
      const { service, ...values } = call.values;
      const edit = {
        ...definedOnly(values),
        ...(service !== undefined && { service: service === '' ? null : service }),
      };
      return discarding(deps, call, (transaction, at) => editWebhook(transaction, call.subject.id, edit, at));
    },
  });
}

const rotateFields = {
  graceHours: defaultTo(integer('Hours during which the previous key signs too.', 0, 168), 24),
};

function rotateKeyOperation(deps: WebhookDeps): Operation<Webhook> {
  const { runtime } = deps;
  return operation<Webhook, typeof rotateFields>({
    title: 'Rotate key',
    description:
      'Generates a new signature key and shows it once. Both keys sign until the grace period ends.',
    access: 'administrator',
    effect: 'writes',
    fields: rotateFields,
    answer: keyRotatedAnswer,
    run: async ({ subject, values: { graceHours }, update }) => {
      const key = newSignatureKey(deps);
      const at = runtime.now();
      const webhook = await update((transaction) =>
        rotateKey(transaction, subject.id, { key, graceMs: graceHours * 3_600_000 }, at),
      );
      return {
        json: { status: 'success', signatureKey: key, previousKeyUntil: previousKeyUntil(webhook, at) },
      };
    },
  });
}

type WebhookCall = Pick<OperationCall<Webhook, unknown>, 'subject' | 'update'>;

function actOperation(
  title: string,
  description: string,
  run: (call: WebhookCall) => Promise<Outcome>,
  answer: AnswerSchema = successAnswer,
): Operation<Webhook> {
  return operation<Webhook>({
    title,
    description,
    access: 'administrator',
    effect: 'writes',
    fields: {},
    answer,
    run,
  });
}

async function change(
  { runtime }: WebhookDeps,
  { update }: WebhookCall,
  rule: (transaction: Transaction, at: number) => void,
): Promise<Outcome> {
  const at = runtime.now();
  await update((transaction) => rule(transaction, at));
  return success;
}

async function discarding(
  { runtime }: WebhookDeps,
  { update }: WebhookCall,
  rule: (transaction: Transaction, at: number) => Promise<number> | undefined,
): Promise<Outcome> {
  const at = runtime.now();
  const discarded = await update((transaction) => rule(transaction, at));
  return discarded === undefined ? success : { json: { status: 'success', discarded } };
}

const pingFields = {
  changeType: defaultTo(choice('The type of the event. Its example is sent.', eventTypeNames), pingType),
};

function pingOperation({ runtime }: WebhookDeps): Operation<Webhook> {
  return operation<Webhook, typeof pingFields>({
    title: 'Ping',
    description: 'Sends one example event, in one attempt, even if the webhook is inactive.',
    access: 'administrator',
    effect: 'writes',
    fields: pingFields,
    answer: deliveryCreatedAnswer,
    run: async ({ subject: { id: webhookId }, values: { changeType }, update }) => {
      const at = runtime.now();
      const id = runtime.newId();
      const event = eventOf(exampleEvent(changeType), runtime.newId(), at);
      await update(
        (transaction) => {
          requireWebhook(transaction, webhookId);
          transaction.deliveries.enqueue([newDelivery({ id, webhookId, event, isPing: true }, at)]);
        },
        { changes: () => compareFields({}, { deliveryId: id }) },
      );
      return { json: { status: 'success', deliveryId: id } };
    },
  });
}
