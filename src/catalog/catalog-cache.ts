// The catalogCache keeps what was made from the catalog ready until the catalog changes.
import type { Store } from '../store/store.ts';
import { folders, services } from './catalog.ts';
import { type Audience, type Listing, listCatalog } from './listing.ts';

export type CatalogCache = {
  listing: (audience: Audience) => Listing;
  /** Anything derived from the catalog: made once under its key, again after a change. */
  get: <T>(key: string, make: () => T) => T;
};

export function createCatalogCache(store: Store): CatalogCache {
  const shelf = new Map<string, unknown>();
  let foldersVersion = -1;
  let servicesVersion = -1;

  function get<T>(key: string, make: () => T): T {
    if (store.version(folders) !== foldersVersion || store.version(services) !== servicesVersion) {
      shelf.clear();
      foldersVersion = store.version(folders);
      servicesVersion = store.version(services);
    }
    const known = shelf.get(key) as T | undefined;
    if (known !== undefined) return known;
    const made = make();
    shelf.set(key, made);
    return made;
  }

  return {
    get,
    listing: (audience) =>
      get(`listing ${audience}`, () => listCatalog(store.all(folders), store.all(services), audience)),
  };
}
