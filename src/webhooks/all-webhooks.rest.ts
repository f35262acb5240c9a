// REST operations that activate or deactivate all webhooks of a list.
import { formatCount } from '../lib/format.ts';
import type { Runtime } from '../lib/runtime.ts';
import { type Operation, operation } from '../rest/resource.ts';
import type { ReadableStore } from '../store/store.ts';
import { allWebhooksAnswer } from './answers.rest.ts';
import { deactivateAllWarning, discardedText, wasOrWere, webhookList } from './pages/sentences.ts';
import { activateAll, deactivateAll } from './registry.ts';

/** `pathOf` is the service whose webhooks the list shows; undefined: all. */
export function allWebhooksOperations<S>(
  { store, runtime }: { store: ReadableStore; runtime: Runtime },
  pathOf: (subject: S) => string | undefined,
): Record<'activateAll' | 'deactivateAll', Operation<S>> {
  const described = {
    access: 'administrator',
    effect: 'writes',
    fields: {},
    answer: allWebhooksAnswer,
  } as const;
  return {
    activateAll: operation<S>({
      ...described,
      title: 'Activate all webhooks',
      description: 'Activates every inactive webhook and resets its failure count.',
      run: async ({ subject, update }) => {
        const at = runtime.now();
        const webhooks = await update((transaction) => activateAll(transaction, pathOf(subject), at));
        const text = `${formatCount(webhooks, 'webhook')} ${wasOrWere(webhooks)} activated.`;
        return { json: { status: 'success', webhooks, discarded: 0 }, notice: { text, link: webhookList } };
      },
    }),
    deactivateAll: operation<S>({
      ...described,
      title: 'Deactivate all webhooks',
      description: 'Deactivates every active webhook and discards its pending deliveries.',
      isDestructive: true,
      warning: (subject) => deactivateAllWarning(store, pathOf(subject)),
      run: async ({ subject, update }) => {
        const at = runtime.now();
        const counts = await update((transaction) => deactivateAll(transaction, pathOf(subject), at));
        const webhooks = counts.length;
        const discarded = counts.reduce((sum, { value }) => sum + value, 0);
        const text = `${formatCount(webhooks, 'webhook')} ${wasOrWere(webhooks)} deactivated. ${discardedText(discarded)}`;
        return { json: { status: 'success', webhooks, discarded }, notice: { text, link: webhookList } };
      },
    }),
  };
}
