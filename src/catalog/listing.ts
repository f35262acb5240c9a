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

/** `folders` and `services` are sorted, so the services of a folder follow one another. */
export function listCatalog(
  folders: readonly Folder[],
  services: readonly Service[],
  audience: Audience,
): Listing {
  const caller = typicalCaller[audience];
  const visible = services.filter((service) => mayList(service, caller));
  const byFolder = new Map<string, readonly Service[]>([[rootFolder, []]]);
  for (const { folderName } of folders) byFolder.set(folderName, []);
  for (let start = 0, end = 0; start < visible.length; start = end) {
    const name = visible[start]?.folderName ?? '';
    while (visible[end]?.folderName === name) end += 1;
    byFolder.set(name, visible.slice(start, end));
  }
  // Only a folder whose services are all hidden is hidden. An empty folder is visible.
  const isHidden = (name: string) => name !== rootFolder && byFolder.get(name)?.length === 0;
  if (visible.length < services.length) {
    for (const { folderName } of services) if (isHidden(folderName)) byFolder.delete(folderName);
  }
  return {
    folders: folders.map(({ folderName }) => folderName).filter((name) => byFolder.has(name)),
    services: visible,
    byFolder,
  };
}

type Entry<T> = { readonly row: T; readonly key: string; seenIn: number };

/**
 * Rows in the order of their sort keys. An update looks at every row, but sorts only the new ones: rows are immutable, so a known row has
 * the key that it had before.
 */
export class SortedRows<T> {
  readonly #keyOf: (row: T) => string;
  readonly #known = new Map<T, Entry<T>>();
  #sorted: readonly Entry<T>[] = [];
  #updates = 0;

  constructor(keyOf: (row: T) => string) {
    this.#keyOf = keyOf;
  }

  update(rows: Iterable<T>): readonly T[] {
    this.#updates += 1;
    const added: Entry<T>[] = [];
    for (const row of rows) {
      const known = this.#known.get(row);
      if (known) known.seenIn = this.#updates;
      else added.push({ row, key: this.#keyOf(row), seenIn: this.#updates });
    }
    const kept = this.#sorted.filter(
      ({ row, seenIn }) => seenIn === this.#updates || !this.#known.delete(row),
    );
    for (const entry of added) this.#known.set(entry.row, entry);
    this.#sorted = merge(kept, added.sort(compareKeys));
    return this.#sorted.map(({ row }) => row);
  }
}

function compareKeys<T>(a: Entry<T>, b: Entry<T>): number {
  if (a.key === b.key) return 0;
  return a.key < b.key ? -1 : 1;
}

function merge<T>(some: readonly Entry<T>[], others: readonly Entry<T>[]): readonly Entry<T>[] {
  if (others.length === 0) return some;
  const merged: Entry<T>[] = [];
  let next = 0;
  for (const entry of some) {
    for (let other = others[next]; other && other.key < entry.key; other = others[next]) {
      merged.push(other);
      next += 1;
    }
    merged.push(entry);
  }
  return [...merged, ...others.slice(next)];
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
