// Keeps listings of the catalog, and texts rendered from them, until the catalog changes.
//
// After a change, a listing sorts only what is new. Rendering a text yields to the event loop again and again,
// because a large catalog takes hundreds of milliseconds. One text is rendered at a time, and callers share a
// rendering that has not begun: it will show every change that was made before their calls.
import { createMutex } from '../lib/async.ts';
import { type Json, SharedJson, toTexts } from '../lib/json.ts';
import type { Runtime } from '../lib/runtime.ts';
import type { ReadableStore } from '../store/store.ts';
import { type Folder, type Service, type ServiceAccess, folders, services } from './catalog.ts';
import { type Listing, SortedRows, folderOrder, listCatalog, serviceOrder } from './listing.ts';

/** UTF-8. Answers share it, so that it must not be changed. */
type Content = Buffer;

/** Rendering a part of this length takes about two milliseconds. */
const partLength = 64 * 1024;

/** Beyond this, the content that was rendered first is dropped. */
const maxContentBytes = 64 * 1024 ** 2;

export class CatalogCache {
  readonly #store: ReadableStore;
  readonly #runtime: Pick<Runtime, 'yieldToEventLoop'>;
  readonly #folders = new SortedRows<Folder>(folderOrder);
  readonly #services = new SortedRows<Service>(serviceOrder);
  readonly #mutex = createMutex();
  /** Renderings that have not begun. */
  readonly #waiting = new Map<string, Promise<Content>>();
  #sorted: { readonly folders: readonly Folder[]; readonly services: readonly Service[] } | undefined;
  // A change of the catalog replaces these maps. A rendering that is not finished then adds its content to the old one.
  #listings = new Map<ServiceAccess, Listing>();
  #contents = new Map<string, Content>();
  #foldersVersion = -1;
  #servicesVersion = -1;

  constructor(store: ReadableStore, runtime: Pick<Runtime, 'yieldToEventLoop'>) {
    this.#store = store;
    this.#runtime = runtime;
  }

  listing(audience: ServiceAccess): Listing {
    this.#clearAfterChange();
    const cached = this.#listings.get(audience);
    if (cached) return cached;
    this.#sorted ??= {
      folders: this.#folders.update(this.#store.all(folders)),
      services: this.#services.update(this.#store.all(services)),
    };
    const listing = listCatalog(this.#sorted.folders, this.#sorted.services, audience);
    this.#listings.set(audience, listing);
    return listing;
  }

  /** `key` must contain everything that the text depends on besides the catalog. */
  content(key: string, texts: () => Iterable<string>): Promise<Content> {
    this.#clearAfterChange();
    const cached = this.#contents.get(key);
    if (cached) return Promise.resolve(cached);
    const waiting = this.#waiting.get(key) ?? this.#mutex(() => this.#render(key, texts));
    this.#waiting.set(key, waiting);
    return waiting;
  }

  /** The JSON of the head and the services of one folder, which all callers of one audience share. */
  servicesJson(
    key: string,
    head: () => { readonly [key: string]: Json },
    services: () => readonly { readonly [key: string]: Json }[],
  ): SharedJson {
    return new SharedJson(
      () => ({ ...head(), services: services() }),
      (space) =>
        this.content(`${key} ${space}`, () => toTexts({ ...head(), services: [] }, services(), space)),
    );
  }

  async #render(key: string, texts: () => Iterable<string>): Promise<Content> {
    this.#waiting.delete(key);
    this.#clearAfterChange();
    const contents = this.#contents;
    // It may have been rendered while the caller waited.
    const cached = contents.get(key);
    if (cached) return cached;
    const parts: Buffer[] = [];
    let text = '';
    for (const next of texts()) {
      text += next;
      if (text.length < partLength) continue;
      parts.push(Buffer.from(text));
      text = '';
      await this.#runtime.yieldToEventLoop();
    }
    parts.push(Buffer.from(text));
    const content = Buffer.concat(parts);
    contents.set(key, content);
    dropOldest(contents);
    return content;
  }

  #clearAfterChange(): void {
    const foldersVersion = this.#store.version(folders);
    const servicesVersion = this.#store.version(services);
    if (foldersVersion === this.#foldersVersion && servicesVersion === this.#servicesVersion) return;
    this.#sorted = undefined;
    this.#listings = new Map();
    this.#contents = new Map();
    this.#foldersVersion = foldersVersion;
    this.#servicesVersion = servicesVersion;
  }
}

/** Keeps the newest, whatever its size. */
function dropOldest(contents: Map<string, Content>): void {
  let bytes = [...contents.values()].reduce((sum, { length }) => sum + length, 0);
  for (const [key, content] of contents) {
    if (bytes <= maxContentBytes || contents.size === 1) return;
    contents.delete(key);
    bytes -= content.length;
  }
}
