// The form that filters deliveries. It works without a script: the times are chosen from lists.
import { formatTime } from '../../console/json.ts';
import { type Option, compareNaturally, renderSelect } from '../../console/table.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Reader } from '../../store/state.ts';
import { filterFields } from '../deliveries-fields.rest.ts';
import { eventTypeNames } from '../event-types.ts';
import { deliveryStates } from '../queue/delivery.ts';
import { webhooks } from '../webhook.ts';

const minute = 60_000;
const hour = 60 * minute;

const spans: readonly { readonly label: string; readonly ms: number }[] = [
  { label: '15 minutes', ms: 15 * minute },
  { label: '1 hour', ms: hour },
  { label: '24 hours', ms: 24 * hour },
  { label: '7 days', ms: 7 * 24 * hour },
  { label: '30 days', ms: 30 * 24 * hour },
];

/** The filter in the query of the page. */
export function givenFilter({ query }: PageContext<unknown>): Record<string, string> {
  return Object.fromEntries(
    [...query].filter(([name, value]) => name in filterFields && value.trim() !== ''),
  );
}

/** The form without its frame. */
export function filterControls(page: PageContext<unknown>, store: Reader): Html[] {
  const { state, changeType, status, eventId, from, to } = givenFilter(page);
  const ago = (label: string) => `${label} ago`;
  return [
    renderSelect('state', 'State', optionsOf('All states', deliveryStates, state), state),
    renderSelect(
      'changeType',
      'Event type',
      optionsOf('All event types', knownTypes(store), changeType),
      changeType,
    ),
    inputView('status', 'HTTP status', status, { placeholder: 'Status, or none' }),
    renderSelect(
      'from',
      'Since',
      momentsOf(page.now, from, 'Any time', (label) => `Since ${ago(label)}`),
      from,
    ),
    renderSelect(
      'to',
      'Until',
      momentsOf(page.now, to, 'Until now', (label) => `Until ${ago(label)}`),
      to,
    ),
    inputView('eventId', 'Event id', eventId),
  ];
}

/** The types of the server, and others that webhooks subscribe to. */
function knownTypes(store: Reader): string[] {
  const subscribed = [...store.all(webhooks)].flatMap(({ changeTypes }) => changeTypes);
  const others = new Set(subscribed.filter((type) => type !== '*' && !eventTypeNames.includes(type)));
  return [...eventTypeNames, ...Array.from(others).sort(compareNaturally)];
}

/** A given value that is not listed is offered too. */
function optionsOf(all: string, values: readonly string[], given: string | undefined): Option[] {
  const listed = given === undefined || values.includes(given) ? values : [...values, given];
  return [
    { value: '', label: all },
    ...listed.map((value) => ({ value, label: value.split(',').join(', ') })),
  ];
}

function momentsOf(
  now: number,
  given: string | undefined,
  any: string,
  labelOf: (label: string) => string,
): Option[] {
  const at = given === undefined ? NaN : Number(given);
  const isTime = Math.abs(at) <= 8.64e15;
  return [
    { value: '', label: any },
    ...(given === undefined ? [] : [{ value: given, label: isTime ? formatTime(at) : given }]),
    ...spans.map(({ label, ms }) => ({ value: String(now - ms), label: labelOf(label) })),
  ];
}

function inputView(name: string, label: string, value = '', { placeholder = label } = {}): Html {
  return html`<label class="unseen" for="filter-${name}">${label}</label>
    <input id="filter-${name}" name="${name}" value="${value}" maxlength="64" size="12" placeholder="${placeholder}" />`;
}
