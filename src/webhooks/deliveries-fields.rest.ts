// The fields that filter deliveries.
import { type Parsed, type Values, moment, refine, text } from '../rest/fields.ts';
import type { DeliveryFilter } from './queue/delivery-filter.ts';
import { type DeliveryState, deliveryStates, recoverableStates } from './queue/delivery.ts';
import { changeTypeRule, eventIdRule } from './event.ts';

const trim = (value: string) => value.trim();

export const noStatus = 'none';

/** A comma list of states. */
const stateField = <S extends DeliveryState>(description: string, allowed: readonly S[]) =>
  refine(text(description, { to: 128, normalise: trim }), (list): Parsed<readonly S[]> => {
    const given = list.split(',').map(trim);
    const states = allowed.filter((state) => given.includes(state));
    return given.every((state) => states.some((one) => one === state))
      ? { value: states }
      : { problem: `must be a comma list of ${allowed.join(', ')}.` };
  });

const statusField = refine(
  text(`The HTTP status of the last attempt, or ${noStatus} for deliveries without an answer.`, {
    to: 4,
    allowed: `an HTTP status from 100 to 599, or ${noStatus}`,
    pattern: /^([1-5][0-9][0-9]|none)$/,
    normalise: trim,
  }),
  (status): Parsed<number | null> => ({ value: status === noStatus ? null : Number(status) }),
);

const commonFields = {
  changeType: text('The type of the event.', { to: 64, ...changeTypeRule, normalise: trim }),
  eventId: text('The id of the event.', { to: 64, ...eventIdRule, normalise: trim }),
  status: statusField,
  from: moment('The first moment of creation, in milliseconds since the epoch.'),
  to: moment('The last moment of creation, in milliseconds since the epoch.'),
};

export const filterFields = {
  state: stateField(`The states, as a comma list of ${deliveryStates.join(', ')}.`, deliveryStates),
  ...commonFields,
};

const repeatableStates = deliveryStates.filter((state) => state !== 'pending');

export const redeliverFields = {
  state: stateField(
    `The states, as a comma list of ${repeatableStates.join(', ')}. Default: ${recoverableStates.join(',')}.`,
    repeatableStates,
  ),
  ...commonFields,
};

type FilterValues = Partial<Values<typeof filterFields>>;

export function filterOf({ state, changeType, eventId, status, from, to }: FilterValues): DeliveryFilter {
  return { states: state, changeType, eventId, status, from, to };
}
