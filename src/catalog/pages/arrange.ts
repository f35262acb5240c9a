// The order of a list of services, and the filter by type. Both are in the address, so that they need no script.
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/resource.ts';
import type { Service } from '../catalog.ts';

/** `name` is the order of the catalog. */
const orders = {
  name: { label: 'Name', compare: undefined },
  type: { label: 'Type', compare: (a: Service, b: Service) => compareTexts(a.type, b.type) },
  changed: { label: 'Last change', compare: (a: Service, b: Service) => b.updatedAt - a.updatedAt },
};

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function arrangeServices(services: readonly Service[], query: URLSearchParams): readonly Service[] {
  const type = query.get('type') ?? '';
  const sort = query.get('sort') ?? '';
  const chosen = type === '' ? services : services.filter((service) => service.type === type);
  const compare = sort in orders ? orders[sort as keyof typeof orders].compare : undefined;
  return compare ? chosen.toSorted(compare) : chosen;
}

export function arrangeForm({ query, here }: PageContext<unknown>, services: readonly Service[]): Html {
  const types = [...new Set(services.map(({ type }) => type))].sort();
  const search = query.get('q') ?? '';
  return html`<form class="filter" method="get" action="${here()}" aria-label="Type and order">
    ${search !== '' && html`<input type="hidden" name="q" value="${search}" />`}
    ${choice('type', 'Type', query, [['', 'All types'], ...types.map((type) => [type, type] as const)])}
    ${choice(
      'sort',
      'Sort by',
      query,
      Object.entries(orders).map(([name, { label }]) => [name, label] as const),
    )}
    <button class="quiet">Apply</button>
  </form>`;
}

function choice(
  name: string,
  label: string,
  query: URLSearchParams,
  values: readonly (readonly [value: string, label: string])[],
): Html {
  const chosen = query.get(name);
  return html`<div>
    <label for="${name}">${label}</label>
    <select id="${name}" name="${name}">
      ${values.map(
        ([value, text]) => html`<option value="${value}" ${value === chosen && 'selected'}>${text}</option> `,
      )}
    </select>
  </div>`;
}
