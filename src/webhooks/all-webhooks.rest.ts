// REST operations on several webhooks at once: on all of a list, or on the given ones.
import { formatCount } from '../lib/format.ts';
import { readField } from '../rest/fields.ts';
import { type Operation, type Outcome, operation, succeeded } from '../rest/resource.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import { allWebhooksAnswer } from './answers.rest.ts';
import { idProblems, onlyWebhookIds, webhookIds } from './fields.rest.ts';
import {
  countPending,
  deactivateAllWarning,
  deletionWarning,
  discardedText,
  wasOrWere,
  webhookList,
} from './pages/sentences.ts';
import { activateAll, deactivateAll, deleteWebhook } from './registry.ts';
import { type Webhook, listWebhooks } from './webhook.ts';

const fields = { ids: onlyWebhookIds };

const noSelection = 'No webhook is selected. Select webhooks in the list first.';

/** `pathOf` is the service whose webhooks the list shows; undefined: all. */
export function allWebhooksOperations<S>(
  store: ReadableStore,
  pathOf: (subject: S) => string | undefined,
): Record<'activateAll' | 'deactivateAll', Operation<S>> {
  const choose = (reader: Reader, subject: S, ids: readonly string[] | undefined): readonly Webhook[] =>
    listWebhooks(reader, pathOf(subject)).filter(({ id }) => ids?.includes(id) ?? true);
  const shared = {
    answer: allWebhooksAnswer,
    fields,
    check: ({ subject, values }: { subject: S; values: { ids?: readonly string[] | undefined } }) => ({
      problems: idProblems(listWebhooks(store, pathOf(subject)), values.ids),
    }),
  };
  return {
    activateAll: operation<S, typeof fields>({
      ...shared,
      title: 'Activate webhooks',
      description: 'Activates every inactive webhook, or the given ones, and resets its failure count.',
      run: async ({ subject, values, update }) => {
        const webhooks = await update((transaction, at) =>
          activateAll(transaction, choose(transaction, subject, values.ids), at),
        );
        const text = `${formatCount(webhooks, 'webhook')} ${wasOrWere(webhooks)} activated.`;
        return succeeded(text, webhookList, { webhooks, discarded: 0 });
      },
    }),
    deactivateAll: operation<S, typeof fields>({
      ...shared,
      title: 'Deactivate webhooks',
      description:
        'Deactivates every active webhook, or the given ones, and discards its pending deliveries.',
      isDestructive: true,
      warning: (subject, entered) => {
        const read = readField(onlyWebhookIds, entered.ids);
        return 'problems' in read
          ? noSelection
          : deactivateAllWarning(store, choose(store, subject, read.value as readonly string[] | undefined));
      },
      run: async ({ subject, values, update }) => {
        const discarded = await countPending(store, choose(store, subject, values.ids));
        const webhooks = await update((transaction, at) =>
          deactivateAll(transaction, choose(transaction, subject, values.ids), at),
        );
        return outcomeOf(webhooks, discarded, 'deactivated');
      },
    }),
  };
}

const deletedFields = { ids: webhookIds };

/** Deletes all of the given webhooks, or none. */
export function deleteGivenOperation(store: ReadableStore): Operation {
  const choose = (ids: readonly string[]) => listWebhooks(store).filter(({ id }) => ids.includes(id));
  return operation<unknown, typeof deletedFields>({
    answer: allWebhooksAnswer,
    fields: deletedFields,
    check: ({ values }) => ({ problems: idProblems(listWebhooks(store), values.ids) }),
    title: 'Delete webhooks',
    description: 'Deletes the given webhooks and their deliveries.',
    isDestructive: true,
    warning: (_list, entered) => {
      const read = readField(webhookIds, entered.ids);
      return 'problems' in read
        ? noSelection
        : deletionWarning(store, choose(read.value as readonly string[]));
    },
    run: async ({ values: { ids }, update }) => {
      const discarded = await countPending(store, choose(ids));
      await update((transaction) => ids.forEach((id) => deleteWebhook(transaction, id)));
      return outcomeOf(ids.length, discarded, 'deleted');
    },
  });
}

function outcomeOf(webhooks: number, discarded: number, participle: string): Outcome {
  const text = `${formatCount(webhooks, 'webhook')} ${wasOrWere(webhooks)} ${participle}. ${discardedText(discarded)}`;
  return succeeded(text, webhookList, { webhooks, discarded });
}
