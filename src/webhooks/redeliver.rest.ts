// REST operations that repeat deliveries: one delivery, or all that match a filter.
import { formatCount } from '../lib/format.ts';
import type { Runtime } from '../lib/runtime.ts';
import { definedOnly } from '../rest/fields.ts';
import { type Operation, operation } from '../rest/resource.ts';
import { compareFields } from '../store/audit-change.ts';
import type { ReadableStore } from '../store/store.ts';
import { deliveryCreatedAnswer, redeliveryAnswer } from './answers.rest.ts';
import { filterOf, noStatus, redeliverFields } from './deliveries-fields.rest.ts';
import { knownTypes } from './pages/deliveries.ts';
import { deliveriesLink, deliveryLink, wasOrWere } from './pages/sentences.ts';
import { type DeliveryFilter, isStatusClass } from './queue/delivery-filter.ts';
import { type Delivery, recoverableStates, redeliveryOf } from './queue/delivery.ts';
import { requestRedeliveries } from './queue/redelivery.ts';
import { type Webhook, requireActive } from './webhook.ts';

export function redeliverOperation(runtime: Runtime): Operation<Delivery> {
  return operation<Delivery>({
    title: 'Redeliver',
    description: 'Sends the same event again, as a new delivery.',
    access: 'administrator',
    effect: 'writes',
    fields: {},
    answer: deliveryCreatedAnswer,
    run: async ({ subject, update }) => {
      const id = runtime.newId();
      const at = runtime.now();
      await update(
        (transaction) => {
          requireActive(transaction, subject.webhookId);
          transaction.deliveries.enqueue([redeliveryOf(subject, id, at)]);
          transaction.deliveries.markRedelivered(subject.id, id);
        },
        { changes: () => compareFields({}, { deliveryId: id }) },
      );
      return {
        json: { status: 'success', deliveryId: id },
        names: { delivery: id },
        notice: {
          text: `${subject.event.type} is sent again, as a new delivery.`,
          link: deliveryLink(subject.webhookId, id),
        },
      };
    },
  });
}

/** The status as the request gives it. */
function shownStatus(status: DeliveryFilter['status']): number | string | undefined {
  if (status === null) return noStatus;
  return status !== undefined && isStatusClass(status) ? `${status}xx` : status;
}

type RedeliverDeps = { readonly store: ReadableStore; readonly runtime: Runtime };

export function redeliverToOneOperation(deps: RedeliverDeps): Operation<Webhook> {
  return redeliverMatchingOperation<Webhook>(deps, {
    description: 'Repeats the deliveries of the webhook that match and have not been redelivered yet.',
    webhookIdOf: ({ id }) => id,
  });
}

export function redeliverToAllOperation(deps: RedeliverDeps): Operation {
  return redeliverMatchingOperation<unknown>(deps, {
    description:
      'Repeats the deliveries of all active webhooks that match and have not been redelivered yet.',
    webhookIdOf: () => undefined,
  });
}

function redeliverMatchingOperation<S>(
  { store, runtime }: RedeliverDeps,
  { description, webhookIdOf }: { description: string; webhookIdOf: (subject: S) => string | undefined },
): Operation<S> {
  return operation<S, typeof redeliverFields>({
    title: 'Redeliver by filter',
    description: `${description} The new deliveries are created in the background.`,
    access: 'administrator',
    effect: 'writes',
    fields: redeliverFields,
    present: () => ({ state: recoverableStates.join(',') }),
    suggest: () => ({ changeType: knownTypes(store) }),
    answer: redeliveryAnswer,
    run: async ({ subject, values, update }) => {
      const webhookId = webhookIdOf(subject);
      const given = { ...values, state: values.state ?? recoverableStates };
      const filter = filterOf(given);
      const requestedAt = runtime.now();
      const counts = await store.deliveries.countMatched({ ...filter, webhookId }, requestedAt);
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
      return {
        json: { status: 'success', ...result },
        notice: { text: describe(result), link: deliveriesLink(webhookId) },
      };
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
