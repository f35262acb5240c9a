// REST edge of the registry: webhooks are listed, created, changed, rotated, pinged and deleted (contract 5).
import type { BlockList } from 'node:net';
import { type Service, pathOfService } from '../catalog/catalog.ts';
import { type Outcome, items, operation, resource, success } from '../rest/resource.ts';
import { defaultTo, definedOnly, integer } from '../rest/fields.ts';
import type { Json } from '../lib/json.ts';
import type { Store } from '../store/store.ts';
import type { Runtime } from '../runtime.ts';
import { deliveriesResource } from './deliveries.rest.ts';
import { addDelivery, deliveries, discardPending } from './delivery.ts';
import { eventOf, pingEvent } from './event.ts';
import { serviceProblems, webhookFields } from './fields.ts';
import { showWebhook, showWebhooks } from './pages/webhooks.ts';
import { webhookSettings } from './settings.ts';
import { makeSignatureKey, signatureKeyBytes } from './signature.ts';
import {
  type Webhook,
  type WebhookTraits,
  activation,
  createWebhook,
  deactivation,
  webhookToJson,
  editWebhook,
  listWebhooks,
  previousKeyUntil,
  requireWebhook,
  rotateKey,
  webhooks,
} from './webhook.ts';

export type RegistryOptions = {
  store: Store;
  runtime: Runtime;
  /** Special addresses that receivers may have all the same. */
  allowed: BlockList;
  /** Finished deliveries kept of each webhook. */
  history: number;
};

