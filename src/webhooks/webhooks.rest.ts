// REST resources of all webhooks and of the webhooks of a service: the lists, creating webhooks, operations on several
// of them, publishing events, and the settings.
import * as z from 'zod';
import { type Service, pathOfService } from '../catalog/catalog.ts';
import { formatCount } from '../lib/format.ts';
import { versionOf } from '../lib/json.ts';
import { type AnswerOf, answerObject, successAnswer } from '../rest/answer.ts';
import { integerFields, jsonText, version } from '../rest/field-types.ts';
import { type Field, definedOnly, readFields } from '../rest/fields.ts';
import type { OperationCall } from '../rest/call.ts';
import { type Operation, operation } from '../rest/operation.ts';
import { type Outcome, succeeded } from '../rest/outcome.ts';
import { type Resource, resource } from '../rest/resource.ts';
import type { Reader } from '../store/state.ts';
import type { ReadableStore } from '../store/store.ts';
import { deliveriesResource, redeliverToAllOperation } from './deliveries.rest.ts';
import { eventTypesResource } from './event-types.rest.ts';
import { maxPayloadBytes } from './event.ts';
import {
  changeTypeField,
  eventIdField,
  headerProblems,
  idProblems,
  onlyWebhookIds,
  serviceField,
  servicePaths,
  serviceProblems,
  webhookFields,
  webhookIds,
} from './fields.rest.ts';
import { historyResource } from './history.rest.ts';
import {
  countPending,
  deactivateAllWarning,
  deletionWarning,
  deliveriesLink,
  discardedText,
  pingStep,
  wasOrWere,
  webhookLink,
  webhookList,
} from './pages/sentences.ts';
import { showSettings } from './pages/settings.ts';
import { showWebhooks } from './pages/webhooks.ts';
import type { EventPublisher } from './queue/event-publisher.ts';
import { countUndelivered } from './queue/redelivery.ts';
import { activateAll, changeSettings, createWebhook, deactivateAll, deleteWebhook } from './registry.ts';
import { keepMasked } from './sending/headers.ts';
import { type WebhookSettings, settingsSchema, webhookSettings } from './settings.ts';
import {
  type WebhookDeps,
  discardedAnswer,
  keyRotatedAnswer,
  newSignatureKey,
  shownKey,
  webhookAnswer,
  webhookItems,
} from './webhook.rest.ts';
import {
  type Webhook,
  type WebhookTraits,
  listWebhooks,
  requireWebhook,
  webhookNotFound,
  webhookToJson,
} from './webhook.ts';

const webhooksAnswer = answerObject('Webhooks', 'The webhooks, oldest first.', {
  webhooks: z.array(webhookAnswer),
});

const webhookCreatedAnswer = answerObject('WebhookCreated', 'The new webhook and its key.', {
  ...successAnswer.shape,
  id: z.string().describe('The id of the webhook.'),
  webhook: webhookAnswer,
  signatureKey: keyRotatedAnswer.shape.signatureKey,
});

export function webhooksResource(deps: WebhookDeps & { eventPublisher: EventPublisher }): Resource {
  const { store, eventPublisher } = deps;
  return resource({
    title: 'Webhooks',
    description: 'The webhooks that receive events.',
    answer: webhooksAnswer,
    read: () => listToJson(deps),
    view: showWebhooks(store),
    resources: {
      deliveries: deliveriesResource(deps, () => undefined),
      history: historyResource(deps, () => undefined),
      settings: settingsResource(store),
      eventTypes: eventTypesResource,
    },
    operations: {
      create: createOperation(deps),
      publish: publishOperation(deps, eventPublisher),
      ...allWebhooksOperations(deps.store, () => undefined),
      delete: deleteGivenOperation(deps.store),
      redeliver: redeliverToAllOperation(deps),
    },
    items: [webhookItems<unknown>(deps, (_list, id) => requireWebhook(store, id))],
  });
}

export function serviceWebhooksResource(deps: WebhookDeps): Resource<Service> {
  const { store } = deps;
  return resource<Service>({
    title: 'Webhooks of the service',
    description: 'The webhooks that receive the events of this service only.',
    answer: webhooksAnswer,
    read: ({ subject }) => listToJson(deps, pathOfService(subject)),
    page: (_service, beneath) => (beneath.length === 0 ? webhookList.path : undefined),
    operations: {
      create: createForServiceOperation(deps),
      ...allWebhooksOperations(deps.store, pathOfService),
    },
    // The same webhooks, beneath their services.
    items: [
      webhookItems<Service>(
        deps,
        (service, id) => {
          const webhook = requireWebhook(store, id);
          if (webhook.service !== pathOfService(service)) throw webhookNotFound();
          return webhook;
        },
        ({ id }, beneath) => ['services', 'webhooks', id, ...beneath],
      ),
    ],
  });
}

