// REST operations that activate or deactivate all webhooks of a list.
import { type Operation, operation } from '../rest/resource.ts';
import type { Runtime } from '../runtime.ts';
import { allWebhooksAnswer } from './answers.ts';
import { activateAll, deactivateAll } from './registry.ts';

/** `pathOf` is the service whose webhooks the list shows; undefined: all. */
export function allWebhooksOperations<S>(
  runtime: Runtime,
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
        return { json: { status: 'success', webhooks, discarded: 0 } };
      },
    }),
    deactivateAll: operation<S>({
      ...described,
      title: 'Deactivate all webhooks',
      description: 'Deactivates every active webhook and discards its pending deliveries.',
      run: async ({ subject, update }) => {
        const at = runtime.now();
        const counts = await update((transaction) => deactivateAll(transaction, pathOf(subject), at));
        return { json: { status: 'success', ...counts } };
      },
    }),
  };
}
