// The form fields of webhooks, and those that filter deliveries.
import type { BlockList } from 'node:net';
import { mayList, pathOfService, serviceAtPath, services } from '../catalog/catalog.ts';
import { maskedValue } from '../lib/audit-fields.ts';
import type { Caller } from '../lib/caller.ts';
import { type Problem, problemsOf } from '../lib/errors.ts';
import { toNfc, truncate } from '../lib/text.ts';
import {
  boolean,
  choice,
  clearable,
  httpUrl,
  jsonObject,
  moment,
  parseJsonObject,
  refuse,
  text,
  version,
} from '../rest/field-types.ts';
import type { Values } from '../rest/fields.ts';
import type { Reader } from '../store/state.ts';
import { eventTypes, pingType } from './event-types.ts';
import { changeTypeRule, changeTypesRule, readChangeTypes } from './event.ts';
import type { DeliveryFilter } from './queue/delivery-filter.ts';
import { type DeliveryState, deliveryStates, recoverableStates } from './queue/delivery.ts';
import { type HeadersResult, readHeaders } from './sending/headers.ts';
import { isSignatureKey, signatureKeyRule } from './sending/signature.ts';
import { receiverProblem } from './sending/target-policy.ts';
import { type Webhook, bodyFormats, contentTypes } from './webhook.ts';

const normalise = (value: string) => toNfc(value.trim());

/** The limit is the sum of the limits of folder, name and type, with their separators. */
export const serviceField = text({ to: 322, normalise }).optional();

/** A service that the caller may not list is reported like a missing one, so that the response does not reveal it. */
export function serviceProblems(
  reader: Reader,
  path: string | undefined,
  caller: Caller,
): readonly Problem[] {
  if (path === undefined) return [];
  const service = serviceAtPath(reader, path);
  return service && mayList(service, caller)
    ? []
    : [
        {
          field: 'service',
          message: `there is no service ${path}; it must be Folder/Name.Type, or Name.Type at the root.`,
        },
      ];
}

const maxSuggested = 200;

/** The services that a form offers: only those that the caller may list. */
export function servicePaths(reader: Reader, caller: Caller): string[] {
  const paths: string[] = [];
  for (const service of reader.all(services)) {
    if (paths.length === maxSuggested) break;
    if (mayList(service, caller)) paths.push(pathOfService(service));
  }
  return paths.sort();
}

/** As many as a page of the list shows. The audit entry names each of them. */
export const maxWebhookIds = 50;

export const webhookIds = text({ to: 4096 })
  .transform((list, context): readonly string[] => {
    const ids = [...new Set(list.split(',').map((id) => id.trim()))].filter(Boolean);
    return ids.length > 0 && ids.length <= maxWebhookIds
      ? ids
      : refuse(context, [`must be a comma list of 1 to ${maxWebhookIds} ids.`]);
  })
  .meta({
    label: 'Webhooks',
    description: `The ids of the webhooks: a comma list of at most ${maxWebhookIds}.`,
    control: 'hidden',
    picks: [],
  });

export const onlyWebhookIds = webhookIds
  .optional()
  .describe(`Only these webhooks: a comma list of at most ${maxWebhookIds} ids.`);

/** `listed` are the webhooks that the ids may mean. */
export function idProblems(listed: readonly Webhook[], ids: readonly string[] = []): readonly Problem[] {
  const unknown = ids.filter((id) => !listed.some((webhook) => webhook.id === id));
  return problemsOf(
    'ids',
    unknown.map((id) => `there is no webhook ${truncate(id)}.`),
  );
}

export type WebhookRules = {
  /** Special addresses that receivers may have. */
  readonly allowed: BlockList;
  /** The header of LEGACY_SIGNATURE_HEADER. */
  readonly legacyHeader: string | undefined;
};

/** Of the result of a rule that replaces masked values. */
export function headerProblems(read: HeadersResult): readonly Problem[] {
  return 'problems' in read ? problemsOf('headers', read.problems) : [];
}

const hidden = '…';

/** Headers with a hidden value are refused, so that nobody stores one by sending the form again. */
function hideValues(entered: string): string {
  if (entered.trim() === '') return '';
  const read = parseJsonObject(entered);
  if ('problem' in read) return hidden;
  const shown = Object.entries(read.object).map(([name, value]) => [
    name,
    value === maskedValue ? value : hidden,
  ]);
  return JSON.stringify(Object.fromEntries(shown));
}

const pickedTypes = [
  {
    value: '*',
    label: 'All events',
    description: 'Also those of types that are added later. Uncheck it to choose types.',
  },
  ...eventTypes
    .filter(({ type }) => type !== pingType)
    .map(({ type, description }) => ({ value: type, label: type, description })),
];

const name = text({ to: 128, normalise, isName: true }).describe('A unique name.');
const changeTypes = text({ to: 8192 })
  .transform((list, context) => readChangeTypes(list) ?? refuse(context, [`must be ${changeTypesRule}.`]))
  .meta({
    label: 'Event types',
    description: 'The types of the events to send: a JSON array or comma list, * for all.',
    picks: pickedTypes,
  });
