// The catalog for people: folders and services as lists, and a search over what the caller may see.
import { mayCall } from '../../caller.ts';
import type { PageContext, View } from '../../rest/resource.ts';
import { html, type Html } from '../../rest/html/html.ts';
import { type Row, renderPager, pageRange, renderTable } from '../../rest/html/table.ts';
import type { Reader } from '../../store/transaction.ts';
import { formatCount, formatNumber } from '../../lib/format.ts';
import { type Folder, type Service, fileNameOf, findFolder, rootFolder } from '../catalog.ts';
import type { CatalogCache } from '../catalog-cache.ts';
import { type Listing, audienceOf } from '../listing.ts';
import { searchListing } from '../search.ts';
import { type ServiceViewOptions, audiences, destructiveAction, showService } from './service.ts';

/** A page stays small however much there is. */
const mostShown = 200;
const longestExcerpt = 160;

type BrowseOptions = ServiceViewOptions & { store: Reader; catalogCache: CatalogCache };

type CatalogViews = { root: View<unknown>; folder: View<Folder>; service: View<Service> };

export function createCatalogViews({
  store,
  catalogCache,
  baseUrl,
  webhooksOf,
}: BrowseOptions): CatalogViews {
  const listingFor = ({ caller }: PageContext<unknown>) => catalogCache.listing(audienceOf(caller));

  function root(shown: PageContext<unknown>): Html {
    const listing = listingFor(shown);
    const query = (shown.query.get('q') ?? '').trim().slice(0, 256);
    const found = searchListing(listing, query);
    const contents = found
      ? html`<section aria-labelledby="found">
            <h2 id="found">${formatCount(found.services.length, 'service')} for “${query}”</h2>
            ${serviceTable(shown, found.services, { withFolder: true })}
          </section>
          ${
            found.folders.length > 0 &&
            html`<section aria-labelledby="folders">
              <h2 id="folders">${formatCount(found.folders.length, 'folder')} for “${query}”</h2>
              ${folderTable(shown, found.folders, listing)}
            </section>`
          }
          <p><a href="${shown.here()}">All folders and services</a></p>`
      : html`<section aria-labelledby="folders">
            <h2 id="folders">Folders</h2>
            ${folderTable(shown, listing.folders, listing)}
          </section>
          <section aria-labelledby="services">
            <h2 id="services">Services at the root</h2>
            ${serviceTable(shown, listing.byFolder.get(rootFolder) ?? [])}
          </section>`;
    return html`<p>
        ${formatCount(listing.services.length, 'service')} in all. Programs read them over SOAP: see
        <a href="${baseUrl()}">the SOAP service</a> and its <a href="${baseUrl()}?wsdl">WSDL</a>.
      </p>
      ${searchForm(shown, query)} ${contents}`;
  }

  function folderTable(shown: PageContext<unknown>, names: readonly string[], { byFolder }: Listing): Html {
    return inParts(shown.query, names, 'folder', (some) => {
      const rows = some.map((name): Row => [
        html`<a href="${shown.href('services', name)}">${name}</a>`,
        formatNumber(byFolder.get(name)?.length ?? 0),
        excerptOf(findFolder(store, name)?.description ?? ''),
      ]);
      return renderTable('Folders', ['Folder', 'Services', 'Description'], rows);
    });
  }

  function folder(shown: PageContext<Folder>): Html {
    const { folderName, description } = shown.subject;
    const services = listingFor(shown).byFolder.get(folderName) ?? [];
    const mayDelete = services.length === 0 && mayCall(shown.caller, 'publisher');
    return html`${searchForm(shown, '')}
      <section aria-labelledby="services">
        <h2 id="services">${folderName}</h2>
        ${description !== '' && html`<p>${description}</p>`} ${serviceTable(shown, services)}
      </section>
      ${
        mayDelete &&
        destructiveAction(shown, {
          label: 'Delete folder',
          action: shown.here('deleteFolder'),
          next: shown.href('services'),
          warning: 'The folder is empty. It disappears from the catalog at once.',
        })
      }`;
  }

  return { root, folder, service: showService({ baseUrl, webhooksOf }) };
}

function searchForm({ href }: PageContext<unknown>, query: string): Html {
  return html`<form class="search" role="search" method="get" action="${href('services')}">
    <label for="q">Search services</label>
    <input id="q" name="q" type="search" maxlength="256" value="${query}" aria-describedby="q-hint" />
    <button>Search</button>
    <p class="hint" id="q-hint">Words of their name, folder, type or description.</p>
  </form>`;
}

function serviceTable(
  { href, query }: PageContext<unknown>,
  services: readonly Service[],
  { withFolder = false } = {},
): Html {
  return inParts(query, services, 'service', (some) => {
    const rows = some.map((service): Row => {
      const { folderName, serviceName, type, access, description } = service;
      const path = [...(folderName === rootFolder ? [] : [folderName]), fileNameOf(service)];
      return [
        html`<a href="${href('services', ...path)}">${serviceName}</a>`,
        ...(withFolder ? [folderName] : []),
        type,
        audiences[access],
        excerptOf(description),
      ];
    });
    const columns = ['Service', ...(withFolder ? ['Folder'] : []), 'Type', 'Seen by', 'Description'];
    return renderTable('Services', columns, rows);
  });
}

/** Folders and services stand on one page: going through the ones leaves the others where they are. */
const startOf = { folder: 'startFolder', service: 'start' } as const;

function inParts<T>(
  query: URLSearchParams,
  all: readonly T[],
  noun: keyof typeof startOf,
  view: (some: readonly T[]) => Html,
): Html {
  if (all.length === 0) return html`<p class="none">No ${noun}s.</p>`;
  const name = startOf[noun];
  const part = pageRange(query, { usual: mostShown, most: mostShown, name });
  const some = all.slice(part.start, part.start + part.num);
  // Nothing else of the query: there may be a token in it.
  const kept = [...query].filter(([key]) => ['q', ...Object.values(startOf)].includes(key));
  const label = noun === 'folder' ? 'Folders' : 'Services';
  return html`${some.length > 0 && view(some)}
  ${renderPager(label, part, all.length, { keep: Object.fromEntries(kept), name })}`;
}

function excerptOf(description: string): string {
  const characters = Array.from(description);
  if (characters.length <= longestExcerpt) return description;
  return `${characters.slice(0, longestExcerpt).join('').trimEnd()}…`;
}
