// The form fields of webhooks.
import { toNfc } from '../lib/text.ts';
import type { BlockList } from 'node:net';
import type { Caller } from '../caller.ts';
import type { Problem } from '../errors.ts';
import { mayList, serviceAtPath } from '../catalog/catalog.ts';
import { boolean, choice, clearable, defaultTo, httpUrl, refine, required, text } from '../rest/fields.ts';
import type { Reader } from '../store/state.ts';
import { changeTypesRule, readChangeTypes } from './event.ts';
import { receiverProblem } from './target-policy.ts';
import { isSignatureKey, signatureKeyRule } from './signature.ts';
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

export function webhookFields(allowed: BlockList) {
  const fields = {
    name: text('A unique name.', { to: 128, normalise }),
    hookUrl: refine(httpUrl('The http or https URL to which events are sent.'), (url) => {
      const problem = receiverProblem(url, allowed);
      return problem === undefined ? { value: url } : { problem };
    }),
    changeTypes: refine(
      text('The types of the events to send: a JSON array or comma list, * for all.', { to: 8192 }),
      (list) => {
        const types = readChangeTypes(list);
        return types ? { value: types } : { problem: `must be ${changeTypesRule}.` };
      },
    ),
    contentType: choice('The content type of the requests.', contentTypes),
    active: boolean('Whether events are sent to the webhook.'),
  };
  const service = serviceField(
    'The service whose events are sent, as Folder/Name.Type; blank for all events.',
  );
  const signatureKey = refine(
    text('The key that signs deliveries; generated if absent.', {
      to: 128,
      secret: true,
      normalise: (value) => value.trim(),
    }),
    (key) => (isSignatureKey(key) ? { value: key } : { problem: `must be ${signatureKeyRule}.` }),
  );
  const createFields = {
    name: required(fields.name),
    hookUrl: required(fields.hookUrl),
    changeTypes: required(fields.changeTypes),
    signatureKey,
    active: defaultTo(fields.active, true),
    contentType: defaultTo(fields.contentType, 'application/json'),
  };
  return {
    create: createFields,
    createForAll: { ...createFields, service },
    edit: { ...fields, service: clearable(service) },
  };
}
