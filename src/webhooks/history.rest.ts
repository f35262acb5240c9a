// REST resource of how deliveries have ended in each hour, of one webhook or of all.
import * as z from 'zod';
import { invalidField } from '../lib/errors.ts';
import { type AnswerOf, answerObject, time } from '../rest/answer.ts';
import { moment } from '../rest/field-types.ts';
import { type Resource, resource } from '../rest/resource.ts';
import type { DeliveryDeps } from './deliveries.rest.ts';
import { everyHour, historyMs } from './queue/history.ts';
import type { Webhook } from './webhook.ts';

const usualMs = 7 * 86_400_000;

const fields = {
  from: moment('The first moment. Default: seven days before `to`').optional(),
  to: moment('The last moment. Default: now').optional(),
};

const count = z.int().nonnegative();

const historyAnswer = answerObject(
  'DeliveryHistory',
  'How deliveries have ended in each hour, without pings.',
  {
    hours: z
      .array(
        z.strictObject({
          at: time.describe('The beginning of the hour, in milliseconds since the epoch.'),
          delivered: count,
          failed: count,
          missed: count,
          discarded: count,
          meanMs: count.nullable().describe('How long an attempt took on average. Null: there was none.'),
        }),
      )
      .describe('Every hour from `from` to `to` that is not before `since`, oldest first.'),
    since: time.describe(
      'Since when the server knows, in milliseconds since the epoch. What was before is unknown.',
    ),
  },
);

/** `webhookOf` is the webhook whose deliveries are counted; undefined: all webhooks together. */
export function historyResource<S>(
  { store, runtime }: DeliveryDeps,
  webhookOf: (subject: S) => Webhook | undefined,
): Resource<S> {
  return resource<S, typeof fields>({
    title: 'History of deliveries',
    description:
      'How many deliveries were delivered, failed, were missed or discarded in each hour. Hours are kept for 35 days.',
    fields,
    answer: historyAnswer,
    read: async ({ subject, values }): Promise<AnswerOf<typeof historyAnswer>> => {
      const now = runtime.now();
      const to = Math.min(values.to ?? now, now);
      const from = values.from ?? to - usualMs;
      if (to - from > historyMs) throw invalidField('from', 'must be at most 35 days before to.');
      const webhook = webhookOf(subject);
      const request = { webhookIds: webhook && [webhook.id], from, to };
      const counted = await store.deliveries.history(request);
      // The clock may have been set back since.
      const since = Math.min(now, Math.max(counted.since, webhook?.createdAt ?? 0, now - historyMs));
      return {
        hours: everyHour({ ...counted, since }, request).map(
          ({ attempts, durationMs, webhookId: _webhookId, ...hour }) => ({
            ...hour,
            meanMs: attempts === 0 ? null : Math.round(durationMs / attempts),
          }),
        ),
        since,
      };
    },
  });
}