async function listToJson(
  { store, runtime }: WebhookDeps,
  service?: string,
): Promise<AnswerOf<typeof webhooksAnswer>> {
  const at = runtime.now();
  const listed = listWebhooks(store, service);
  const undelivered = await countUndelivered(store, listed, at);
  return {
    webhooks: listed.map((webhook) => webhookToJson(store, webhook, at, undelivered.get(webhook.id))),
  };
}

const createDescription = {
  title: 'Create webhook',
  description: 'Registers a receiver. The answer shows the signature key, which is not shown again.',
  answer: webhookCreatedAnswer,
  // Only the form begins with it: the API requires the field.
  present: () => ({ changeTypes: '*' }),
} as const;

function createOperation(deps: WebhookDeps): Operation {
  return operation({
    ...createDescription,
    fields: webhookFields(deps.rules).createForAll,
    suggest: (_subject, caller) => ({ service: servicePaths(deps.store, caller) }),
    check: ({ values, caller }) => ({
      problems: [
        ...serviceProblems(deps.store, values.service, caller),
        ...headerProblems(keepMasked(values.headers ?? [], [])),
      ],
    }),
    run: ({ values: { config: _config, ...values }, update }) =>
      create(deps, update, { ...values, service: values.service ?? null }),
  });
}

function createForServiceOperation(deps: WebhookDeps): Operation<Service> {
  const { create: fields } = webhookFields(deps.rules);
  return operation<Service, typeof fields>({
    ...createDescription,
    fields,
    check: ({ values }) => ({ problems: headerProblems(keepMasked(values.headers ?? [], [])) }),
    run: ({ subject, values: { config: _config, ...values }, update }) =>
      create(deps, update, { ...values, service: pathOfService(subject) }),
  });
}

async function create(
  deps: WebhookDeps,
  update: OperationCall<unknown, unknown>['update'],
  given: Omit<WebhookTraits, 'headers'> & {
    active: boolean;
    signatureKey: string | undefined;
    headers: WebhookTraits['headers'] | undefined;
  },
): Promise<Outcome> {
  const { store, runtime } = deps;
  const signatureKey = given.signatureKey ?? newSignatureKey(deps);
  const id = runtime.newId();
  const webhook = await update(
    (transaction, at) =>
      createWebhook(transaction, { ...given, headers: given.headers ?? [], id, signatureKey }, at),
    { target: `services/webhooks/${id}` },
  );
  const answer = { id, webhook: webhookToJson(store, webhook, runtime.now()), signatureKey };
  return {
    ...succeeded(`The webhook ${webhook.name} was created.`, webhookLink(webhook), answer),
    shownOnce: shownKey(signatureKey),
    nextStep: pingStep(webhook),
  };
}

const publishFields = {
  changeType: changeTypeField,
  service: serviceField.describe(
    'The service that the event concerns, as Folder/Name.Type; absent for none.',
  ),
  payload: jsonText(maxPayloadBytes).default('{}').describe('The data of the event: a JSON object or array.'),
  eventId: eventIdField.describe('The id of the event. Publishing it again within 24 hours has no effect.'),
};

const eventPublishedAnswer = answerObject('EventPublished', 'The published event.', {
  ...successAnswer.shape,
  eventId: z.string(),
  deliveries: z
    .int()
    .nonnegative()
    .describe('How many webhooks receive the event, without those that are inactive.'),
});

function publishOperation({ store, runtime }: WebhookDeps, eventPublisher: EventPublisher): Operation {
  return operation<unknown, typeof publishFields>({
    title: 'Publish event',
    description: 'Sends an event to every active webhook that subscribes to it.',
    access: 'publisher',
    // Every delivery is recorded anyway, and there may be thousands of events a second.
    isAudited: false,
    fields: publishFields,
    answer: eventPublishedAnswer,
    suggest: (_subject, caller) => ({ service: servicePaths(store, caller) }),
    // A repeated event gets the first response, even if its service was deleted meanwhile.
    check: async ({ values: { eventId, service }, caller }) => {
      const problems = serviceProblems(store, service, caller);
      if (problems.length === 0 || eventId === undefined) return { problems };
      return { problems: (await store.deliveries.findEvent(eventId, runtime.now())) ? [] : problems };
    },
    run: async ({ values: { changeType: type, service = null, payload, eventId } }) => {
      const result = await eventPublisher.publish({ type, service, data: payload }, eventId);
      const text =
        result.deliveries === 0
          ? `${type} was published. No active webhook subscribes to it.`
          : `${type} was published to ${formatCount(result.deliveries, 'webhook')}.`;
      return succeeded(text, deliveriesLink(), result);
    },
  });
}

const settingsAnswer = answerObject('WebhookSettings', 'The settings of all webhooks.', {
  ...settingsSchema.shape,
  ...successAnswer.shape,
});

const settingFields = {
  ...integerFields(settingsSchema.shape),
  version: version('The version of the settings in the form.'),
};

