// REST resources of the deliveries of a webhook, with redelivery.
import { compareFields } from '../audit/change.ts';
import { ServiceError } from '../errors.ts';
import type { AnswerOf } from '../rest/answer.ts';
import { defaultTo, integer } from '../rest/fields.ts';
import { type Items, type Operation, type Resource, items, operation, resource } from '../rest/resource.ts';
import type { Runtime } from '../runtime.ts';
import type { ReadableStore } from '../store/store.ts';
import { deliveriesAnswer, deliveryAnswer, deliveryCreatedAnswer } from './answers.ts';
import { type Attempt, type Delivery, newDelivery, nextAttemptAt } from './delivery.ts';
import { type RequestOptions, requestToJson } from './delivery-request.ts';
import { showDeliveries, showDelivery } from './pages/deliveries.ts';
import { type WebhookSettings, webhookSettings } from './settings.ts';
import { type Webhook, requireWebhook } from './webhook.ts';

const maxPerPage = 100;

const pageFields = {
  start: defaultTo(integer('How many of the newest deliveries to skip.', 0, 1_000_000_000), 0),
  num: defaultTo(integer('How many to show.', 1, maxPerPage), 25),
};

export type DeliveryDeps = {
  readonly store: ReadableStore;
  readonly runtime: Runtime;
  readonly request: RequestOptions;
};

export function deliveriesResource(deps: DeliveryDeps): Resource<Webhook> {
  const { store } = deps;
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
    items: [deliveryItems(deps)],
  });
}

function deliveryItems(deps: DeliveryDeps): Items<Webhook> {
  const { store, runtime } = deps;
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
      read: ({ subject }) => detailsToJson(deps, subject),
      view: showDelivery(store, (delivery) => requestOf(deps, delivery)),
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

function requestOf({ store, runtime, request }: DeliveryDeps, delivery: Delivery) {
  const webhook = requireWebhook(store, delivery.webhookId);
  return requestToJson(delivery, webhook, runtime.now(), request);
}

function detailsToJson(deps: DeliveryDeps, delivery: Delivery): AnswerOf<typeof deliveryAnswer> {
  return {
    ...toJson(delivery, deps.store.read(webhookSettings)),
    attempts: delivery.attempts.map((attempt) => ({
      ...attemptToJson(attempt),
      responseHeaders: attempt.responseHeaders ?? {},
    })),
    request: requestOf(deps, delivery),
  };
}

type ListedDelivery = AnswerOf<typeof deliveriesAnswer>['deliveries'][number];

function toJson(delivery: Delivery, settings: WebhookSettings): ListedDelivery {
  const { id, event, state, createdAt, endedAt, attempts } = delivery;
  return {
    id,
    event: { id: event.id, type: event.type, timestamp: event.timestamp },
    state,
    createdAt,
    endedAt,
    nextAttemptAt: nextAttemptAt(delivery, settings),
    attempts: attempts.map(attemptToJson),
  };
}

function attemptToJson({ when, durationMs, status, error, response }: Attempt) {
  return { when, durationMs, status, error, response };
}
