// The catalog for people: folders and services as lists, and a search over what the caller may see.
import { mayCall } from '../caller.ts';
import type { Shown, View } from '../rest/directory.ts';
import { html, type Html } from '../rest/html.ts';
import type { Reader } from '../store/transaction.ts';
import { type Folder, type Service, fileNameOf, findFolder, rootFolder } from './catalog.ts';
import type { Librarian } from './librarian.ts';
import { type Listing, audienceOf } from './listing.ts';
import { searchListing } from './search.ts';
import { type ServiceViewOptions, audiences, graveAction, showService } from './service.page.ts';

/** A page stays small however much there is; the search finds the rest. */
const mostShown = 200;
const longestExcerpt = 160;

export type BrowseOptions = ServiceViewOptions & { store: Reader; librarian: Librarian };

export type CatalogViews = { root: View<unknown>; folder: View<Folder>; service: View<Service> };

export function createCatalogViews({ store, librarian, baseUrl, webhooksOf }: BrowseOptions): CatalogViews {
  const listingFor = ({ caller }: Shown<unknown>) => librarian.listing(audienceOf(caller));

  function root(shown: Shown<unknown>): Html {
    const listing = listingFor(shown);
    const query = (shown.query.get('q') ?? '').trim().slice(0, 256);
    const found = searchListing(listing, query);
    const contents = found
      ? html`<section aria-labelledby="found">
            <h2 id="found">${count(found.services.length, 'service')} for “${query}”</h2>
            ${serviceTable(shown, found.services, { withFolder: true })}
          </section>
          ${
            found.folders.length > 0 &&
            html`<section aria-labelledby="folders">
              <h2 id="folders">${count(found.folders.length, 'folder')} for “${query}”</h2>
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
        ${count(listing.services.length, 'service')} in all. Programs read them over SOAP: see
        <a href="${baseUrl()}">the SOAP service</a> and its <a href="${baseUrl()}?wsdl">WSDL</a>.
      </p>
      ${searchForm(shown, query)} ${contents}`;
  }

  function folderTable({ href }: Shown<unknown>, names: readonly string[], { byFolder }: Listing): Html {
    return limited(names, 'folder', (some) => {
      const rows = some.map(
        (name) =>
          html`<tr>
            <th scope="row"><a href="${href('services', name)}">${name}</a></th>
            <td data-label="Services">${byFolder.get(name)?.length ?? 0}</td>
            <td data-label="Description">${excerptOf(findFolder(store, name)?.description ?? '')}</td>
          </tr> `,
      );
      return tableView(['Folder', 'Services', 'Description'], rows, 'Table of folders');
    });
  }

  function folder(shown: Shown<Folder>): Html {
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
        graveAction(shown, {
          ...{ label: 'Delete folder', action: shown.here('deleteFolder'), next: shown.href('services') },
          warning: 'The folder is empty. It disappears from the catalog at once.',
        })
      }`;
  }

  return { root, folder, service: showService({ baseUrl, webhooksOf }) };
}

function searchForm({ href }: Shown<unknown>, query: string): Html {
  return html`<form class="search" role="search" method="get" action="${href('services')}">
    <label for="q">Search services</label>
    <input id="q" name="q" type="search" maxlength="256" value="${query}" aria-describedby="q-hint" />
    <button>Search</button>
    <p class="hint" id="q-hint">Words of their name, folder, type or description.</p>
  </form>`;
}

function serviceTable(
  { href }: Shown<unknown>,
  services: readonly Service[],
  { withFolder = false } = {},
): Html {
  return limited(services, 'service', (some) => {
    const rows = some.map((service) => {
      const { folderName, serviceName, type, access, description } = service;
      const path = [...(folderName === rootFolder ? [] : [folderName]), fileNameOf(service)];
      return html`<tr>
        <th scope="row"><a href="${href('services', ...path)}">${serviceName}</a></th>
        ${withFolder && html`<td data-label="Folder">${folderName}</td>`}
        <td data-label="Type">${type}</td>
        <td data-label="Seen by">${audiences[access]}</td>
        <td data-label="Description">${excerptOf(description)}</td>
      </tr> `;
    });
    const columns = ['Service', ...(withFolder ? ['Folder'] : []), 'Type', 'Seen by', 'Description'];
    return tableView(columns, rows, 'Table of services');
  });
}

function tableView(columns: readonly string[], rows: readonly Html[], label: string): Html {
  return html`<div class="wide" tabindex="0" role="region" aria-label="${label}">
    <table class="stacked">
      <thead>
        <tr>
          ${columns.map((column) => html`<th scope="col">${column}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
  </div>`;
}

function limited<T>(all: readonly T[], noun: string, view: (some: readonly T[]) => Html): Html {
  if (all.length === 0) return html`<p class="none">No ${noun}s.</p>`;
  return html`${view(all.slice(0, mostShown))}
  ${
    all.length > mostShown &&
    html`<p>The first ${mostShown} of ${count(all.length, noun)}. Search to find the others.</p>`
  }`;
}

function excerptOf(description: string): string {
  const characters = Array.from(description);
  if (characters.length <= longestExcerpt) return description;
  return `${characters.slice(0, longestExcerpt).join('').trimEnd()}…`;
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}
