// REST resources of the deliveries of a webhook, with redelivery.
import { compareFields } from '../audit/change.ts';
import { ServiceError } from '../errors.ts';
import type { AnswerOf } from '../rest/answer.ts';
import { defaultTo, integer } from '../rest/fields.ts';
import { type Items, type Operation, type Resource, items, operation, resource } from '../rest/resource.ts';
import type { Runtime } from '../runtime.ts';
import type { ReadableStore } from '../store/store.ts';
import { deliveriesAnswer, deliveryAnswer, deliveryCreatedAnswer } from './answers.ts';
import { type Delivery, newDelivery, nextAttemptAt } from './delivery.ts';
import { showDeliveries, showDelivery } from './pages/deliveries.ts';
import { type WebhookSettings, webhookSettings } from './settings.ts';
import { type Webhook, requireWebhook } from './webhook.ts';

const maxPerPage = 100;

const pageFields = {
  start: defaultTo(integer('How many of the newest deliveries to skip.', 0, 1_000_000_000), 0),
  num: defaultTo(integer('How many to show.', 1, maxPerPage), 25),
};

export function deliveriesResource(store: ReadableStore, runtime: Runtime): Resource<Webhook> {
  return resource<Webhook, typeof pageFields>({
    title: 'Deliveries',
    description: 'The finished and pending deliveries of the webhook, newest first.',
    access: 'administrator',
    fields: pageFields,
    answer: deliveriesAnswer,
    read: async ({ subject, values: { start, num } }) => {
      const { deliveries, total } = await store.deliveries.page(subject.id, start, num);
      const settings = store.read(webhookSettings);
      return { deliveries: deliveries.map((delivery) => toJson(delivery, settings)), total };
    },
    view: showDeliveries(store),
    items: [deliveryItems(store, runtime)],
  });
}

function deliveryItems(store: ReadableStore, runtime: Runtime): Items<Webhook> {
  return items<Webhook, Delivery>({
    param: 'delivery',
    find: async (webhook, id) => {
      const delivery = await store.deliveries.find(id);
      if (delivery?.webhookId !== webhook.id) {
        throw new ServiceError('not-found', 'There is no such delivery.');
      }
      return delivery;
    },
    // Empty, because the page of the list has its own links to the deliveries.
    list: () => [],
    resource: resource<Delivery>({
      title: 'Delivery',
      titleOf: ({ event }) => `Delivery of ${event.type}`,
      description: 'One event for the webhook, and the attempts to deliver it.',
      access: 'administrator',
      answer: deliveryAnswer,
      read: ({ subject }) => toJson(subject, store.read(webhookSettings)),
      view: showDelivery(store),
      operations: { redeliver: redeliverOperation(runtime) },
    }),
  });
}

function redeliverOperation(runtime: Runtime): Operation<Delivery> {
  return operation<Delivery>({
    title: 'Redeliver',
    description: 'Sends the same event again, as a new delivery.',
    access: 'administrator',
    effect: 'writes',
    fields: {},
    answer: deliveryCreatedAnswer,
    run: async ({ subject: { webhookId, event, isPing }, update }) => {
      const id = runtime.newId();
      const at = runtime.now();
      await update(
        (transaction) => {
          const { name, active } = requireWebhook(transaction, webhookId);
          if (!active)
            throw new ServiceError('conflict', `The webhook ${name} is not active: activate it first.`);
          transaction.deliveries.enqueue([newDelivery({ id, webhookId, event, isPing }, at)]);
        },
        { changes: () => compareFields({}, { deliveryId: id }) },
      );
      return { json: { status: 'success', deliveryId: id } };
    },
  });
}

function toJson(delivery: Delivery, settings: WebhookSettings): AnswerOf<typeof deliveryAnswer> {
  const { id, event, state, createdAt, endedAt, attempts } = delivery;
  return {
    id,
    event: { id: event.id, type: event.type, timestamp: event.timestamp },
    state,
    createdAt,
    endedAt,
    nextAttemptAt: nextAttemptAt(delivery, settings),
    attempts,
  };
}
