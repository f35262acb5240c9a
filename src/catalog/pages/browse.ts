// Pages of the catalog: the folders and services of the root or of one folder, and the search.
import { linkButton } from '../../console/action.ts';
import {
  type ListColumn,
  renderEmpty,
  renderEntries,
  renderSelect,
  listParameters,
  renderToolbar,
  searchedIn,
  selectEntries,
  sortingIn,
} from '../../console/list.ts';
import { compareNaturally } from '../../console/table.ts';
import { renderAgo } from '../../console/time.ts';
import { mayCall } from '../../lib/caller.ts';
import { oncePer } from '../../lib/collections.ts';
import { formatCount, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext } from '../../rest/view.ts';
import type { Reader } from '../../store/state.ts';
import type { CatalogCache } from '../catalog-cache.ts';
import {
  type Folder,
  type Service,
  audienceOf,
  audiences,
  findFolder,
  pathOfService,
  rootFolder,
} from '../catalog.ts';
import { type Listing, searchListing } from '../listing.ts';
import type { ServiceViewOptions } from './service.ts';

const size = { usual: 50, most: 200 };
const maxExcerptLength = 160;

type BrowseOptions = ServiceViewOptions & { readonly store: Reader; readonly catalogCache: CatalogCache };

export function rootView({ store, catalogCache, soapPath }: BrowseOptions, page: PageContext<unknown>): Html {
  const listing = catalogCache.listing(audienceOf(page.caller));
  const search = searchedIn(page.query);
  const found = searchListing({ folders: listing.folders, services: sortByName(listing.services) }, search);
  const services = found?.services ?? sortByName(listing.services);
  const folders = sortNaturally(found?.folders ?? listing.folders);
  return html`${toolbar(page, services, rootFolder)}
    ${folders.length > 0 && folderChips(store, page, folders, listing)}
    ${serviceTable(page, services, { withFolder: true })}
    ${search !== '' && services.length > 0 && html`<p><a href="${page.here()}">All services</a></p>`}
    <p class="hint">
      Programs read all services over SOAP: see <a href="${soapPath}">the SOAP service</a> and its
      <a href="${soapPath}?wsdl">WSDL</a>.
    </p>`;
}

const maxChips = 100;

/** Links to the folders, with how many services each has. */
function folderChips(
  store: Reader,
  page: PageContext<unknown>,
  folders: readonly string[],
  { byFolder }: Listing,
): Html {
  const rest = folders.length - maxChips;
  return html`<nav class="chips" aria-label="Folders">
    ${folders.slice(0, maxChips).map(
      (name) =>
        html`<a class="chip" href="${page.href('services', name)}" title="${excerptOf(findFolder(store, name)?.description ?? '')}"
          ><bdi>${name}</bdi> ${formatNumber(byFolder.get(name)?.length ?? 0)}</a
        > `,
    )}
    ${rest > 0 && html`<span class="hint">and ${formatCount(rest, 'folder')} more: search for their names</span>`}
  </nav>`;
}

export function folderView({ catalogCache }: BrowseOptions, page: PageContext<Folder>): Html {
  const { folderName, description } = page.subject;
  const listing = catalogCache.listing(audienceOf(page.caller));
  const all = servicesIn(listing, folderName);
  const search = searchedIn(page.query);
  const { services } = searchListing({ folders: [], services: all }, search) ?? { services: all };
  const mayDelete = all.length === 0 && mayCall(page.caller, 'publisher');
  const everywhere = `${page.href('services')}?${new URLSearchParams({ q: search }).toString()}`;
  return html`${toolbar(page, services, folderName)}
    ${description !== '' && html`<p>${description}</p>`} ${serviceTable(page, services)}
    ${search !== '' && html`<p><a href="${everywhere}">Search all folders for “${search}”</a></p>`}
    ${mayDelete && linkButton(page, page.here('deleteFolder'), 'Delete folder …', 'destructive')}`;
}

function toolbar(page: PageContext<unknown>, services: readonly Service[], folderName: string): Html {
  const types = [...new Set(services.map((service) => service.type))].sort(compareNaturally);
  const type = page.query.get('type') ?? '';
  // A new service lies in the folder of the page.
  const folder = new URLSearchParams(folderName === rootFolder ? {} : { folderName }).toString();
  return renderToolbar({
    action: page.here(),
    search: {
      label: folderName === rootFolder ? 'Search services' : 'Search this folder',
      value: searchedIn(page.query),
    },
    filters: types.length > 1 || type !== '' ? [renderSelect('type', 'Type', 'All types', types, type)] : [],
    keep: sortingIn(Object.fromEntries(page.query)),
    count: formatCount(services.length, 'service'),
    actions:
      mayCall(page.caller, 'publisher') &&
      html`${linkButton(page, page.href('services', 'createFolder'), 'Create folder', 'button second')}
        ${linkButton(page, `${page.href('services', 'createService')}${folder && `?${folder}`}`, 'Create service')}`,
  });
}

/** The services are in the order of their names. */
function serviceTable(
  page: PageContext<unknown>,
  services: readonly Service[],
  { withFolder = false } = {},
): Html {
  const { sort = 'name', order } = listParameters(page.query);
  const isReversed = sort === 'name' && order === 'desc';
  const list = selectEntries(isReversed ? services.toReversed() : services, page, {
    filters: { type: ({ type }) => type },
    orders: {
      // The list is in this order already.
      name: { compare: () => 0 },
      type: { compare: (one, other) => compareNaturally(one.type, other.type) },
      changed: { compare: (one, other) => one.updatedAt - other.updatedAt, isDescending: true },
    },
    ...size,
  });
  const folder: ListColumn<Service, never> = {
    label: 'Folder',
    cell: ({ folderName }) => (folderName === rootFolder ? '' : folderName),
  };
  return renderEntries(page, list, {
    noun: 'service',
    empty: renderEmpty('There are no services here.'),
    columns: [
      {
        label: 'Service',
        sort: 'name',
        cell: (service) =>
          html`<a href="${page.href('services', ...pathOfService(service).split('/'))}"><bdi>${service.serviceName}</bdi></a>`,
      },
      ...(withFolder ? [folder] : []),
      { label: 'Type', sort: 'type', cell: ({ type }) => type },
      { label: 'Visible to', cell: ({ access }) => audiences[access] },
      { label: 'Description', cell: ({ description }) => excerptOf(description) },
      { label: 'Changed', sort: 'changed', cell: ({ updatedAt }) => renderAgo(updatedAt, page.now) },
    ],
  });
}

function excerptOf(description: string): string {
  const characters = Array.from(description);
  if (characters.length <= maxExcerptLength) return description;
  return `${characters.slice(0, maxExcerptLength).join('').trimEnd()}…`;
}

const sortNaturally = oncePer((names: readonly string[]) => names.toSorted(compareNaturally));

/** Lists of the catalog are cached until it changes, and thousands of names take long to compare. */
const sortByName = oncePer((services: readonly Service[]) =>
  services.toSorted((one, other) => compareNaturally(one.serviceName, other.serviceName)),
);

function servicesIn({ byFolder }: Listing, folderName: string): readonly Service[] {
  return sortByName(byFolder.get(folderName) ?? []);
}
