// The part of the catalog that one kind of caller may see, sorted: root first, then by folder, name and type; and the
// search in it.
import { oncePer } from '../lib/collections.ts';
import { toNfc, truncate } from '../lib/text.ts';
import {
  type Folder,
  type Service,
  type ServiceAccess,
  isListedFor,
  pathOfService,
  rootFolder,
} from './catalog.ts';

export type Listing = {
  readonly folders: readonly string[];
  readonly services: readonly Service[];
  readonly byFolder: ReadonlyMap<string, readonly Service[]>;
};

/** `folders` and `services` are sorted, so the services of a folder follow one another. */
export function listCatalog(
  folders: readonly Folder[],
  services: readonly Service[],
  audience: ServiceAccess,
): Listing {
  const visible = services.filter((service) => isListedFor(audience, service));
  const byFolder = new Map<string, readonly Service[]>([[rootFolder, []]]);
  for (const { folderName } of folders) byFolder.set(folderName, []);
  for (let start = 0, end = 0; start < visible.length; start = end) {
    const name = visible[start]?.folderName ?? '';
    while (visible[end]?.folderName === name) end += 1;
    byFolder.set(name, visible.slice(start, end));
  }
  // Only a folder whose services are all hidden is hidden. An empty folder is visible.
  const isHidden = (name: string) => name !== rootFolder && byFolder.get(name)?.length === 0;
  for (const { folderName } of services) if (isHidden(folderName)) byFolder.delete(folderName);
  return {
    folders: folders.map(({ folderName }) => folderName).filter((name) => byFolder.has(name)),
    services: visible,
    byFolder,
  };
}

/**
 * Rows in the order of their sort keys. An update looks at every row, but places only the new ones: rows are
 * immutable, so a known row has the place that it had before.
 */
export class SortedRows<T> {
  readonly #keyOf: (row: T) => string;
  #sorted: readonly { readonly row: T; readonly key: string }[] = [];

  constructor(keyOf: (row: T) => string) {
    this.#keyOf = keyOf;
  }

  update(rows: Iterable<T>): readonly T[] {
    const added = new Set(rows);
    const known = this.#sorted.filter(({ row }) => added.delete(row));
    const byKey = (a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1);
    const fresh = [...added].map((row) => ({ row, key: this.#keyOf(row) })).sort(byKey);
    // Two sorted runs, which the sort merges in linear time.
    this.#sorted = [...known, ...fresh].sort(byKey);
    return this.#sorted.map(({ row }) => row);
  }
}

export function folderOrder({ folderName }: Folder): string {
  return sortKey(folderName);
}

/** No name contains U+0000. */
export function serviceOrder({ folderName, serviceName, type }: Service): string {
  const folder = folderName === rootFolder ? '' : sortKey(folderName);
  return [folder, sortKey(serviceName), type].join('\0');
}

/**
 * The operators < and > compare UTF-16 units, which sorts U+10000 and above before U+E000. In the keys, surrogates
 * have the highest units, so that these operators compare code points.
 */
export function sortKey(text: string): string {
  if (!/[\uD800-\uFFFF]/.test(text)) return text;
  return text.replace(/[\uD800-\uFFFF]/g, (unit) => {
    const code = unit.charCodeAt(0);
    return String.fromCharCode(code < 0xe000 ? code + 0x2000 : code - 0x800);
  });
}

/** Each of the first words must occur in the folder, name, type or beginning of the description. */
export function searchListing(
  listing: Pick<Listing, 'folders' | 'services'>,
  query: string,
): Pick<Listing, 'folders' | 'services'> | undefined {
  const words = [...new Set(fold(query).trim().split(/\s+/))].slice(0, maxWords);
  if (words[0] === '') return undefined;
  const containsAll = (text: string) => words.every((word) => text.includes(word));
  return {
    folders: listing.folders.filter((name) => containsAll(fold(name))),
    services: listing.services.filter((service) => containsAll(searchedText(service))),
  };
}

const maxWords = 8;
const searchedCharacters = 200;

/** Rows are immutable, so a service is folded once, however often it is searched. */
const searchedText = oncePer((service: Service) =>
  fold(`${pathOfService(service)} ${truncate(service.description, searchedCharacters)}`),
);

function fold(text: string): string {
  return toNfc(text).toLowerCase();
}
