// Keeps values derived from the catalog until the catalog changes.
import type { Store } from '../store/store.ts';
import { folders, services } from './catalog.ts';
import { type Audience, type Listing, listCatalog } from './listing.ts';

export class CatalogCache {
  readonly #store: Store;
  readonly #values = new Map<string, unknown>();
  #foldersVersion = -1;
  #servicesVersion = -1;

  constructor(store: Store) {
    this.#store = store;
  }

  get<T>(key: string, make: () => T): T {
    this.#clearAfterChange();
    const cached = this.#values.get(key) as T | undefined;
    if (cached !== undefined) return cached;
    const made = make();
    this.#values.set(key, made);
    return made;
  }

  listing(audience: Audience): Listing {
    return this.get(`listing ${audience}`, () =>
      listCatalog(this.#store.all(folders), this.#store.all(services), audience),
    );
  }

  #clearAfterChange(): void {
    const foldersVersion = this.#store.version(folders);
    const servicesVersion = this.#store.version(services);
    if (foldersVersion === this.#foldersVersion && servicesVersion === this.#servicesVersion) return;
    this.#values.clear();
    this.#foldersVersion = foldersVersion;
    this.#servicesVersion = servicesVersion;
  }
}
