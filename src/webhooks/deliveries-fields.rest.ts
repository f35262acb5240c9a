// The fields that filter deliveries.
import { moment, refuse, text } from '../rest/field-types.ts';
import type { Values } from '../rest/fields.ts';
import { changeTypeRule, eventIdRule } from './event.ts';
import type { DeliveryFilter } from './queue/delivery-filter.ts';
import { type DeliveryState, deliveryStates, recoverableStates } from './queue/delivery.ts';

const trim = (value: string) => value.trim();

export const noStatus = 'none';

/** A comma list of states. */
const stateField = <S extends DeliveryState>(allowed: readonly S[]) =>
  text({ to: 128, normalise: trim })
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
  allowed: `an HTTP status from 100 to 599, or ${noStatus}`,
  pattern: /^([1-5][0-9][0-9]|none)$/,
  normalise: trim,
};

const commonFields = {
  changeType: text({ to: 64, ...changeTypeRule, normalise: trim })
    .optional()
    .describe('The type of the event.'),
  eventId: text({ to: 64, ...eventIdRule, normalise: trim })
    .optional()
    .describe('The id of the event.'),
  status: text(status)
    .transform((value) => (value === noStatus ? null : Number(value)))
    .optional()
    .describe(`The HTTP status of the last attempt, or ${noStatus} for deliveries without an answer.`),
  from: moment().optional().describe('The first moment of creation, in milliseconds since the epoch.'),
  to: moment().optional().describe('The last moment of creation, in milliseconds since the epoch.'),
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
