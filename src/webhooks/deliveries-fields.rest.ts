// The fields that filter deliveries.
import { moment, refuse, text } from '../rest/field-types.ts';
import type { Values } from '../rest/fields.ts';
import { changeTypeRule, eventIdRule } from './event.ts';
import type { DeliveryFilter } from './queue/delivery-filter.ts';
import { type DeliveryState, deliveryStates, recoverableStates } from './queue/delivery.ts';

const trim = (value: string) => value.trim();

export const noStatus = 'none';

const stateMeanings: Readonly<Record<DeliveryState, string>> = {
  pending: 'An attempt is in progress or due.',
  delivered: 'The receiver accepted the event.',
  failed: 'All attempts failed.',
  discarded: 'The webhook was deactivated before the event was delivered.',
  missed: 'The webhook was inactive when the event was published, or too many deliveries were pending.',
};

/** A comma list of states. */
const stateField = <S extends DeliveryState>(allowed: readonly S[]) =>
  text({ to: 128, normalise: trim })
    .meta({
      label: 'States',
      picks: allowed.map((state) => ({ value: state, label: state, description: stateMeanings[state] })),
      isClosedList: true,
    })
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
  changeType: text({ to: 64, ...changeTypeRule, normalise: trim })
    .optional()
    .meta({ label: 'Event type', description: 'The type of the event.' }),
  eventId: text({ to: 64, ...eventIdRule, normalise: trim })
    .optional()
    .describe('The id of the event.'),
  status: text(status)
    .transform((value) => (value === noStatus ? null : Number(value.replace('xx', ''))))
    .optional()
    .describe(`The HTTP status of the last attempt or its class, such as 5xx; ${noStatus}: no response.`),
  from: moment().optional().meta({
    label: 'Created from',
    description:
      'The first moment of creation, in milliseconds since the epoch, or as 2026-11-18T07:30 in UTC.',
  }),
  to: moment().optional().meta({
    label: 'Created until',
    description:
      'The last moment of creation, in milliseconds since the epoch, or as 2026-11-18T07:30 in UTC.',
  }),
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
