// REST resources of deliveries: those of all webhooks, those of one, and one delivery; and the operations that repeat
// one delivery, or every delivery that matches a filter.
import * as z from 'zod';
import { ServiceError } from '../lib/errors.ts';
import { formatCount, formatNumber } from '../lib/format.ts';
import type { Runtime } from '../lib/runtime.ts';
import { type AnswerOf, answerObject, successAnswer, time } from '../rest/answer.ts';
import { integer, text } from '../rest/field-types.ts';
import { type Fields, type Values, definedOnly } from '../rest/fields.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { succeeded } from '../rest/outcome.ts';
import { type Items, type Resource, items, resource } from '../rest/resource.ts';
import { compareFields } from '../store/audit-change.ts';
import type { ReadableStore } from '../store/store.ts';
import { eventTypeNames } from './event-types.ts';
import {
  type FilterValues,
  filterFields,
  filterOf,
  idProblems,
  noStatus,
  onlyWebhookIds,
  redeliverFields,
} from './fields.rest.ts';
import { showDeliveries } from './pages/deliveries.ts';
import { showDelivery } from './pages/delivery.ts';
import { deliveriesLink, deliveryLink, wasOrWere } from './pages/sentences.ts';
import { type DeliveryFilter, isStatusClass, maxCountedDeliveries } from './queue/delivery-filter.ts';
import {
  type Attempt,
  type Delivery,
  deliveryStates,
  nextAttemptAt,
  recoverableStates,
  redeliveryOf,
} from './queue/delivery.ts';
import { type Requested, countMatched, requestRedeliveries } from './queue/redelivery.ts';
import { type RequestOptions, requestToJson } from './sending/delivery-request.ts';
import { webhookSettings } from './settings.ts';
import { type Webhook, listWebhooks, requireActive, requireWebhook, webhooks } from './webhook.ts';

const maxPerPage = 100;

const fields = {
  ...filterFields,
  webhookId: text({ to: 64 }).optional().describe('Only the deliveries of this webhook, in the list of all.'),
  start: integer(0, 1_000_000_000).default(0).describe('How many of the newest deliveries to skip.'),
  num: integer(1, maxPerPage).default(25).describe('How many to show.'),
};

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

const deliveryAnswer = answerObject('DeliveryDetails', 'One event for one webhook, as it was sent.', {
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

const deliveriesAnswer = answerObject('Deliveries', 'A page of deliveries, newest first.', {
  deliveries: z.array(listedDelivery),
  total: z
    .int()
    .nonnegative()
    .describe(`How many match, at most ${formatNumber(maxCountedDeliveries)}.`),
  totalIsExact: z.literal(false).optional().describe('false: more match.'),
});

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
      const filter = { ...filterOf(values), webhookId: webhookIdOf(subject) ?? values.webhookId };
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
  } satisfies AnswerOf<typeof listedDelivery>;
}

function attemptToJson({ when, durationMs, status, error, response }: Attempt) {
  return { when, durationMs, status, error, response };
}

export const deliveryCreatedAnswer = answerObject('DeliveryCreated', 'The new delivery.', {
  ...successAnswer.shape,
  deliveryId: z.string(),
});

function redeliverOperation(runtime: Runtime): Operation<Delivery> {
  return operation<Delivery>({
    title: 'Redeliver event',
    form: 'elsewhere',
    description: 'Sends the same event again, as a new delivery.',
    answer: deliveryCreatedAnswer,
    run: async ({ subject, update }) => {
      let id = '';
      await update(
        (transaction, at) => {
          id = runtime.newId(at);
          requireActive(transaction, subject.webhookId);
          transaction.deliveries.enqueue([redeliveryOf(subject, id, at)]);
          transaction.deliveries.markRedelivered(subject.id, id);
        },
        { changes: () => compareFields({}, { deliveryId: id }) },
      );
      const text = `${subject.event.type} is sent again, as a new delivery.`;
      const link = deliveryLink(subject.webhookId, id);
      return { ...succeeded(text, link, { deliveryId: id }), names: { delivery: id } };
    },
  });
}

/** The status as the request gives it. */
function shownStatus(status: DeliveryFilter['status']): number | string | undefined {
  if (status === null) return noStatus;
  return status !== undefined && isStatusClass(status) ? `${status}xx` : status;
}

