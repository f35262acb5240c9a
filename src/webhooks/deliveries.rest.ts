// REST resources of deliveries: those of all webhooks, those of one, and one delivery.
import { ServiceError } from '../errors.ts';
import { defaultTo, integer } from '../rest/fields.ts';
import { type Items, type Resource, items, resource } from '../rest/resource.ts';
import type { Runtime } from '../runtime.ts';
import type { ReadableStore } from '../store/store.ts';
import { deliveriesAnswer, deliveryAnswer } from './answers.ts';
import { filterFields, filterOf } from './deliveries.fields.ts';
import { type Delivery, nextAttemptAt } from './delivery.ts';
import { showDeliveries, showDelivery } from './pages/deliveries.ts';
import { redeliverOperation } from './redeliver.rest.ts';
import { webhookSettings } from './settings.ts';
import { webhooks } from './webhook.ts';

const maxPerPage = 100;

const fields = {
  ...filterFields,
  start: defaultTo(integer('How many of the newest deliveries to skip.', 0, 1_000_000_000), 0),
  num: defaultTo(integer('How many to show.', 1, maxPerPage), 25),
};

type DeliveriesDeps = { readonly store: ReadableStore; readonly runtime: Runtime };

/** `webhookIdOf` is the webhook whose deliveries the resource shows; undefined: those of all. */
export function deliveriesResource<S>(
  deps: DeliveriesDeps,
  webhookIdOf: (subject: S) => string | undefined,
): Resource<S> {
  const { store } = deps;
  return resource<S, typeof fields>({
    title: 'Deliveries',
    description: 'The finished and pending deliveries, newest first.',
    access: 'administrator',
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

function deliveryItems<S>(
  { store, runtime }: DeliveriesDeps,
  webhookIdOf: (subject: S) => string | undefined,
): Items<S> {
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
    list: () => [],
    resource: resource<Delivery>({
      title: 'Delivery',
      titleOf: ({ event }) => `Delivery of ${event.type}`,
      description: 'One event for a webhook, and the attempts to deliver it.',
      access: 'administrator',
      answer: deliveryAnswer,
      read: ({ subject }) => toJson(store, subject),
      view: showDelivery(store),
      operations: { redeliver: redeliverOperation(runtime) },
    }),
  });
}

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
    attempts,
    ...(redeliveryOf !== null && { redeliveryOf }),
    ...(redeliveredAs !== null && { redeliveredAs }),
  };
}
