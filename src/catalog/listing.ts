// The part of the catalog that one kind of caller may see, sorted: root first, then by folder, name and type.
import type { Caller } from '../caller.ts';
import { type Folder, type Service, type ServiceAccess, mayList, rootFolder } from './catalog.ts';

export type Listing = {
  readonly folders: readonly string[];
  readonly services: readonly Service[];
  readonly byFolder: ReadonlyMap<string, readonly Service[]>;
};

/** All callers of one audience see the same services, so they share cached listings. */
export type Audience = ServiceAccess;

export function audienceOf(caller: Caller): Audience {
  if (caller === undefined) return 'public';
  return caller.role === 'administrator' ? 'administrators' : 'organization';
}

const typicalCaller: Record<Audience, Caller> = {
  public: undefined,
  organization: { username: '', role: 'member' },
  administrators: { username: '', role: 'administrator' },
};

/** `folders` and `services` are sorted. */
export function listCatalog(
  folders: readonly Folder[],
  services: readonly Service[],
  audience: Audience,
): Listing {
  const caller = typicalCaller[audience];
  const byFolder = new Map<string, Service[]>([[rootFolder, []]]);
  for (const folder of folders) byFolder.set(folder.folderName, []);
  const hidden = new Set<string>();
  for (const service of services) {
    if (mayList(service, caller)) byFolder.get(service.folderName)?.push(service);
    else hidden.add(service.folderName);
  }
  // Only a folder whose services are all hidden is hidden. An empty folder is visible.
  for (const name of hidden)
    if (name !== rootFolder && byFolder.get(name)?.length === 0) byFolder.delete(name);

  return {
    folders: [...byFolder.keys()].filter((name) => name !== rootFolder),
    services: [...byFolder.values()].flat(),
    byFolder,
  };
}

/** Rows in the order of their sort keys. Rows are immutable, so a row that is known has the key that it had before. */
export class SortedRows<T> {
  readonly #keyOf: (row: T) => string;
  #sorted: readonly { readonly row: T; readonly key: string }[] = [];

  constructor(keyOf: (row: T) => string) {
    this.#keyOf = keyOf;
  }

  update(rows: Iterable<T>): readonly T[] {
    const added = new Set(rows);
    // `delete` returns whether the row is still there. What remains in the set is new.
    const kept = this.#sorted.filter(({ row }) => added.delete(row));
    const entries = [...kept, ...[...added].map((row) => ({ row, key: this.#keyOf(row) }))];
    // Sorting is fast here: most entries are in order already.
    this.#sorted = entries.sort((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
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
 * The operators < and > compare UTF-16 units, which sorts U+10000 and above before U+E000. In the keys, surrogates have the highest units,
 * so that these operators compare code points.
 */
export function sortKey(text: string): string {
  if (!/[\uD800-\uFFFF]/.test(text)) return text;
  return text.replace(/[\uD800-\uFFFF]/g, (unit) => {
    const code = unit.charCodeAt(0);
    return String.fromCharCode(code < 0xe000 ? code + 0x2000 : code - 0x800);
  });
}
