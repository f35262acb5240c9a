// Pages of the catalog: the folders and services of the root or of one folder, and the search.
import { renderAgo } from '../../console/json.ts';
import { type Row, pageRange, renderPager, renderTable } from '../../console/table.ts';
import { mayCall } from '../../lib/caller.ts';
import { formatCount, formatNumber } from '../../lib/format.ts';
import { html, type Html } from '../../lib/html.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import type { Reader } from '../../store/state.ts';
import type { CatalogCache } from '../catalog-cache.ts';
import { type Folder, type Service, audiences, fileNameOf, findFolder, rootFolder } from '../catalog.ts';
import { type Listing, audienceOf } from '../listing.ts';
import { type SearchResult, searchListing } from '../search.ts';
import { arrangeForm, arrangeServices } from './arrange.ts';
import { type ServiceViewOptions, destructiveAction, showService } from './service.ts';

const maxRows = 200;
const maxExcerptLength = 160;

type BrowseOptions = ServiceViewOptions & { readonly store: Reader; readonly catalogCache: CatalogCache };

type CatalogViews = { root: View<unknown>; folder: View<Folder>; service: View<Service> };

export function createCatalogViews(options: BrowseOptions): CatalogViews {
  return {
    root: (page) => rootView(options, page),
    folder: (page) => folderView(options, page),
    service: showService(options),
  };
}

function rootView({ store, catalogCache, baseUrl }: BrowseOptions, page: PageContext<unknown>): Html {
  const listing = catalogCache.listing(audienceOf(page.caller));
  const query = (page.query.get('q') ?? '').trim().slice(0, 256);
  const found = searchListing(listing, query);
  return html`<p>
      ${formatCount(listing.services.length, 'service')} in total. Programs read them over SOAP: see
      <a href="${baseUrl()}">the SOAP service</a> and its <a href="${baseUrl()}?wsdl">WSDL</a>.
    </p>
    ${createActions(page, rootFolder)} ${searchForm(page, query)}
    ${found ? searchView(store, page, listing, found, query) : contentsView(store, page, listing)}`;
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
  const services = catalogCache.listing(audienceOf(page.caller)).byFolder.get(folderName) ?? [];
  const mayDelete = services.length === 0 && mayCall(page.caller, 'publisher');
  return html`${createActions(page, folderName)} ${searchForm(page, '')}
    <section aria-labelledby="services">
      <h2 id="services">Services in this folder</h2>
      ${description !== '' && html`<p>${description}</p>`} ${serviceTable(page, services)}
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

/** A new service lies in the folder of the page. */
function createActions({ href, caller }: PageContext<unknown>, folderName: string): Html | false {
  const service = new URLSearchParams(folderName === rootFolder ? {} : { folderName }).toString();
  return (
    mayCall(caller, 'publisher') &&
    html`<p class="lead-actions">
      <a class="button" href="${href('services', 'createService')}${service && `?${service}`}">Create service</a>
      <a class="button second" href="${href('services', 'createFolder')}">Create folder</a>
    </p>`
  );
}

function searchForm({ href }: PageContext<unknown>, query: string): Html {
  return html`<form class="search" role="search" method="get" action="${href('services')}">
    <label for="q">Search services</label>
    <input id="q" name="q" type="search" maxlength="256" value="${query}" aria-describedby="q-hint" />
    <button>Search</button>
    <p class="hint" id="q-hint">Words from the name, folder, type or description.</p>
  </form>`;
}

function folderTable(
  store: Reader,
  { href, query }: PageContext<unknown>,
  names: readonly string[],
  { byFolder }: Listing,
): Html {
  return pagedTable(query, names, 'folder', (visible) => {
    const rows = visible.map((name): Row => [
      html`<a href="${href('services', name)}">${name}</a>`,
      formatNumber(byFolder.get(name)?.length ?? 0),
      excerptOf(findFolder(store, name)?.description ?? ''),
    ]);
    return renderTable('Folders', ['Folder', 'Services', 'Description'], rows);
  });
}

function serviceTable(
  page: PageContext<unknown>,
  services: readonly Service[],
  { withFolder = false } = {},
): Html {
  const chosen = arrangeServices(services, page.query);
  const table = pagedTable(page.query, chosen, 'service', (visible) => {
    const rows = visible.map((service): Row => {
      const { folderName, serviceName, type, access, description, updatedAt } = service;
      const path = [...(folderName === rootFolder ? [] : [folderName]), fileNameOf(service)];
      return [
        html`<a href="${page.href('services', ...path)}">${serviceName}</a>`,
        ...(withFolder ? [folderName] : []),
        type,
        audiences[access],
        excerptOf(description),
        renderAgo(updatedAt, page.now),
      ];
    });
    const folder = withFolder ? ['Folder'] : [];
    const columns = ['Service', ...folder, 'Type', 'Visible to', 'Description', 'Changed'];
    return renderTable('Services', columns, rows);
  });
  return html`${services.length > 1 && arrangeForm(page, services)} ${table}`;
}

/** Folders and services have their own start, so that paging through one list keeps the position in the other. */
const startParameters = { folder: 'startFolder', service: 'start' } as const;

// The query may contain a token, which links must not repeat.
const keptParameters: readonly string[] = ['q', 'type', 'sort', ...Object.values(startParameters)];

function pagedTable<T>(
  query: URLSearchParams,
  all: readonly T[],
  noun: keyof typeof startParameters,
  render: (visible: readonly T[]) => Html,
): Html {
  if (all.length === 0) return html`<p class="none">No ${noun}s.</p>`;
  const name = startParameters[noun];
  const range = pageRange(query, { usual: maxRows, most: maxRows, name });
  const visible = all.slice(range.start, range.start + range.num);
  const keep = Object.fromEntries([...query].filter(([key]) => keptParameters.includes(key)));
  const label = noun === 'folder' ? 'Folders' : 'Services';
  return html`${visible.length > 0 && render(visible)} ${renderPager(label, range, all.length, { keep, name })}`;
}

function excerptOf(description: string): string {
  const characters = Array.from(description);
  if (characters.length <= maxExcerptLength) return description;
  return `${characters.slice(0, maxExcerptLength).join('').trimEnd()}…`;
}
