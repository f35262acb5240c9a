// REST operations on several webhooks at once: on all of a list, or on the given ones.
import { formatCount } from '../lib/format.ts';
import type { Runtime } from '../lib/runtime.ts';
import { readField } from '../rest/fields.ts';
import { type Operation, type OperationCall, type Outcome, operation } from '../rest/resource.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import { allWebhooksAnswer } from './answers.rest.ts';
import { idProblems, webhookIds } from './fields.rest.ts';
import {
  countPending,
  deactivateAllWarning,
  deletionWarning,
  discardedText,
  wasOrWere,
  webhookList,
} from './pages/sentences.ts';
import { activateAll, deactivateAll, deleteWebhook } from './registry.ts';
import { type Webhook, listWebhooks, requireWebhook } from './webhook.ts';

type Deps = { readonly store: ReadableStore; readonly runtime: Runtime };

/** Which webhooks an operation concerns. */
type Choose<S, V> = (reader: Reader, subject: S, values: V) => readonly Webhook[];

/** `pathOf` is the service whose webhooks the list shows; undefined: all. */
export function allWebhooksOperations<S>(
  deps: Deps,
  pathOf: (subject: S) => string | undefined,
): Record<'activateAll' | 'deactivateAll', Operation<S>> {
  const choose: Choose<S, unknown> = (reader, subject) => listWebhooks(reader, pathOf(subject));
  return {
    activateAll: operation<S>({
      answer: allWebhooksAnswer,
      title: 'Activate all webhooks',
      description: 'Activates every inactive webhook and resets its failure count.',
      run: activate(deps, choose),
    }),
    deactivateAll: operation<S>({
      answer: allWebhooksAnswer,
      title: 'Deactivate all webhooks',
      description: 'Deactivates every active webhook and discards its pending deliveries.',
      isDestructive: true,
      warning: (subject) => deactivateAllWarning(deps.store, choose(deps.store, subject, {})),
      run: deactivate(deps, choose),
    }),
  };
}

const givenFields = { ids: webhookIds };

/** They change all of the given webhooks, or none. */
export function givenWebhooksOperations(deps: Deps): Record<'activate' | 'deactivate' | 'delete', Operation> {
  const { store } = deps;
  const choose: Choose<unknown, { readonly ids: readonly string[] }> = (reader, _list, { ids }) =>
    ids.map((id) => requireWebhook(reader, id));
  const given = {
    answer: allWebhooksAnswer,
    fields: givenFields,
    check: ({ values }: { values: { ids?: readonly string[] } }) => ({
      problems: idProblems(store, values.ids),
    }),
  };
  const warn =
    (warning: typeof deletionWarning) =>
    (_list: unknown, { ids }: { readonly ids?: string | undefined }) => {
      const read = readField(webhookIds, ids);
      return 'problems' in read
        ? 'No webhook is selected. Select webhooks in the list first.'
        : warning(store, choose(store, undefined, { ids: read.value as readonly string[] }));
    };
  return {
    activate: operation<unknown, typeof givenFields>({
      ...given,
      title: 'Activate webhooks',
      description: 'Activates those of the given webhooks that are inactive and resets their failure counts.',
      run: activate(deps, choose),
    }),
    deactivate: operation<unknown, typeof givenFields>({
      ...given,
      title: 'Deactivate webhooks',
      description:
        'Deactivates those of the given webhooks that are active and discards their pending deliveries.',
      isDestructive: true,
      warning: warn(deactivateAllWarning),
      run: deactivate(deps, choose),
    }),
    delete: operation<unknown, typeof givenFields>({
      ...given,
      title: 'Delete webhooks',
      description: 'Deletes the given webhooks and their deliveries.',
      isDestructive: true,
      warning: warn(deletionWarning),
      run: async ({ values, update }) => {
        const discarded = await countPending(store, choose(store, undefined, values));
        await update((transaction) => values.ids.forEach((id) => deleteWebhook(transaction, id)));
        return outcomeOf(values.ids.length, discarded, 'deleted');
      },
    }),
  };
}

function activate<S, V>({ runtime }: Deps, choose: Choose<S, V>) {
  return async ({ subject, values, update }: OperationCall<S, V>): Promise<Outcome> => {
    const at = runtime.now();
    const webhooks = await update((transaction) =>
      activateAll(transaction, choose(transaction, subject, values), at),
    );
    const text = `${formatCount(webhooks, 'webhook')} ${wasOrWere(webhooks)} activated.`;
    return { json: { status: 'success', webhooks, discarded: 0 }, notice: { text, link: webhookList } };
  };
}

function deactivate<S, V>({ store, runtime }: Deps, choose: Choose<S, V>) {
  return async ({ subject, values, update }: OperationCall<S, V>): Promise<Outcome> => {
    const at = runtime.now();
    const discarded = await countPending(store, choose(store, subject, values));
    const webhooks = await update((transaction) =>
      deactivateAll(transaction, choose(transaction, subject, values), at),
    );
    return outcomeOf(webhooks, discarded, 'deactivated');
  };
}

function outcomeOf(webhooks: number, discarded: number, participle: string): Outcome {
  const text = `${formatCount(webhooks, 'webhook')} ${wasOrWere(webhooks)} ${participle}. ${discardedText(discarded)}`;
  return { json: { status: 'success', webhooks, discarded }, notice: { text, link: webhookList } };
}
