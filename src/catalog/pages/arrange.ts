// The order of a list of services, and the filter by type. Both are in the address, so that they need no script.
import { type Option, type Sorting, compareNaturally, sortBy, sortingOf } from '../../console/table.ts';
import type { Service } from '../catalog.ts';

const orders = { name: 'ascending', type: 'ascending', changed: 'descending' } as const;

export type ServiceSorting = Sorting<keyof typeof orders>;

export function serviceSorting(query: URLSearchParams): ServiceSorting {
  return sortingOf(query, orders);
}

const byName = (one: Service, other: Service) => compareNaturally(one.serviceName, other.serviceName);

/** Lists of the catalog are cached until it changes, and thousands of names take long to compare. */
const sortedByName = new WeakMap<readonly Service[], readonly Service[]>();

function sortByName(services: readonly Service[]): readonly Service[] {
  const known = sortedByName.get(services);
  if (known) return known;
  const sorted = services.toSorted(byName);
  sortedByName.set(services, sorted);
  return sorted;
}

export function arrangeServices(services: readonly Service[], query: URLSearchParams): readonly Service[] {
  const type = query.get('type') ?? '';
  const sorted = sortByName(services);
  const chosen = type === '' ? sorted : sorted.filter((service) => service.type === type);
  const sorting = serviceSorting(query);
  if (sorting.key === 'name' && !sorting.isDescending) return chosen;
  return sortBy(chosen, sorting, {
    name: byName,
    type: (one, other) => compareNaturally(one.type, other.type),
    changed: (one, other) => one.updatedAt - other.updatedAt,
  });
}

export function typeOptions(services: readonly Service[]): Option[] {
  const types = [...new Set(services.map(({ type }) => type))].sort(compareNaturally);
  return [{ value: '', label: 'All types' }, ...types.map((type) => ({ value: type, label: type }))];
}