function settingsResource(store: ReadableStore): Resource {
  return resource({
    title: 'Webhook settings',
    description: 'How often deliveries are attempted, the timeout, and when a webhook is deactivated.',
    answer: settingsAnswer,
    read: () => settingsToJson(store.read(webhookSettings)),
    view: showSettings(store),
    onPost: operation({
      title: 'Update webhook settings',
      description: 'Changes the given settings. They apply from the next attempt of every delivery.',
      fields: settingFields,
      answer: settingsAnswer,
      present: () => {
        const settings = store.read(webhookSettings);
        const shown = { ...settings, version: versionOf(settings) };
        return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, String(value)]));
      },
      run: async ({ values, update }) => {
        const settings = await update((transaction) => changeSettings(transaction, definedOnly(values)));
        return { json: settingsToJson(settings), notice: { text: 'The webhook settings were changed.' } };
      },
    }),
  });
}

function settingsToJson(settings: WebhookSettings) {
  return { ...settings, status: 'success' as const };
}

const allWebhooksAnswer = answerObject('AllWebhooks', 'The operation succeeded.', {
  ...successAnswer.shape,
  webhooks: z.int().nonnegative().describe('How many webhooks were changed.'),
  discarded: discardedAnswer.shape.discarded,
});

const onlyFields = { ids: onlyWebhookIds };

/** The link to the form of an operation on several webhooks names those that are selected. */
function warnOf<V>(field: Field<V>, ids: string | undefined, warn: (ids: V) => Promise<string>) {
  const { values, problems } = readFields({ ids: field }, { ids });
  if (problems.length > 0) return 'No webhook is selected. Select webhooks in the list first.';
  return warn(values.ids as V);
}

/** `pathOf` is the service whose webhooks the list shows; undefined: all. */
function allWebhooksOperations<S>(
  store: ReadableStore,
  pathOf: (subject: S) => string | undefined,
): Record<'activateAll' | 'deactivateAll' | 'deleteAll', Operation<S>> {
  const choose = (reader: Reader, subject: S, ids: readonly string[] | undefined): readonly Webhook[] =>
    listWebhooks(reader, pathOf(subject)).filter(({ id }) => ids?.includes(id) ?? true);
  const shared = {
    answer: allWebhooksAnswer,
    fields: onlyFields,
    check: ({ subject, values }: { subject: S; values: { ids?: readonly string[] | undefined } }) => ({
      problems: idProblems(listWebhooks(store, pathOf(subject)), values.ids),
    }),
  };
  return {
    activateAll: operation<S, typeof onlyFields>({
      ...shared,
      title: 'Activate webhooks',
      form: 'elsewhere',
      description: 'Activates every inactive webhook, or the given ones, and resets its failure count.',
      run: async ({ subject, values, update }) => {
        const webhooks = await update((transaction, at) =>
          activateAll(transaction, choose(transaction, subject, values.ids), at),
        );
        const text = `${formatCount(webhooks, 'webhook')} ${wasOrWere(webhooks)} activated.`;
        return succeeded(text, webhookList, { webhooks, discarded: 0 });
      },
    }),
    deactivateAll: operation<S, typeof onlyFields>({
      ...shared,
      title: 'Deactivate webhooks',
      description:
        'Deactivates every active webhook, or the given ones, and discards its pending deliveries.',
      isDestructive: true,
      warning: (subject, { ids }) =>
        warnOf(onlyWebhookIds, ids, (read) => deactivateAllWarning(store, choose(store, subject, read))),
      run: async ({ subject, values, update }) => {
        const discarded = await countPending(store, choose(store, subject, values.ids));
        const webhooks = await update((transaction, at) =>
          deactivateAll(transaction, choose(transaction, subject, values.ids), at),
        );
        return outcomeOf(webhooks, discarded, 'deactivated');
      },
    }),
    deleteAll: operation<S, typeof onlyFields>({
      ...shared,
      title: 'Delete all webhooks',
      description: 'Deletes every webhook, or the given ones, and their deliveries.',
      isDestructive: true,
      warning: (subject, { ids }) =>
        warnOf(onlyWebhookIds, ids, (read) => deletionWarning(store, choose(store, subject, read))),
      run: async ({ subject, values, update }) => {
        const discarded = await countPending(store, choose(store, subject, values.ids));
        const webhooks = await update((transaction) => {
          const chosen = choose(transaction, subject, values.ids);
          for (const { id } of chosen) deleteWebhook(transaction, id);
          return chosen.length;
        });
        return outcomeOf(webhooks, discarded, 'deleted');
      },
    }),
  };
}

const deletedFields = { ids: webhookIds };

/** Deletes all of the given webhooks, or none. */
function deleteGivenOperation(store: ReadableStore): Operation {
  const choose = (ids: readonly string[]) => listWebhooks(store).filter(({ id }) => ids.includes(id));
  return operation<unknown, typeof deletedFields>({
    answer: allWebhooksAnswer,
    fields: deletedFields,
    check: ({ values }) => ({ problems: idProblems(listWebhooks(store), values.ids) }),
    title: 'Delete webhooks',
    description: 'Deletes the given webhooks and their deliveries.',
    isDestructive: true,
    warning: (_list, { ids }) => warnOf(webhookIds, ids, (read) => deletionWarning(store, choose(read))),
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
