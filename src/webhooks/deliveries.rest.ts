// REST resources of deliveries: those of all webhooks, those of one, and one delivery.
import { ServiceError } from '../lib/errors.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { AnswerOf } from '../rest/answer.ts';
import { integer } from '../rest/field-types.ts';
import { type Items, type Resource, items, resource } from '../rest/resource.ts';
import type { ReadableStore } from '../store/store.ts';
import { deliveriesAnswer, deliveryAnswer } from './answers.rest.ts';
import { filterFields, filterOf } from './deliveries-fields.rest.ts';
import { showDeliveries } from './pages/deliveries.ts';
import { showDelivery } from './pages/delivery.ts';
import { type Attempt, type Delivery, nextAttemptAt } from './queue/delivery.ts';
import { redeliverOperation } from './redeliver.rest.ts';
import { type RequestOptions, requestToJson } from './sending/delivery-request.ts';
import { webhookSettings } from './settings.ts';
import { requireWebhook, webhooks } from './webhook.ts';

const maxPerPage = 100;

const fields = {
  ...filterFields,
  start: integer(0, 1_000_000_000).default(0).describe('How many of the newest deliveries to skip.'),
  num: integer(1, maxPerPage).default(25).describe('How many to show.'),
};

export type DeliveryDeps = {
  readonly store: ReadableStore;
  readonly runtime: Runtime;
  readonly request: RequestOptions;
};

/** `webhookIdOf` is the webhook whose deliveries the resource shows; undefined: those of all. */
export function deliveriesResource<S>(
  deps: DeliveryDeps,
  webhookIdOf: (subject: S) => string | undefined,
): Resource<S> {
  const { store } = deps;
  return resource<S, typeof fields>({
    title: 'Deliveries',
    description: 'The finished and pending deliveries, newest first.',
    fields,
    answer: deliveriesAnswer,
    read: async ({ subject, values }) => {
      const filter = { ...filterOf(values), webhookId: webhookIdOf(subject) };
      const page = await store.deliveries.page(filter, values.start, values.num);
      return {
        deliveries: page.deliveries.map((delivery) => toJson(store, delivery)),
        total: page.total,
        ...(!page.isTotalExact && { totalIsExact: false }),
      };
    },
    view: showDeliveries(store, webhookIdOf),
    items: [deliveryItems(deps, webhookIdOf)],
  });
}

function deliveryItems<S>(deps: DeliveryDeps, webhookIdOf: (subject: S) => string | undefined): Items<S> {
  const { store, runtime } = deps;
  return items<S, Delivery>({
    param: 'delivery',
    find: async (subject, id) => {
      const webhookId = webhookIdOf(subject);
      const delivery = await store.deliveries.find(id);
      if (!delivery || (webhookId !== undefined && delivery.webhookId !== webhookId))
        throw new ServiceError('not-found', 'There is no such delivery.');
      return delivery;
    },
    // Empty, because the page of the list has its own links to the deliveries.
    resource: resource<Delivery>({
      title: 'Delivery',
      titleOf: ({ event }) => `Delivery of ${event.type}`,
      description: 'One event for a webhook, and the attempts to deliver it.',
      answer: deliveryAnswer,
      read: ({ subject }) => detailsToJson(deps, subject),
      view: showDelivery(store, (delivery) => requestOf(deps, delivery)),
      operations: { redeliver: redeliverOperation(runtime) },
    }),
  });
}

function requestOf({ store, runtime, request }: DeliveryDeps, delivery: Delivery) {
  const webhook = requireWebhook(store, delivery.webhookId);
  return requestToJson(delivery, webhook, runtime.now(), request);
}

function detailsToJson(deps: DeliveryDeps, delivery: Delivery) {
  return {
    ...toJson(deps.store, delivery),
    attempts: delivery.attempts.map((attempt) => ({
      ...attemptToJson(attempt),
      responseHeaders: attempt.responseHeaders ?? {},
    })),
    request: requestOf(deps, delivery),
  } satisfies AnswerOf<typeof deliveryAnswer>;
}

type ListedDelivery = AnswerOf<typeof deliveriesAnswer>['deliveries'][number];

function toJson(store: ReadableStore, delivery: Delivery) {
  const { id, webhookId, event, state, createdAt, endedAt, attempts } = delivery;
  const { redeliveryOf, redeliveredAs } = delivery;
  return {
    id,
    webhookId,
    webhookName: store.get(webhooks, webhookId)?.name ?? null,
    event: { id: event.id, type: event.type, timestamp: event.timestamp },
    state,
    createdAt,
    endedAt,
    nextAttemptAt: nextAttemptAt(delivery, store.read(webhookSettings)),
    attempts: attempts.map(attemptToJson),
    ...(redeliveryOf !== null && { redeliveryOf }),
    ...(redeliveredAs !== null && { redeliveredAs }),
  } satisfies ListedDelivery;
}

function attemptToJson({ when, durationMs, status, error, response }: Attempt) {
  return { when, durationMs, status, error, response };
}