export function webhookRegistry({ store, runtime, allowed, history }: RegistryOptions) {
  const fields = webhookFields(allowed);

  const newKey = () => makeSignatureKey(runtime.newSecret(signatureKeyBytes.default));
  const toJson = (webhook: Webhook): Json =>
    webhookToJson(webhook, store.read(webhookSettings), runtime.now());
  const list = (path?: string): Json => ({ webhooks: listWebhooks(store, path).map(toJson) });

  type Created = WebhookTraits & { active: boolean; signatureKey: string | undefined };

  async function create({ signatureKey: given, ...traits }: Created) {
    const at = runtime.now();
    const key = given ?? newKey();
    const id = runtime.newId();
    const webhook = await store.update((transaction) =>
      createWebhook(transaction, { ...traits, id, signatureKey: key }, at),
    );
    return { json: { status: 'success', webhook: toJson(webhook), signatureKey: key } };
  }

  const described = {
    title: 'Create webhook',
    description: 'Registers a receiver. The answer shows its signature key, which is never shown again.',
    access: 'administrator',
    effect: 'writes',
  } as const;

  const createForAll = operation({
    ...described,
    fields: fields.createForAll,
    check: ({ values, caller }) => ({ problems: serviceProblems(store, values.service, caller) }),
    run: ({ values }) => create({ ...values, service: values.service ?? null }),
  });

  const ofService = resource<Service>({
    title: 'Webhooks of the service',
    description: 'Who is told what happens to this service.',
    access: 'administrator',
    read: ({ subject }) => list(pathOfService(subject)),
    view: showWebhooks(store, runtime, pathOfService),
    operations: {
      create: operation<Service, typeof fields.create>({
        ...described,
        fields: fields.create,
        run: ({ subject, values }) => create({ ...values, service: pathOfService(subject) }),
      }),
    },
  });

  /** Changes the webhook; one that is no longer active is sent nothing more. */
  async function change(id: string, changeOf: (webhook: Webhook, at: number) => Partial<Webhook>) {
    const at = runtime.now();
    await store.update((transaction) => {
      const { active } = editWebhook(transaction, id, (webhook) => changeOf(webhook, at), at);
      if (!active) discardPending(transaction, id, { keep: history, at });
    });
    return success;
  }

  const setActive = (webhook: Webhook, active: boolean, at: number): Partial<Webhook> => {
    if (active === webhook.active) return {};
    return active ? activation : deactivation(webhook, 'administrator', at);
  };

  /** An operation on one webhook that administrators may do, without fields. */
  const act = (title: string, description: string, run: (webhook: Webhook) => Promise<Outcome>) =>
    operation<Webhook>({
      title,
      description,
      access: 'administrator',
      effect: 'writes',
      fields: {},
      run: ({ subject }) => run(subject),
    });

  const webhook = resource<Webhook>({
    title: 'Webhook',
    titleOf: ({ name }) => name,
    description: 'One receiver: what it is told, where, and how it has been doing.',
    access: 'administrator',
    read: ({ subject }) => toJson(subject),
    view: showWebhook(store, runtime),
    resources: { deliveries: deliveriesResource(store, runtime) },
    operations: {
      edit: operation<Webhook, typeof fields.edit>({
        title: 'Edit webhook',
        description: 'Changes what is given. What is pending is sent to the new address.',
        access: 'administrator',
        effect: 'writes',
        fields: fields.edit,
        // A form that is sent late must not activate what was deactivated meanwhile: `active` is left open.
        present: (subject) => ({
          name: subject.name,
          hookUrl: subject.hookUrl,
          changeTypes: subject.changeTypes.join(','),
          contentType: subject.contentType,
          service: subject.service ?? '',
        }),
        // A service that was deleted may stay where it is.
        check: ({ subject, values, caller }) => ({
          problems:
            values.service === subject.service
              ? []
              : serviceProblems(store, values.service || undefined, caller),
        }),
        run: ({ subject, values: { active, service: path, ...traits } }) =>
          change(subject.id, (current, at) => ({
            ...definedOnly(traits),
            ...(path !== undefined && { service: path === '' ? null : path }),
            ...(active !== undefined && setActive(current, active, at)),
          })),
      }),
      delete: act('Delete webhook', 'Forgets the webhook and its deliveries.', async (subject) => {
        await store.update((transaction) => {
          transaction.remove(webhooks, subject.id);
          transaction.drop(deliveries, subject.id);
        });
        return success;
      }),
      activate: act(
        'Activate webhook',
        'Tells it events again. Failures are counted from the beginning.',
        (subject) => change(subject.id, () => activation),
      ),
      deactivate: act(
        'Deactivate webhook',
        'Tells it nothing more; what is pending is discarded.',
        (subject) => change(subject.id, (current, at) => setActive(current, false, at)),
      ),
      rotateKey: operation<Webhook, typeof rotateFields>({
        title: 'Rotate key',
        description: 'Makes a new signature key, shown only now. Until the grace is over both keys sign.',
        access: 'administrator',
        effect: 'writes',
        fields: rotateFields,
        run: async ({ subject, values: { graceHours } }) => {
          const key = newKey();
          const at = runtime.now();
          const webhook = await store.update((transaction) =>
            rotateKey(transaction, subject.id, { key, graceMs: graceHours * 3_600_000 }, at),
          );
          return {
            json: { status: 'success', signatureKey: key, previousKeyUntil: previousKeyUntil(webhook, at) },
          };
        },
      }),
      ping: act('Ping', 'Sends one event of the type Ping, once, also while inactive.', async (subject) => {
        const at = runtime.now();
        const id = runtime.newId();
        const event = eventOf(pingEvent, runtime.newId(), at);
        await store.update((transaction) => {
          requireWebhook(transaction, subject.id);
          addDelivery(transaction, { id, webhookId: subject.id, event, isPing: true }, at);
        });
        return { json: { status: 'success', deliveryId: id } };
      }),
    },
  });

  const byId = items<unknown, Webhook>({
    param: 'webhook',
    find: (_all, id) => requireWebhook(store, id),
    // The page itself leads to each by its name.
    list: () => [],
    resource: webhook,
  });

  return { list, createForAll, byId, ofService };
}

const rotateFields = {
  graceHours: defaultTo(integer('How many hours the former key signs too.', 0, 168), 24),
};