export const redeliveryAnswer = answerObject('Redelivery', 'The deliveries that are redelivered.', {
  ...successAnswer.shape,
  matched: z
    .int()
    .nonnegative()
    .describe(`How many deliveries are redelivered, counted up to ${formatNumber(maxCountedDeliveries)}.`),
  matchedIsExact: z.literal(false).optional().describe('false: more may match, and are redelivered too.'),
  skipped: z
    .int()
    .nonnegative()
    .describe(
      `How many match, but belong to inactive webhooks, counted up to ${formatNumber(maxCountedDeliveries)}.`,
    ),
});

export function redeliverToOneOperation(deps: DeliveryDeps): Operation<Webhook> {
  return redeliverMatchingOperation<Webhook, typeof redeliverFields>(deps, {
    description: 'Repeats the deliveries of the webhook that match and have not been redelivered yet.',
    fields: redeliverFields,
    webhookIdOf: ({ id }) => id,
    idsOf: () => undefined,
  });
}

const redeliverToAllFields = { ...redeliverFields, ids: onlyWebhookIds };

export function redeliverToAllOperation(deps: DeliveryDeps): Operation {
  return redeliverMatchingOperation<unknown, typeof redeliverToAllFields>(deps, {
    description:
      'Repeats the deliveries of all active webhooks that match and have not been redelivered yet.',
    fields: redeliverToAllFields,
    webhookIdOf: () => undefined,
    idsOf: ({ ids }) => ids,
  });
}

type Redelivering<S, F extends Fields> = {
  readonly description: string;
  readonly fields: F;
  readonly webhookIdOf: (subject: S) => string | undefined;
  readonly idsOf: (values: Partial<Values<F>>) => readonly string[] | undefined;
};

function redeliverMatchingOperation<S, F extends typeof redeliverFields>(
  { store, runtime }: DeliveryDeps,
  { description, fields, webhookIdOf, idsOf }: Redelivering<S, F>,
): Operation<S> {
  // The values of the fields that one of the two operations has besides.
  const chosenIds = (values: Partial<Values<typeof redeliverFields>>) => idsOf(values as Partial<Values<F>>);
  return operation<S, typeof redeliverFields>({
    title: 'Redeliver events',
    form: 'elsewhere',
    description: `${description} Without a filter, dismissed ones are left out. The new deliveries are created in the background.`,
    fields,
    suggest: () => ({ changeType: eventTypeNames }),
    answer: redeliveryAnswer,
    check: ({ values }) => ({ problems: idProblems(listWebhooks(store), chosenIds(values)) }),
    run: async ({ subject, values, update }) => {
      const webhookId = webhookIdOf(subject);
      const entered: FilterValues = values;
      const given = { ...entered, state: entered.state ?? recoverableStates };
      const ids = chosenIds(values);
      const chosen = webhookId === undefined ? (ids ?? listWebhooks(store).map(({ id }) => id)) : [webhookId];
      const isFiltered = Object.values(filterOf(entered)).some((value) => value !== undefined);
      const request = { filter: filterOf(given), requestedAt: runtime.now(), skipsDismissed: !isFiltered };
      const counts = await countMatched(store, chosen, request, maxCountedDeliveries);
      const result = await update(
        (transaction) => {
          if (webhookId !== undefined) requireActive(transaction, webhookId);
          return requestRedeliveries(transaction, chosen, counts, { ...request, newId: runtime.newId });
        },
        {
          changes: (counted) =>
            compareFields({}, definedOnly({ ...given, status: shownStatus(given.status), ...counted })),
        },
      );
      return succeeded(describeRedelivery(result), deliveriesLink(webhookId), result);
    },
  });
}

export function describeRedelivery({ matched, matchedIsExact, skipped }: Requested): string {
  const verb = matched === 1 ? 'is' : 'are';
  const count = `${matchedIsExact === false ? 'At least ' : ''}${formatCount(matched, 'delivery')}`;
  const text =
    matched === 0 && matchedIsExact !== false ? 'No delivery matches.' : `${count} ${verb} sent again.`;
  return skipped === 0
    ? text
    : `${text} ${formatCount(skipped, 'delivery')} to inactive webhooks ${wasOrWere(skipped)} skipped.`;
}
