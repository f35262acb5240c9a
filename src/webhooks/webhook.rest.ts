// REST resource of one webhook, and its operations.
import type { BlockList } from 'node:net';
import { type AnswerSchema, successAnswer } from '../rest/answer.ts';
import { definedOnly, defaultTo, integer } from '../rest/fields.ts';
import {
  type Items,
  type Operation,
  type Outcome,
  type Resource,
  items,
  operation,
  resource,
  success,
} from '../rest/resource.ts';
import type { Runtime } from '../runtime.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { deliveryCreatedAnswer, keyRotatedAnswer, webhookAnswer } from './answers.ts';
import { deliveriesResource } from './deliveries.rest.ts';
import { newDelivery } from './delivery.ts';
import { eventOf } from './event.ts';
import { serviceProblems, webhookFields } from './fields.ts';
import { pingEvent } from './own-events.ts';
import { showWebhook } from './pages/webhooks.ts';
import { activateWebhook, deactivateWebhook, deleteWebhook, editWebhook, rotateKey } from './registry.ts';
import { webhookSettings } from './settings.ts';
import { makeSignatureKey, signatureKeyBytes } from './signature.ts';
import { type Webhook, previousKeyUntil, requireWebhook, webhookToJson } from './webhook.ts';

export type WebhookDeps = {
  store: Store;
  runtime: Runtime;
  /** Special addresses that receivers may have. */
  allowed: BlockList;
};

export function webhookItems(deps: WebhookDeps): Items {
  return items<unknown, Webhook>({
    param: 'webhook',
    find: (_list, id) => requireWebhook(deps.store, id),
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
    resources: { deliveries: deliveriesResource(store, runtime) },
    operations: {
      edit: editOperation(deps),
      delete: actOperation('Delete webhook', 'Deletes the webhook and its deliveries.', ({ id }) =>
        change(deps, (transaction) => deleteWebhook(transaction, id)),
      ),
      activate: actOperation(
        'Activate webhook',
        'Sends events to the webhook again and resets its failure count.',
        ({ id }) => change(deps, (transaction, at) => activateWebhook(transaction, id, at)),
      ),
      deactivate: actOperation(
        'Deactivate webhook',
        'Sends no more events to the webhook and discards its pending deliveries.',
        ({ id }) =>
          change(deps, (transaction, at) => deactivateWebhook(transaction, id, 'administrator', at)),
      ),
      rotateKey: rotateKeyOperation(deps),
      ping: actOperation(
        'Ping',
        'Sends one event of the type Ping, in one attempt, even if the webhook is inactive.',
        ({ id }) => ping(deps, id),
        deliveryCreatedAnswer,
      ),
    },
  });
}

export function newSignatureKey({ runtime }: WebhookDeps): string {
  return makeSignatureKey(runtime.newSecret(signatureKeyBytes.default));
}

function editOperation(deps: WebhookDeps): Operation<Webhook> {
  const { edit: fields } = webhookFields(deps.allowed);
  return operation<Webhook, typeof fields>({
    title: 'Edit webhook',
    description: 'Changes the given fields. Pending deliveries are sent to the new address.',
    access: 'administrator',
    effect: 'writes',
    fields,
    // Without `active`: a form that was opened earlier must not activate a webhook that was deactivated meanwhile.
    present: (webhook) => ({
      name: webhook.name,
      hookUrl: webhook.hookUrl,
      changeTypes: webhook.changeTypes.join(','),
      contentType: webhook.contentType,
      service: webhook.service ?? '',
    }),
    // A webhook keeps a service that was deleted, so only a new service is checked.
    check: ({ subject, values, caller }) => ({
      problems:
        values.service === subject.service
          ? []
          : serviceProblems(deps.store, values.service || undefined, caller),
    }),
    run: ({ subject, values: { service, ...values } }) => {
      const edit = {
        ...definedOnly(values),
        ...(service !== undefined && { service: service === '' ? null : service }),
      };
      return change(deps, (transaction, at) => editWebhook(transaction, subject.id, edit, at));
    },
  });
}

const rotateFields = {
  graceHours: defaultTo(integer('Hours during which the previous key signs too.', 0, 168), 24),
};

function rotateKeyOperation(deps: WebhookDeps): Operation<Webhook> {
  const { store, runtime } = deps;
  return operation<Webhook, typeof rotateFields>({
    title: 'Rotate key',
    description:
      'Generates a new signature key and shows it once. Both keys sign until the grace period ends.',
    access: 'administrator',
    effect: 'writes',
    fields: rotateFields,
    answer: keyRotatedAnswer,
    run: async ({ subject, values: { graceHours } }) => {
      const key = newSignatureKey(deps);
      const at = runtime.now();
      const webhook = await store.update((transaction) =>
        rotateKey(transaction, subject.id, { key, graceMs: graceHours * 3_600_000 }, at),
      );
      return {
        json: { status: 'success', signatureKey: key, previousKeyUntil: previousKeyUntil(webhook, at) },
      };
    },
  });
}

function actOperation(
  title: string,
  description: string,
  run: (webhook: Webhook) => Promise<Outcome>,
  answer: AnswerSchema = successAnswer,
): Operation<Webhook> {
  return operation<Webhook>({
    title,
    description,
    access: 'administrator',
    effect: 'writes',
    fields: {},
    answer,
    run: ({ subject }) => run(subject),
  });
}

async function change(
  { store, runtime }: WebhookDeps,
  rule: (transaction: Transaction, at: number) => void,
): Promise<Outcome> {
  const at = runtime.now();
  await store.update((transaction) => rule(transaction, at));
  return success;
}

async function ping({ store, runtime }: WebhookDeps, webhookId: string): Promise<Outcome> {
  const at = runtime.now();
  const id = runtime.newId();
  const event = eventOf(pingEvent, runtime.newId(), at);
  await store.update((transaction) => {
    requireWebhook(transaction, webhookId);
    transaction.deliveries.enqueue([newDelivery({ id, webhookId, event, isPing: true }, at)]);
  });
  return { json: { status: 'success', deliveryId: id } };
}
