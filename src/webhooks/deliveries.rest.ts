// REST edge of deliveries: what became of each event on its way to a webhook, and sending it once more (contract 5).
import { ServiceError } from '../errors.ts';
import { type Resource, items, operation, resource } from '../rest/resource.ts';
import { defaultTo, integer } from '../rest/fields.ts';
import { type Json, asJson } from '../lib/json.ts';
import type { Store } from '../store/store.ts';
import type { Runtime } from '../runtime.ts';
import { showDeliveries, showDelivery } from './pages/deliveries.ts';
import { type Delivery, addDelivery, deliveries } from './delivery.ts';
import { type Webhook, requireWebhook } from './webhook.ts';

const mostPerPage = 100;

export function deliveriesResource(store: Store, runtime: Runtime): Resource<Webhook> {
  const one = resource<Delivery>({
    title: 'Delivery',
    titleOf: ({ event }) => `Delivery of ${event.type}`,
    description: 'One event on its way to the webhook, with its attempts.',
    access: 'administrator',
    read: ({ subject }) => toJson(subject),
    view: showDelivery(store),
    operations: {
      redeliver: operation<Delivery>({
        title: 'Redeliver',
        description: 'Sends the same event once more, as a new delivery.',
        access: 'administrator',
        effect: 'writes',
        fields: {},
        run: async ({ subject: { webhookId, event, isPing } }) => {
          const id = runtime.newId();
          const at = runtime.now();
          await store.update((transaction) => {
            const webhook = requireWebhook(transaction, webhookId);
            if (!webhook.active) {
              throw new ServiceError(
                'conflict',
                `The webhook ${webhook.name} is not active: activate it first.`,
              );
            }
            addDelivery(transaction, { id, webhookId, event, isPing }, at);
          });
          return { json: { status: 'success', deliveryId: id } };
        },
      }),
    },
  });

  return resource<Webhook, typeof pageFields>({
    title: 'Deliveries',
    description: 'What was sent to the webhook and what is still to be sent, newest first.',
    access: 'administrator',
    fields: pageFields,
    read: async ({ subject, values: { start, num } }) => {
      const { rows, total } = await store.page(deliveries, subject.id, start, num);
      return { deliveries: rows.map(toJson), total };
    },
    view: showDeliveries(store),
    items: [
      items<Webhook, Delivery>({
        param: 'delivery',
        find: async (webhook, id) => {
          const delivery = await store.find(deliveries, id);
          if (delivery?.webhookId !== webhook.id) {
            throw new ServiceError('not-found', 'There is no such delivery.');
          }
          return delivery;
        },
        // The page itself leads to each.
        list: () => [],
        resource: one,
      }),
    ],
  });
}

const pageFields = {
  start: defaultTo(integer('How many of the newest to pass over.', 0, 1_000_000_000), 0),
  num: defaultTo(integer('How many to show.', 1, mostPerPage), 25),
};

function toJson(delivery: Delivery): Json {
  const { id, event, state, createdAt, endedAt, nextAttemptAt, attempts } = delivery;
  return {
    id,
    event: { id: event.id, type: event.type, timestamp: event.timestamp },
    state,
    createdAt,
    endedAt,
    nextAttemptAt,
    attempts: attempts.map(asJson),
  };
}