const contentType = choice(contentTypes).meta({
  description: 'The content type of the requests.',
  isAdvanced: true,
});
const bodyFormat = choice(bodyFormats).meta({
  description:
    'What a body is: envelope, with id, type, time and webhook of the event around its payload; or the payload as it was published, and nothing else.',
  choiceLabels: { envelope: 'Envelope with the payload', payload: 'The payload alone' },
  isAdvanced: true,
});
const active = boolean().describe('Whether events are sent to the webhook.');
const service = serviceField.meta({
  label: 'Only events of the service',
  description: 'The service whose events are sent, as Folder/Name.Type; blank for all events.',
});
const signatureKey = text({ to: 256, control: 'password' })
  .refine(isSignatureKey, `must be ${signatureKeyRule}.`)
  .optional()
  .meta({ description: 'The key that signs deliveries; generated if absent.', isAdvanced: true });

export function webhookFields({ allowed, legacyHeader }: WebhookRules) {
  const hookUrl = httpUrl()
    .superRefine((url, context) => {
      const problem = receiverProblem(url, allowed);
      if (problem !== undefined) context.addIssue(problem);
    })
    .meta({ label: 'Receiver URL', description: 'The http or https URL to which events are sent.' });
  const headers = jsonObject()
    .transform((object, context) => {
      const read = readHeaders(object, legacyHeader);
      return 'problems' in read ? refuse(context, read.problems) : read.headers;
    })
    .meta({
      label: 'Custom headers',
      description:
        'Headers that every request carries: a JSON object of names and values. Answers show the values as ***; in edit, *** keeps ' +
        'the stored value unless hookUrl gets another origin.',
      isAdvanced: true,
      shownAgain: hideValues,
    });
  const create = {
    name,
    hookUrl,
    changeTypes: changeTypes.default(['*']),
    signatureKey,
    active: active.default(true),
    contentType: contentType.default('application/json'),
    bodyFormat: bodyFormat.default('envelope'),
    headers: headers.optional(),
    config: jsonObject()
      .optional()
      .meta({
        description:
          'A JSON object such as {"deactivationPolicy": …}, which other programs send. The settings of all webhooks decide instead, and ignored names its members.',
        control: 'hidden',
        unused: ({ config }) => Object.keys(config as object).map((member) => `config.${member}`),
      }),
  };
  return {
    create,
    createForAll: { ...create, service },
    edit: {
      name: name.optional(),
      hookUrl: hookUrl.optional(),
      changeTypes: changeTypes.optional(),
      contentType: contentType.optional(),
      bodyFormat: bodyFormat.optional(),
      headers: clearable(headers, []),
      active: active
        .optional()
        .describe('Whether events are sent to the webhook. Deactivating it discards its pending deliveries.'),
      service: clearable(service),
      version: version(),
    },
  };
}

const trim = (value: string) => value.trim();

export const changeTypeField = text({ to: 64, ...changeTypeRule, normalise: trim }).meta({
  label: 'Event type',
  description: 'The type of the event.',
});

export const eventIdField = text({
  to: 64,
  pattern: /^[A-Za-z0-9_-]{1,64}$/,
  allowed: '1 to 64 letters, digits, _ or -',
  normalise: trim,
}).optional();

export const noStatus = 'none';

export const stateMeanings: Readonly<Record<DeliveryState, string>> = {
  pending: 'An attempt is in progress or due.',
  delivered: 'The receiver accepted the event.',
  failed: 'All attempts failed.',
  discarded: 'The webhook was deactivated before the event was delivered.',
  missed: 'The webhook was inactive when the event was published, or too many deliveries were pending.',
};

/** A comma list of states. */
const stateField = <S extends DeliveryState>(allowed: readonly S[]) =>
  text({ to: 128, normalise: trim })
    .meta({ label: 'States' })
    .transform((list, context): readonly S[] => {
      const given = list.split(',').map(trim);
      const states = allowed.filter((state) => given.includes(state));
      return given.every((state) => states.some((one) => one === state))
        ? states
        : refuse(context, [`must be a comma list of ${allowed.join(', ')}.`]);
    })
    .optional();

const status = {
  to: 4,
  allowed: `an HTTP status from 100 to 599, a class such as 5xx, or ${noStatus}`,
  pattern: /^([1-5]([0-9][0-9]|xx)|none)$/,
  normalise: trim,
};

const commonFields = {
  changeType: changeTypeField.optional(),
  eventId: eventIdField.describe('The id of the event.'),
  status: text(status)
    .transform((value) => (value === noStatus ? null : Number(value.replace('xx', ''))))
    .optional()
    .describe(`The HTTP status of the last attempt or its class, such as 5xx; ${noStatus}: no response.`),
  from: moment('The first moment of creation').optional().meta({ label: 'Created from' }),
  to: moment('The last moment of creation').optional().meta({ label: 'Created until' }),
};

export const filterFields = {
  state: stateField(deliveryStates).describe(`The states, as a comma list of ${deliveryStates.join(', ')}.`),
  ...commonFields,
};

const repeatableStates = deliveryStates.filter((state) => state !== 'pending');

export const redeliverFields = {
  state: stateField(repeatableStates).describe(
    `The states, as a comma list of ${repeatableStates.join(', ')}. Default: ${recoverableStates.join(',')}.`,
  ),
  ...commonFields,
};

export type FilterValues = Partial<Values<typeof filterFields>>;

export function filterOf({ state, changeType, eventId, status, from, to }: FilterValues): DeliveryFilter {
  return { states: state, changeType, eventId, status, from, to };
}
