// The form that filters deliveries. It works without a script: the times are chosen from lists.
import { formatTime } from '../../console/json.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import { filterFields } from '../deliveries-fields.rest.ts';
import { eventTypeNames } from '../event-types.ts';
import { deliveryStates } from '../queue/delivery.ts';

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

export function renderFilter(page: PageContext<unknown>, action: string): Html {
  const given = givenFilter(page);
  const states = ['', ...deliveryStates].map((state) => ({
    value: state,
    label: state === '' ? 'All' : state,
  }));
  const listed = states.some(({ value }) => value === (given.state ?? ''))
    ? states
    : [...states, { value: given.state ?? '', label: (given.state ?? '').split(',').join(', ') }];
  return html`<form class="filter" role="search" method="get" action="${action}" aria-label="Filter deliveries">
    ${selectView('state', 'State', listed, given.state)}
    ${inputView('changeType', 'Event type', given.changeType, { suggestions: eventTypeNames })}
    ${inputView('status', 'HTTP status', given.status, { placeholder: '503, or none' })}
    ${inputView('eventId', 'Event id', given.eventId)}
    ${selectView(
      'from',
      'Since',
      momentsOf(page.now, given.from, 'Any time', (label) => `${label} ago`),
      given.from,
    )}
    ${selectView(
      'to',
      'Until',
      momentsOf(page.now, given.to, 'Now', (label) => `${label} ago`),
      given.to,
    )}
    <button>Filter</button>
    ${Object.keys(given).length > 0 && html`<a href="${action}">Show all</a>`}
  </form>`;
}

type Option = { readonly value: string; readonly label: string };

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

function selectView(name: string, label: string, options: readonly Option[], chosen = ''): Html {
  return html`<div>
    <label for="filter-${name}">${label}</label>
    <select id="filter-${name}" name="${name}">
      ${options.map(
        (option) =>
          html`<option value="${option.value}" ${option.value === chosen && 'selected'}>${option.label}</option> `,
      )}
    </select>
  </div>`;
}

type InputOptions = { readonly placeholder?: string; readonly suggestions?: readonly string[] };

function inputView(
  name: string,
  label: string,
  value = '',
  { placeholder, suggestions = [] }: InputOptions = {},
): Html {
  const list = suggestions.length > 0 && html`list="filter-${name}-list"`;
  return html`<div>
    <label for="filter-${name}">${label}</label>
    <input id="filter-${name}" name="${name}" value="${value}" maxlength="64" ${list}
      ${placeholder !== undefined && html`placeholder="${placeholder}"`} />
    ${
      suggestions.length > 0 &&
      html`<datalist id="filter-${name}-list">
        ${suggestions.map((one) => html`<option value="${one}"></option>`)}
      </datalist>`
    }
  </div>`;
}
