// REST edge of webhooks as a whole: the list, their settings, and publishing events (spec 4.3, contract 5).
import type { Service } from '../catalog/catalog.ts';
import { type Resource, operation, resource } from '../rest/resource.ts';
import { defaultTo, definedOnly, integer, jsonText, required, text } from '../rest/fields.ts';
import type { Store } from '../store/store.ts';
import { changeSettings } from './delivery.ts';
import { changeTypeRule, eventIdRule, mostPayloadBytes } from './event.ts';
import type { EventPublisher } from './event-publisher.ts';
import { showSettings, showWebhooks } from './pages/webhooks.ts';
import { serviceField, serviceProblems } from './fields.ts';
import { type RegistryOptions, webhookRegistry } from './webhook.rest.ts';
import { type WebhookSettings, settingRanges, webhookSettings } from './settings.ts';

export type WebhooksOptions = RegistryOptions & { eventPublisher: EventPublisher };

export type WebhookResources = {
  /** Beneath `services`. */
  readonly ofAll: Resource;
  /** Beneath each service. */
  readonly ofService: Resource<Service>;
};

export function webhookResources({ eventPublisher, ...options }: WebhooksOptions): WebhookResources {
  const { store, runtime } = options;
  const registry = webhookRegistry(options);

  const publish = operation({
    title: 'Publish event',
    description: 'Tells an event to every active webhook that wants it.',
    access: 'publisher',
    effect: 'writes',
    fields: {
      changeType: required(
        text('The type of the event.', { to: 64, ...changeTypeRule, normalise: (value) => value.trim() }),
      ),
      service: serviceField('The service it concerns, as Folder/Name.Type; absent for none.'),
      payload: defaultTo(jsonText('What happened: a JSON object.', mostPayloadBytes), '{}'),
      eventId: text('Its id. Published again within 24 hours it does nothing.', {
        to: 64,
        ...eventIdRule,
        normalise: (value: string) => value.trim(),
      }),
    },
    // A repeat is answered as before, also when the service is gone by now.
    check: ({ values: { eventId, service }, caller }) => ({
      problems:
        eventId !== undefined && eventPublisher.remembers(eventId)
          ? []
          : serviceProblems(store, service, caller),
    }),
    run: async ({ values: { changeType: type, service = null, payload, eventId } }) => ({
      json: {
        status: 'success',
        ...(await eventPublisher.publish({ type, service, data: payload }, eventId)),
      },
    }),
  });

  const ofAll = resource({
    title: 'Webhooks',
    description: 'Who is told when something happens.',
    access: 'administrator',
    read: () => registry.list(),
    view: showWebhooks(store, runtime, () => undefined),
    resources: { settings: describeSettings(store) },
    operations: { create: registry.createForAll, publish },
    items: [registry.byId],
  });

  return { ofAll, ofService: registry.ofService };
}

const settingField = (name: keyof WebhookSettings, description: string) =>
  integer(description, settingRanges[name].from, settingRanges[name].to);

const settingFields = {
  notificationAttempts: settingField(
    'notificationAttempts',
    'Attempts to deliver an event before the delivery has failed.',
  ),
  notificationTimeOutInSeconds: settingField(
    'notificationTimeOutInSeconds',
    'Seconds a receiver has to answer.',
  ),
  notificationElapsedTimeInSeconds: settingField(
    'notificationElapsedTimeInSeconds',
    'Seconds between two attempts.',
  ),
  daysInPast: settingField('daysInPast', 'Days over which failures are counted.'),
  numberOfFailures: settingField(
    'numberOfFailures',
    'Failed deliveries within those days that deactivate a webhook.',
  ),
};

function describeSettings(store: Store): Resource {
  return resource({
    title: 'Webhook settings',
    description: 'How often and how long deliveries are tried, and when a webhook is deactivated.',
    access: 'administrator',
    read: () => toJson(store.read(webhookSettings)),
    view: showSettings(store),
    onPost: operation({
      title: 'Update webhook settings',
      description: 'Changes what is given, from the next attempt of every delivery on.',
      access: 'administrator',
      effect: 'writes',
      fields: settingFields,
      present: () =>
        Object.fromEntries(
          Object.entries(store.read(webhookSettings)).map(([name, value]) => [name, String(value)]),
        ),
      run: async ({ values }) => ({
        json: toJson(await store.update((transaction) => changeSettings(transaction, definedOnly(values)))),
      }),
    }),
  });
}

function toJson(settings: WebhookSettings) {
  return { ...settings, status: 'success' };
}
