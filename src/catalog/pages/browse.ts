// Pages of the catalog: the folders and services of the root or of one folder, and the search.
import { linkButton } from '../../console/action.ts';
import { renderAgo } from '../../console/time.ts';
import {
  type Option,
  type Row,
  compareNaturally,
  listParameters,
  pageRange,
  renderEmpty,
  renderList,
  renderPager,
  renderSelect,
  renderToolbar,
  sortBy,
  sortableColumn,
  sortingOf,
} from '../../console/table.ts';
import { mayCall } from '../../lib/caller.ts';
import { formatCount, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { Reader } from '../../store/state.ts';
import type { CatalogCache } from '../catalog-cache.ts';
import { type Folder, type Service, audiences, fileNameOf, findFolder, rootFolder } from '../catalog.ts';
import { type Listing, audienceOf } from '../listing.ts';
import { type SearchResult, searchListing } from '../search.ts';
import { type ServiceViewOptions, destructiveAction, showService } from './service.ts';

const usualRows = 50;
const maxRows = 200;
const maxExcerptLength = 160;

const orders = { name: 'ascending', type: 'ascending', changed: 'descending' } as const;

type BrowseOptions = ServiceViewOptions & { readonly store: Reader; readonly catalogCache: CatalogCache };

type CatalogViews = { root: View<unknown>; folder: View<Folder>; service: View<Service> };

export function createCatalogViews(options: BrowseOptions): CatalogViews {
  return {
    root: (page) => rootView(options, page),
    folder: (page) => folderView(options, page),
    service: showService(options),
  };
}

function rootView({ store, catalogCache, soapPath }: BrowseOptions, page: PageContext<unknown>): Html {
  const listing = catalogCache.listing(audienceOf(page.caller));
  const search = searchOf(page);
  const found = searchListing(listing, search);
  const services = found?.services ?? listing.byFolder.get(rootFolder) ?? [];
  return html`${toolbar(page, { services, folderName: rootFolder, count: formatCount(listing.services.length, 'service') })}
    ${found ? searchView(store, page, listing, found, search) : contentsView(store, page, listing)}
    <p class="hint">
      Programs read all services over SOAP: see <a href="${soapPath}">the SOAP service</a> and its
      <a href="${soapPath}?wsdl">WSDL</a>.
    </p>`;
}

function searchOf({ query }: PageContext<unknown>): string {
  return (query.get('q') ?? '').trim().slice(0, 256);
}

function contentsView(store: Reader, page: PageContext<unknown>, listing: Listing): Html {
  return html`<section aria-labelledby="folders">
      <h2 id="folders">Folders</h2>
      ${folderTable(store, page, listing.folders, listing)}
    </section>
    <section aria-labelledby="services">
      <h2 id="services">Services in the root</h2>
      ${serviceTable(page, listing.byFolder.get(rootFolder) ?? [])}
    </section>`;
}

function searchView(
  store: Reader,
  page: PageContext<unknown>,
  listing: Listing,
  { services, folders }: SearchResult,
  query: string,
): Html {
  return html`<section aria-labelledby="found">
      <h2 id="found">${formatCount(services.length, 'service')} for “${query}”</h2>
      ${serviceTable(page, services, { withFolder: true })}
    </section>
    ${
      folders.length > 0 &&
      html`<section aria-labelledby="folders">
        <h2 id="folders">${formatCount(folders.length, 'folder')} for “${query}”</h2>
        ${folderTable(store, page, folders, listing)}
      </section>`
    }
    <p><a href="${page.here()}">All folders and services</a></p>`;
}

function folderView({ catalogCache }: BrowseOptions, page: PageContext<Folder>): Html {
  const { folderName, description } = page.subject;
  const listing = catalogCache.listing(audienceOf(page.caller));
  const all = listing.byFolder.get(folderName) ?? [];
  const search = searchOf(page);
  const services =
    searchListing(listing, search)?.services.filter((service) => service.folderName === folderName) ?? all;
  const mayDelete = all.length === 0 && mayCall(page.caller, 'publisher');
  const everywhere = `${page.href('services')}?${new URLSearchParams({ q: search }).toString()}`;
  return html`${toolbar(page, { services, folderName, count: formatCount(services.length, 'service') })}
    <section aria-labelledby="services">
      <h2 id="services">Services in this folder</h2>
      ${description !== '' && html`<p>${description}</p>`} ${serviceTable(page, services)}
      ${search !== '' && html`<p><a href="${everywhere}">Search all folders for “${search}”</a></p>`}
    </section>
    ${
      mayDelete &&
      destructiveAction(page, {
        label: 'Delete folder',
        action: page.here('deleteFolder'),
        next: page.href('services'),
        warning: 'The folder is empty. It is removed from the catalog at once.',
      })
    }`;
}

type ServiceToolbar = {
  readonly services: readonly Service[];
  readonly folderName: string;
  readonly count: string;
};

function toolbar(page: PageContext<unknown>, { services, folderName, count }: ServiceToolbar): Html {
  const options = typeOptions(services);
  const type = page.query.get('type') ?? '';
  return renderToolbar({
    action: page.here(),
    search: {
      label: folderName === rootFolder ? 'Search services' : 'Search this folder',
      value: searchOf(page),
    },
    filters: options.length > 2 || type !== '' ? [renderSelect('type', 'Type', options, type)] : [],
    keep: listParameters(page.query, ['sort', 'order']),
    count,
    actions: createActions(page, folderName),
  });
}

/** A new service lies in the folder of the page. */
function createActions(page: PageContext<unknown>, folderName: string): Html | false {
  const service = new URLSearchParams(folderName === rootFolder ? {} : { folderName }).toString();
  return (
    mayCall(page.caller, 'publisher') &&
    html`${linkButton(page, page.href('services', 'createFolder'), 'Create folder', 'second')}
      ${linkButton(page, `${page.href('services', 'createService')}${service && `?${service}`}`, 'Create service')}`
  );
}

function folderTable(
  store: Reader,
  page: PageContext<unknown>,
  names: readonly string[],
  { byFolder }: Listing,
): Html {
  return pagedTable(page, names, 'folder', (visible) => {
    const rows = visible.map((name): Row => [
      html`<a href="${page.href('services', name)}"><bdi>${name}</bdi></a>`,
      formatNumber(byFolder.get(name)?.length ?? 0),
      excerptOf(findFolder(store, name)?.description ?? ''),
    ]);
    return renderList('Folders', ['Folder', 'Services', 'Description'], rows);
  });
}

function serviceTable(
  page: PageContext<unknown>,
  services: readonly Service[],
  { withFolder = false } = {},
): Html {
  const chosen = arrangeServices(services, page.query);
  return pagedTable(page, chosen, 'service', (visible) => {
    const rows = visible.map((service): Row => {
      const { folderName, serviceName, type, access, description, updatedAt } = service;
      const path = [...(folderName === rootFolder ? [] : [folderName]), fileNameOf(service)];
      return [
        html`<a href="${page.href('services', ...path)}"><bdi>${serviceName}</bdi></a>`,
        ...(withFolder ? [folderName] : []),
        type,
        audiences[access],
        excerptOf(description),
        renderAgo(updatedAt, page.now),
      ];
    });
    const sorting = sortingOf(page.query, orders);
    const keep = listParameters(page.query, keptParameters);
    const columns = [
      sortableColumn('Service', 'name', sorting, keep),
      ...(withFolder ? ['Folder'] : []),
      sortableColumn('Type', 'type', sorting, keep),
      'Visible to',
      'Description',
      sortableColumn('Changed', 'changed', sorting, keep),
    ];
    return renderList('Services', columns, rows);
  });
}

/** Folders and services have their own start, so that paging through one list keeps the position in the other. */
const startParameters = { folder: 'startFolder', service: 'start' } as const;

// The query may contain a token, which links must not repeat.
const keptParameters: readonly string[] = ['q', 'type', 'sort', 'order', ...Object.values(startParameters)];

function pagedTable<T>(
  { query, here }: PageContext<unknown>,
  all: readonly T[],
  noun: keyof typeof startParameters,
  render: (visible: readonly T[]) => Html,
): Html {
  if (all.length === 0) {
    const isFiltered = query.get('q') || query.get('type');
    return renderEmpty(
      isFiltered ? `No ${noun} matches.` : `There are no ${noun}s here.`,
      isFiltered ? { href: here(), label: 'Remove the filters' } : undefined,
    );
  }
  const name = startParameters[noun];
  const range = pageRange(query, { usual: usualRows, most: maxRows, name });
  const visible = all.slice(range.start, range.start + range.num);
  const keep = listParameters(query, keptParameters);
  const label = noun === 'folder' ? 'Folders' : 'Services';
  return html`${visible.length > 0 && render(visible)} ${renderPager(label, range, all.length, { keep, name })}`;
}

function excerptOf(description: string): string {
  const characters = Array.from(description);
  if (characters.length <= maxExcerptLength) return description;
  return `${characters.slice(0, maxExcerptLength).join('').trimEnd()}…`;
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

function arrangeServices(services: readonly Service[], query: URLSearchParams): readonly Service[] {
  const type = query.get('type') ?? '';
  const sorted = sortByName(services);
  const chosen = type === '' ? sorted : sorted.filter((service) => service.type === type);
  const sorting = sortingOf(query, orders);
  if (sorting.key === 'name' && !sorting.isDescending) return chosen;
  return sortBy(chosen, sorting, {
    name: byName,
    type: (one, other) => compareNaturally(one.type, other.type),
    changed: (one, other) => one.updatedAt - other.updatedAt,
  });
}

function typeOptions(services: readonly Service[]): Option[] {
  const types = [...new Set(services.map(({ type }) => type))].sort(compareNaturally);
  return [{ value: '', label: 'All types' }, ...types.map((type) => ({ value: type, label: type }))];
}
