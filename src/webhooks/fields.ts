// The fields of webhooks, as creating and editing ask for them.
import { toNfc } from '../lib/text.ts';
import type { BlockList } from 'node:net';
import type { Caller } from '../caller.ts';
import type { Problem } from '../errors.ts';
import { mayList, serviceAtPath } from '../catalog/catalog.ts';
import { boolean, choice, clearable, defaultTo, httpUrl, refine, required, text } from '../rest/fields.ts';
import type { Reader } from '../store/transaction.ts';
import { changeTypesRule, readChangeTypes } from './event.ts';
import { receiverProblem } from './target-policy.ts';
import { isSignatureKey, signatureKeyRule } from './signature.ts';
import { contentTypes } from './webhook.ts';

const tidy = (value: string) => toNfc(value.trim());

/** `Folder/Name.Type`: as long as its parts may be. */
export const serviceField = (description: string) => text(description, { to: 322, normalise: tidy });

/** What stands against a service that a field names, for this caller. */
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

/** `allowed`: special addresses that receivers may have all the same. */
export function webhookFields(allowed: BlockList) {
  const fields = {
    name: text('A name for people, unlike any other.', { to: 128, normalise: tidy }),
    hookUrl: refine(httpUrl('The http or https address events are posted to.'), (url) => {
      const problem = receiverProblem(url, allowed);
      return problem === undefined ? { value: url } : { problem };
    }),
    changeTypes: refine(
      text('The types of events it is told: a JSON array or comma list, * for all.', { to: 8192 }),
      (list) => {
        const types = readChangeTypes(list);
        return types ? { value: types } : { problem: `must be ${changeTypesRule}.` };
      },
    ),
    contentType: choice('How the event is sent.', contentTypes),
    active: boolean('Whether it is told anything.'),
  };
  const service = serviceField('The service whose events it is told, as Folder/Name.Type; blank for all.');
  const signatureKey = refine(
    text('What deliveries are signed with; one is made up when absent.', {
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
