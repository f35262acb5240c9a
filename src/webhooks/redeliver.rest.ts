// REST operations that repeat deliveries: one delivery, or all that match a filter.
import { formatCount } from '../lib/format.ts';
import type { Runtime } from '../lib/runtime.ts';
import { type Fields, type Values, definedOnly } from '../rest/fields.ts';
import { type Operation, operation, succeeded } from '../rest/resource.ts';
import { compareFields } from '../store/audit-change.ts';
import type { ReadableStore } from '../store/store.ts';
import { deliveryCreatedAnswer, redeliveryAnswer } from './answers.rest.ts';
import { type FilterValues, filterOf, noStatus, redeliverFields } from './deliveries-fields.rest.ts';
import { idProblems, onlyWebhookIds } from './fields.rest.ts';
import { knownTypes } from './pages/deliveries.ts';
import { deliveriesLink, deliveryLink, wasOrWere } from './pages/sentences.ts';
import { type DeliveryFilter, isStatusClass } from './queue/delivery-filter.ts';
import { type Delivery, recoverableStates, redeliveryOf } from './queue/delivery.ts';
import { requestRedeliveries } from './queue/redelivery.ts';
import { type Webhook, listWebhooks, requireActive } from './webhook.ts';

export function redeliverOperation(runtime: Runtime): Operation<Delivery> {
  return operation<Delivery>({
    title: 'Redeliver',
    description: 'Sends the same event again, as a new delivery.',
    answer: deliveryCreatedAnswer,
    run: async ({ subject, update }) => {
      const id = runtime.newId();
      await update(
        (transaction, at) => {
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

const withoutBound = Number.MAX_SAFE_INTEGER;

type RedeliverDeps = { readonly store: ReadableStore; readonly runtime: Runtime };

export function redeliverToOneOperation(deps: RedeliverDeps): Operation<Webhook> {
  return redeliverMatchingOperation<Webhook, typeof redeliverFields>(deps, {
    description: 'Repeats the deliveries of the webhook that match and have not been redelivered yet.',
    fields: redeliverFields,
    webhookIdOf: ({ id }) => id,
    idsOf: () => undefined,
  });
}

const redeliverToAllFields = { ...redeliverFields, ids: onlyWebhookIds };

export function redeliverToAllOperation(deps: RedeliverDeps): Operation {
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
  { store, runtime }: RedeliverDeps,
  { description, fields, webhookIdOf, idsOf }: Redelivering<S, F>,
): Operation<S> {
  return operation<S, F>({
    title: 'Redeliver by filter',
    description: `${description} The new deliveries are created in the background.`,
    fields,
    present: () => ({ state: recoverableStates.join(',') }),
    suggest: () => ({ changeType: knownTypes(store) }),
    answer: redeliveryAnswer,
    check: ({ values }) => ({ problems: idProblems(listWebhooks(store), idsOf(values)) }),
    run: async ({ subject, values, update }) => {
      const webhookId = webhookIdOf(subject);
      const entered: FilterValues = values;
      const given = { ...entered, state: entered.state ?? recoverableStates };
      const ids = idsOf(values);
      const filter = filterOf(given);
      const requestedAt = runtime.now();
      const chosen = webhookId === undefined ? (ids ?? listWebhooks(store).map(({ id }) => id)) : [webhookId];
      const counts = await store.deliveries.countMatched(chosen, filter, requestedAt, withoutBound);
      const result = await update(
        (transaction) => {
          if (webhookId !== undefined) requireActive(transaction, webhookId);
          return requestRedeliveries(transaction, counts, { filter, requestedAt, newId: runtime.newId });
        },
        {
          changes: (counted) =>
            compareFields({}, definedOnly({ ...given, status: shownStatus(given.status), ...counted })),
        },
      );
      return succeeded(describe(result), deliveriesLink(webhookId), result);
    },
  });
}

function describe({ matched, skipped }: { matched: number; skipped: number }): string {
  const verb = matched === 1 ? 'is' : 'are';
  const text =
    matched === 0 ? 'No delivery matches.' : `${formatCount(matched, 'delivery')} ${verb} sent again.`;
  return skipped === 0
    ? text
    : `${text} ${formatCount(skipped, 'delivery')} to inactive webhooks ${wasOrWere(skipped)} skipped.`;
}
