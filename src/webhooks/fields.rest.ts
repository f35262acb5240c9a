// The form fields of webhooks.
import { toNfc } from '../lib/text.ts';
import type { BlockList } from 'node:net';
import type { Caller } from '../lib/caller.ts';
import { type Problem, problemsOf } from '../lib/errors.ts';
import { mayList, serviceAtPath } from '../catalog/catalog.ts';
import {
  boolean,
  choice,
  clearable,
  clearableTo,
  defaultTo,
  advanced,
  httpUrl,
  jsonObject,
  labelled,
  refine,
  required,
  text,
  withPicks,
} from '../rest/fields.ts';
import type { Reader } from '../store/state.ts';
import { changeTypesRule, readChangeTypes } from './event.ts';
import { eventTypes, pingType } from './event-types.ts';
import { type CustomHeader, keepMasked, readHeaders } from './sending/headers.ts';
import { receiverProblem } from './sending/target-policy.ts';
import { isSignatureKey, signatureKeyRule } from './sending/signature.ts';
import { contentTypes } from './webhook.ts';

const normalise = (value: string) => toNfc(value.trim());

/** The limit is the sum of the limits of folder, name and type, with their separators. */
export const serviceField = (description: string) => text(description, { to: 322, normalise });

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

export type WebhookRules = {
  /** Special addresses that receivers may have. */
  readonly allowed: BlockList;
  /** The header of LEGACY_SIGNATURE_HEADER. */
  readonly legacyHeader: string | undefined;
};

/** A masked value without a stored one. A new webhook has none stored. */
export function headerProblems(
  given: readonly CustomHeader[] | undefined,
  stored: readonly CustomHeader[],
): readonly Problem[] {
  const kept = keepMasked(given ?? [], stored);
  return 'problems' in kept ? problemsOf('headers', kept.problems) : [];
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

export function webhookFields({ allowed, legacyHeader }: WebhookRules) {
  const fields = {
    name: text('A unique name.', { to: 128, normalise }),
    hookUrl: labelled(
      'Receiver URL',
      refine(httpUrl('The http or https URL to which events are sent.'), (url) => {
        const problem = receiverProblem(url, allowed);
        return problem === undefined ? { value: url } : { problem };
      }),
    ),
    changeTypes: labelled(
      'Event types',
      withPicks(
        pickedTypes,
        refine(
          text('The types of the events to send: a JSON array or comma list, * for all.', { to: 8192 }),
          (list) => {
            const types = readChangeTypes(list);
            return types ? { value: types } : { problem: `must be ${changeTypesRule}.` };
          },
        ),
      ),
    ),
    contentType: advanced(choice('The content type of the requests.', contentTypes)),
    headers: advanced(
      labelled(
        'Custom headers',
        refine(
          jsonObject(
            'Headers that every request carries: a JSON object of names and values. Answers show the values as ***; in edit, *** keeps ' +
              'the stored value.',
          ),
          (object) => {
            const read = readHeaders(object, legacyHeader);
            return 'problems' in read ? { problem: read.problems } : { value: read.headers };
          },
        ),
      ),
    ),
    active: boolean('Whether events are sent to the webhook.'),
  };
  const service = labelled(
    'Only events of the service',
    serviceField('The service whose events are sent, as Folder/Name.Type; blank for all events.'),
  );
  const signatureKey = advanced(
    refine(
      text('The key that signs deliveries; generated if absent.', {
        to: 256,
        secret: true,
        normalise: (value) => value.trim(),
      }),
      (key) => (isSignatureKey(key) ? { value: key } : { problem: `must be ${signatureKeyRule}.` }),
    ),
  );
  const createFields = {
    name: required(fields.name),
    hookUrl: required(fields.hookUrl),
    changeTypes: required(fields.changeTypes),
    signatureKey,
    active: defaultTo(fields.active, true),
    contentType: defaultTo(fields.contentType, 'application/json'),
    headers: fields.headers,
  };
  return {
    create: createFields,
    createForAll: { ...createFields, service },
    edit: {
      ...fields,
      active: {
        ...fields.active,
        description:
          'Whether events are sent to the webhook. Deactivating it discards its pending deliveries.',
      },
      service: clearable(service),
      headers: clearableTo(fields.headers, []),
    },
  };
}
